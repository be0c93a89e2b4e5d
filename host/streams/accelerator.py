# SPDX-License-Identifier: Apache-2.0
"""The accelerator as a stream: batches of rows in, pairs of row numbers out."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from host.device import Stamps
from host.device.thread import DeviceThread, Finished
from host.encode.recheck import Recheck
from host.encode.values import FieldValues
from host.errors import CoreFailureError, DisorderError, IllegalWordError, WindowOverflowError
from host.exact import UInt64s
from host.failure_record import FailureRecord, cause_of
from host.join_type import JoinType
from host.on_failure import OnFailure
from host.precision_record import PrecisionRecord
from host.runtime import (
    Columns,
    ConfluenceExecStream,
    GraphError,
    Quantum,
    StreamResult,
)
from host.segments import Segment
from host.side import Side
from host.streams.accelerator_params import AcceleratorJoinParams, Progress
from host.streams.adaptive_precision import AdaptivePrecision
from host.streams.completion import Completion
from host.streams.configuration import MARKS, configuration
from host.streams.core_failures import CoreFailures
from host.streams.counters import StagingCounters
from host.streams.failed_cores import failed_cores, has_gates, note_failed, participation
from host.streams.hash_choice import HashWatch
from host.streams.intake import Arrived, Intake
from host.streams.ordinal_results import result_decoder
from host.streams.paired_intake import PairedIntake
from host.streams.release import Release
from host.streams.replay import Replay
from host.streams.restartable_decoder import RestartableDecoder
from host.streams.restore import StrictOrder
from host.streams.row_store import Rows
from host.streams.segment_changes import SegmentChanges
from host.streams.staging import Staging
from host.streams.tagged_intake import TaggedIntake
from host.streams.trace import Trace
from host.streams.turns import all_cores, require_segments, segment_words
from host.streams.watch import DeviceWatch
from host.words import Blocks, WordCodec

__all__ = ["AcceleratorJoin", "AcceleratorJoinParams", "Progress"]


class _Execution:
    """The state of one execution, kept together so that none of it can leak into the next one."""

    def __init__(
        self,
        params: AcceleratorJoinParams,
        codec: WordCodec,
        setup: UInt64s,
        intake: Intake,
        completion: Completion | None,
    ) -> None:
        device = params.device
        self.intake = intake
        self.completion = completion
        self.staging = Staging(device, codec.input.columns)
        self.skip = self.staging.inherited + MARKS  # marks of earlier queries and of the setup
        self.staging.append(setup, marks=MARKS)
        self.staging.append(all_cores(device.manifest))
        self.changes = SegmentChanges(params.schedule, params.plan.window)
        foreign = int(codec.tuple_counts(self.staging.words).sum())  # of an earlier query
        self.trace = Trace(foreign) if params.trace else None
        self.decoder = result_decoder(
            device.manifest,
            params.precision,
            params.plan.window,
            detailed=params.strict or params.trace,
            changes=params.adapts,
            origins=params.survives,
            restarts=params.on_failure is OnFailure.REPLAY,
        )
        self.failures: CoreFailures | None = None
        self.replay: Replay | None = None
        if has_gates(device.manifest):
            self._begin_turns(params)
            self._begin_watch(params)
        self.adaptive = (
            AdaptivePrecision(device, params.ordering, self.staging, self.decoder, marks=self.skip)
            if params.adapts
            else None
        )
        self.chunk_cycles = params.chunk_cycles
        if self.adaptive is not None:
            self.chunk_cycles = min(self.chunk_cycles, self.adaptive.chunk_cycles)
        self.order = StrictOrder(with_probe=completion is not None, in_rounds=params.in_rounds)
        self.release = Release(params.rows)
        self.thread = DeviceThread(device)
        # One buffer is decoded while the device fills the other.
        self.rooms = [
            np.zeros((params.result_words, device.manifest.result_word.columns), np.uint64)
            for _ in range(2)
        ]
        self.ready: list[Columns] = []
        self.flushed = False
        self.done = False
        self.pairs = 0

    def _begin_turns(self, params: AcceleratorJoinParams) -> None:
        """Let all cores take turns that have not failed."""
        device = params.device
        failed = failed_cores(device)
        live = [core for core in range(device.manifest.storage.cores) if core not in failed]
        self.staging.append(segment_words(device.manifest, live, params.plan.window))
        if failed:
            self.decoder.begin_segment(live)

    def _begin_watch(self, params: AcceleratorJoinParams) -> None:
        """Be ready to go on after a failure."""
        device, window = params.device, params.plan.window
        if params.on_failure is OnFailure.REPORT:
            self.failures = CoreFailures(device, window, self.staging, self.decoder)
        elif params.on_failure is OnFailure.REPLAY:
            self.replay = Replay(device, window, self.staging)

    @property
    def failure_record(self) -> FailureRecord | None:
        """What has failed; None if a failure ends the join."""
        policy = self.failures or self.replay
        return None if policy is None else policy.record

    @property
    def marks_within(self) -> int:
        """Number of marks before the one that answers the last FLUSH."""
        changes = 0 if self.adaptive is None else self.adaptive.record.changed
        return changes + (0 if self.failures is None else self.failures.marks)

    @property
    def complete(self) -> int:
        """Number of first arrivals whose results can be handed on."""
        complete = self.decoder.complete
        return complete if self.failures is None else self.failures.limit(complete)


class AcceleratorJoin(ConfluenceExecStream[AcceleratorJoinParams, pa.RecordBatch, Columns]):
    """Stream that feeds and drains a device, and prepares and decodes words while the device works.

    The inputs are side R (input 0) and side S (input 1), each sorted by time, or a single input of
    tagged batches. Values are written from the Arrow buffers directly into the words that the
    device is offered. The output has the columns ``left`` and ``right``; with a trace, it also has
    ``emitted`` and ``latency`` (the visiting latency in cycles). For a row that comes alone, all
    columns except its own row number are -1. Result words are decoded as they arrive; only the
    window and the open groups are kept.

    Attributes
    ----------
    watch : DeviceWatch or None
        Cycles and seconds of the last execution.
    trace : Trace or None
        Latencies of the last execution, if it was traced.
    staged : StagingCounters
        Counters of the staging in the last execution.
    hashing : HashWatch or None
        Seeds that an index had in the last execution, and whether the next one gets others.
    precision : PrecisionRecord or None
        Decisions of an adaptive precision in the last execution.
    segments : list of Segment
        Changes of the cores that store, in the last execution.
    failures : FailureRecord or None
        Cores that failed in the last execution; None if a failure ends the join.
    """

    def __init__(self, name: str | None = None) -> None:
        super().__init__(name)
        self._params: AcceleratorJoinParams | None = None
        self._run: _Execution | None = None
        self.watch: DeviceWatch | None = None
        self.trace: Trace | None = None
        self.staged = StagingCounters()
        self.hashing: HashWatch | None = None
        self.precision: PrecisionRecord | None = None
        self.segments: list[Segment] = []
        self.failures: FailureRecord | None = None

    def prepare(self, params: AcceleratorJoinParams) -> None:
        needed = 2 if params.layout is None else 1
        if len(self.inputs) != needed:
            raise GraphError(
                f"Stream {self.name!r} needs {needed} input(s), not {len(self.inputs)}"
            )
        if params.segments != ():
            require_segments(params.device.manifest)
        if isinstance(params.segments, Sequence):
            for _, cores in params.segments:  # what is wrong is told before any row is taken
                segment_words(params.device.manifest, cores, params.plan.window)
        super().prepare(params)
        self._params = params
        self._codec = WordCodec(params.device.manifest)

    def open(self, restart: bool = False) -> None:
        super().open(restart)
        self._abandon()
        params = self._params
        assert params is not None
        for rows in params.rows:
            rows.clear()
        completion = None
        if params.how is not JoinType.INNER:
            completion = Completion(params.how, params.plan.window)
        intake = self._intake(params, completion)
        self.hashing = HashWatch(params.device)
        setup = configuration(
            params.device.manifest,
            params.plan.bounds,
            params.plan.window,
            params.precision,
            params.distinct,
            spreads=params.plan.spreads,
            choice=self.hashing.choice,
        )
        if has_gates(params.device.manifest):
            setup = np.concatenate([participation(params.device), setup])
        self._run = _Execution(params, self._codec, setup, intake, completion)
        self.watch = DeviceWatch(params.device, params.deadline)
        self.trace = self._run.trace
        self.precision = None if self._run.adaptive is None else self._run.adaptive.record
        self.segments = self._run.changes.begun
        self.failures = self._run.failure_record
        self.staged = intake.counters

    def _intake(self, params: AcceleratorJoinParams, completion: Completion | None) -> Intake:
        manifest = params.device.manifest
        tell = None if completion is None else completion.take
        if params.layout is None:
            return PairedIntake(self.inputs, params.plan, params.rows, manifest, tell)
        return TaggedIntake(self.inputs, params.plan, params.rows, manifest, params.layout, tell)

    @property
    def stores(self) -> tuple[Rows, Rows]:
        """The stores of the rows of both sides."""
        assert self._params is not None
        return self._params.rows

    def execute(self, quantum: Quantum) -> StreamResult:
        params, run = self._params, self._run
        assert params is not None
        assert run is not None
        moved = 0
        while moved < quantum.rows:
            if not self._hand_on(run):
                return StreamResult.BUF_OVERFLOW
            if run.done:
                return self.finish()
            if not self._take_input(run, params):
                return StreamResult.BUF_UNDERFLOW
            if run.staging.waiting or run.flushed:
                moved += self._exchange(run, params)
            else:  # rows that come alone must be handed on first
                moved += sum(pairs.num_rows for pairs in run.ready)
        return StreamResult.QUANTUM_EXPIRED

    def close_impl(self) -> None:
        self._abandon()

    def _abandon(self) -> None:
        run, self._run = self._run, None
        if run is None:
            return
        try:
            if run.thread.is_busy and not run.thread.is_stuck and self._params is not None:
                self._settle(run, run.thread.finish(self._params.deadline.of_exchange))
        finally:
            run.thread.close()
            run.staging.abandon()

    def _take_input(self, run: _Execution, params: AcceleratorJoinParams) -> bool:
        """Stage input until there is enough; return False if more input must arrive first."""
        while run.staging.kept_back < params.low_water and not run.flushed:
            arrived = run.intake.take()
            if arrived is not None and arrived.count:
                for part in run.changes.cut(arrived):
                    if isinstance(part, Segment):
                        self._change_turns(run, params, part.cores)
                    else:
                        self._stage(run, params, part)
            elif arrived is not None:
                self._make_ready(run, params, [])
                if run.ready:
                    return True
            elif run.intake.at_end:
                run.staging.append(self._codec.pack_control("FLUSH"), marks=1)
                run.decoder.flush()
                run.flushed = True
            else:
                return False
        return True

    def _stage(self, run: _Execution, params: AcceleratorJoinParams, arrived: Arrived) -> None:
        """Write tuples into the words that the device will be offered."""
        sides = arrived.sides
        places = self._codec.places(
            {side: tuples.places for side, tuples in sides.items()}, arrived.count
        )
        words = run.staging.reserve(places.count)
        fields: dict[Side, dict[str, Blocks]] = {}
        for side, tuples in sides.items():
            batch = tuples.batch
            fields[side] = {f"key.{name}": values for name, values in batch.keys.items()}
            if params.plan.timed:
                fields[side]["timestamp"] = FieldValues(batch.times)
        begins = {side: tuples.begin for side, tuples in sides.items()}
        self._codec.scatter(words, places, fields, begins)
        run.staging.add(places.count)
        run.decoder.stage(arrived)
        if run.replay is not None:
            run.replay.log.append(words, {side: len(own.places) for side, own in sides.items()})
        if run.completion is not None:
            run.completion.stage(arrived)
        self.staged.staged_bytes += words.nbytes
        self.staged.moved_words = run.staging.moved

    @staticmethod
    def _change_turns(
        run: _Execution, params: AcceleratorJoinParams, cores: tuple[int, ...]
    ) -> None:
        """Let other cores store the tuples that are staged from now on."""
        words = segment_words(params.device.manifest, cores, params.plan.window)
        run.staging.append(words)
        run.decoder.begin_segment(cores)

    def _exchange(self, run: _Execution, params: AcceleratorJoinParams) -> int:
        """Finish an exchange, begin the next one, and decode results; return the words moved."""
        assert self.watch is not None
        if not run.thread.is_busy:
            self._begin(run, params)
        finished = run.thread.finish(params.deadline.of_exchange)
        self.watch.see(finished)
        words = self._settle(run, finished)
        if run.adaptive is not None:
            run.adaptive.steer(self.watch.cycles)
        # The device must not run on after it has answered everything.
        if run.staging.waiting or (run.flushed and run.staging.due):
            self._begin(run, params)
        if len(words):
            stamps = finished.stamps
            self._decode(
                run, params, words, None if stamps is None else stamps.produced[: len(words)]
            )
        if run.adaptive is not None:
            run.adaptive.note_flight()
        return max(1, finished.done.accepted + len(words))

    def _settle(self, run: _Execution, finished: Finished) -> UInt64s:
        """Record the words that an exchange moved; return its result words."""
        done = finished.done
        run.staging.accept(done.accepted)
        if run.trace is not None and finished.stamps is not None:
            accepted = finished.words[: done.accepted]
            stamps = finished.stamps.accepted[: done.accepted]
            run.trace.accept(np.repeat(stamps, self._codec.tuple_counts(accepted)))
        words = finished.results[: done.produced]
        if run.staging.due:
            run.staging.see_marks(int(np.count_nonzero(self._codec.marks(words))))
        if run.adaptive is not None:
            run.adaptive.settle(finished)
        return words

    @staticmethod
    def _begin(run: _Execution, params: AcceleratorJoinParams) -> None:
        """Begin an exchange that offers the device all waiting words."""
        words = run.staging.offer()
        results = run.rooms.pop(0)
        run.rooms.append(results)
        # Accepting a word takes at least one cycle, so with this limit the device stops before it
        # runs dry while it could be fed. After FLUSH, it returns by itself with the mark.
        cycles = run.chunk_cycles
        if not run.flushed:
            cycles = min(cycles, len(words))
        stamps = Stamps.for_arrays(words, results) if params.trace else None
        run.thread.begin(words, results, cycles=cycles, stamps=stamps)

    def _decode(
        self,
        run: _Execution,
        params: AcceleratorJoinParams,
        words: UInt64s,
        stamps: UInt64s | None,
    ) -> None:
        results, stamps = self._codec.split_words(words, stamps)
        start = self._skipped(run, results)
        results, stamps = results[start:], None if stamps is None else stamps[start:]
        parts, stars = run.decoder.decode(results, stamps)
        for recheck in params.rechecks:
            parts = [_holding(recheck, pairs, params.rows) for pairs in parts]
        self._check_faults(run, params)
        parts = self._see_failures(run, params, parts)
        # Each change of the precision, and each failure, has a mark of its own.
        if run.decoder.marks > run.marks_within:
            run.done = True
            if self.hashing is not None:
                self.hashing.finish()
        complete = run.complete
        if run.completion is not None:
            for pairs in parts:
                run.completion.mark(pairs)
        owned = (run.intake.owned(pairs) for pairs in parts if params.how.has_pairs)
        parts = [pairs for pairs in owned if pairs.num_rows]
        if run.trace is not None:
            parts = [run.trace.pairs(pairs) for pairs in parts]
            run.trace.stars(stars)
            run.trace.forget(complete)
        run.pairs += sum(pairs.num_rows for pairs in parts)
        self._make_ready(run, params, parts)
        if params.report is not None and self.watch is not None:
            params.report(Progress(complete, run.pairs, self.watch.cycles))

    def _see_failures(
        self, run: _Execution, params: AcceleratorJoinParams, parts: list[Columns]
    ) -> list[Columns]:
        """Go on without cores that have failed; return the pairs that do not count as missing."""
        assert self.watch is not None
        if run.failures is not None:
            if run.failures.see(self.watch.cycles, flushed=run.flushed):
                run.order.sift(run.failures.sift)
            return [run.failures.sift(pairs) for pairs in parts]
        if run.replay is not None:
            assert isinstance(run.decoder, RestartableDecoder)
            restart = run.replay.see(run.decoder, self.watch.cycles, flushed=run.flushed)
            if restart is None:
                return parts
            run.decoder, run.skip = restart.decoder, restart.skip
            run.order.sift(restart.keep)
            return [restart.keep(pairs) for pairs in parts]
        cores = run.decoder.take_failures().cores
        if cores:
            core = min(cores)
            note_failed(params.device, core)
            cause = f"It read {cause_of(cores[core])}. " if cores[core] else ""
            raise CoreFailureError(
                params.device.uri,
                core,
                f"{cause}Run the join again, which leaves the core out, or let it go on after a "
                "failure by on_failure='report' or 'replay'.",
            )
        return parts

    def _make_ready(
        self, run: _Execution, params: AcceleratorJoinParams, parts: list[Columns]
    ) -> None:
        """Queue the results whose turn it is; release rows that no later result can refer to."""
        complete = run.complete
        if params.strict:
            pairs = run.order.push(parts, complete)
            parts = [] if pairs is None else [pairs]
        if run.completion is not None:
            goes_on = run.done and params.is_cut is not None and params.is_cut()
            ended = run.done and not goes_on
            parts = run.completion.complete(parts, complete, run.intake.reached, ended=ended)
        run.ready += [results for results in parts if results.num_rows]
        for side in Side:
            run.release.allow(side, self._needed(run, side))

    @staticmethod
    def _needed(run: _Execution, side: Side) -> int:
        """Return the oldest row of a side that a result not yet queued can refer to."""
        held = run.order.least("left" if side is Side.R else "right")
        alone = None if run.completion is None else run.completion.oldest_row(side)
        oldest = run.decoder.oldest_row(side)
        if oldest is None:
            oldest = run.intake.next_row(side)
        return min(row for row in (oldest, held, alone) if row is not None)

    def _skipped(self, run: _Execution, results: UInt64s) -> int:
        """Return how many results come up to and including the mark of this execution's CLEAR."""
        if not run.skip:
            return 0
        marks = np.flatnonzero(self._codec.marks(results))[: run.skip]
        run.skip -= len(marks)
        return len(results) if run.skip else int(marks[-1]) + 1

    @staticmethod
    def _check_faults(run: _Execution, params: AcceleratorJoinParams) -> None:
        faults, manifest = run.decoder.faults, params.device.manifest
        if faults.illegal:  # other faults may follow from this one
            raise IllegalWordError(params.device.uri)
        if faults.overflow:
            raise WindowOverflowError(
                faults.overflow[0],
                manifest.capacity,
                cores=manifest.storage.cores,
                engine=manifest.engine,
            )
        if faults.disorder:
            raise DisorderError("timestamp", run.decoder.arrivals, "a later time", "an earlier one")

    def _hand_on(self, run: _Execution) -> bool:
        """Put decoded pairs into the output; return False if there is no room for all of them."""
        run.release.consumed(self.output.rows)
        while run.ready:
            room = self.output.provide()
            if not room:
                return False
            pairs = run.ready[0]
            self.output.produce(pairs.slice(0, room))
            run.release.produced(min(room, pairs.num_rows))
            if room < pairs.num_rows:
                run.ready[0] = pairs.slice(room)
            else:
                del run.ready[0]
        run.release.handed_on()
        return True


def _holding(recheck: Recheck, pairs: Columns, rows: tuple[Rows, Rows]) -> Columns:
    """Return the pairs for which a term holds."""
    if not pairs.num_rows:
        return pairs
    columns = [
        of_side.take(pairs[name], slice(place, place + 1))[0]
        for of_side, name, place in zip(rows, ("left", "right"), recheck.places, strict=True)
    ]
    kept = recheck.holds(columns)
    return pairs if kept.all() else pairs.take(np.flatnonzero(kept))

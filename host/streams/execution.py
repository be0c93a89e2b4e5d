# SPDX-License-Identifier: Apache-2.0
"""One execution of a join: stage words, exchange them with the device, decode what comes back."""

import numpy as np

from host.device import Stamps
from host.device.thread import DeviceThread, Finished
from host.encode.recheck import Recheck
from host.encode.values import FieldValues
from host.errors import DisorderError, EpochError, IllegalWordError, WindowOverflowError
from host.query.on_failure import OnFailure
from host.query.segments import Segment
from host.reference.exact import UInt64s
from host.reference.side import Side
from host.runtime import Columns
from host.streams.accelerator_params import AcceleratorJoinParams, Progress
from host.streams.adaptive_precision import AdaptivePrecision
from host.streams.completion import Completion
from host.streams.configuration import MARKS, configuration
from host.streams.delivery import Delivery
from host.streams.elastic_cores import ROWS, ElasticCores
from host.streams.epoch_changes import EpochChanges
from host.streams.epoch_rules import EpochRules
from host.streams.failed_cores import failed_cores, has_gates, participation
from host.streams.failure_response import FailureResponse
from host.streams.hash_choice import HashWatch
from host.streams.intake import Arrived, Intake
from host.streams.memory_watch import MemoryWatch
from host.streams.ordinal_results import result_decoder
from host.streams.pacing import QUANTUM, Pacing
from host.streams.pacing import ROWS as PACED_ROWS
from host.streams.row_store import Rows
from host.streams.segment_changes import SegmentChanges
from host.streams.staging import Staging
from host.streams.trace import Trace
from host.streams.turns import all_cores, segment_words
from host.streams.watch import DeviceWatch
from host.words import Blocks, WordCodec

__all__ = ["Execution"]


class Execution:
    """The state of one execution, kept together so that none of it can leak into the next one.

    Parameters
    ----------
    params : AcceleratorJoinParams
        What is executed.
    intake : Intake
        Where the tuples come from.
    completion : Completion or None
        What finds the rows that come alone; None if only pairs are asked for.

    Attributes
    ----------
    changes : SegmentChanges or EpochChanges
        Changes of the cores that store.
    refused : EpochError or None
        Why the execution ends before its input does.
    trace : Trace or None
        Latencies, if they are asked for.
    pacing : Pacing or None
        When the tuples arrive, if the input has a pace.
    elastic : ElasticCores or None
        What chooses the cores that store, if the join is elastic.
    adaptive : AdaptivePrecision or None
        What chooses the precision, if it adapts.
    failures : FailureResponse
        What is done about a core that fails.
    delivery : Delivery
        Results whose turn it is.
    watch : DeviceWatch
        Cycles and seconds.
    hashing : HashWatch
        Seeds that an index has, and whether the next execution gets others.
    done : bool
        Whether all results have been decoded.
    """

    def __init__(
        self, params: AcceleratorJoinParams, intake: Intake, completion: Completion | None
    ) -> None:
        device = params.device
        self._params, self._intake, self._completion = params, intake, completion
        self._codec = codec = WordCodec(device.manifest)
        self.hashing = HashWatch(device)
        self._staging = Staging(device, codec.input.columns)
        # Marks of earlier queries and of the setup come first.
        self._skip = self._staging.inherited + MARKS
        self._staging.append(self._setup(), marks=MARKS)
        self._staging.append(all_cores(device.manifest))
        self.refused: EpochError | None = None
        foreign = int(codec.tuple_counts(self._staging.words).sum())  # of an earlier query
        self.trace = Trace(foreign) if params.trace else None
        self._decoder = result_decoder(
            device.manifest,
            params.precision,
            params.plan.window,
            detailed=params.strict or params.trace,
            changes=params.adapts,
            origins=params.survives,
            restarts=params.on_failure is OnFailure.REPLAY,
        )
        if has_gates(device.manifest):
            self._begin_turns()
        self.failures = FailureResponse(params, self._staging, self._decoder)
        self.adaptive = (
            AdaptivePrecision(
                device, params.ordering, self._staging, self._decoder, marks=self._skip
            )
            if params.adapts
            else None
        )
        self.pacing: Pacing | None = None
        if params.pace is not None:
            self.pacing = Pacing(params.pace, params.plan.times, codec)
        self.elastic = self._elastic_cores()
        self.changes = self._changes()
        self._chunk_cycles, self._low_water = params.chunk_cycles, params.low_water
        if self.adaptive is not None:
            self._chunk_cycles = min(self._chunk_cycles, self.adaptive.chunk_cycles)
        if self.elastic is not None:
            self._chunk_cycles = min(self._chunk_cycles, self.elastic.chunk_cycles)
            self._low_water = min(self._low_water, ROWS)
        if self.pacing is not None:
            self._low_water = min(self._low_water, 2 * PACED_ROWS)
        self._accepted = -foreign  # tuples of this execution that the device has taken
        self.delivery = Delivery(params, completion)
        self.watch = DeviceWatch(device, params.deadline)
        self._memory = MemoryWatch(device)
        self._thread = DeviceThread(device)
        # One buffer is decoded while the device fills the other.
        self._rooms = [
            np.zeros((params.result_words, device.manifest.result_word.columns), np.uint64)
            for _ in range(2)
        ]
        self._flushed = False
        self.done = False
        self._pairs = 0

    def _setup(self) -> UInt64s:
        """Return the words that configure the accelerator."""
        params, manifest = self._params, self._params.device.manifest
        setup = configuration(
            manifest,
            params.plan.bounds,
            params.plan.window,
            params.precision,
            params.distinct,
            spreads=params.plan.spreads,
            choice=self.hashing.choice,
        )
        if has_gates(manifest):
            setup = np.concatenate([participation(params.device), setup])
        return setup

    def _changes(self) -> SegmentChanges | EpochChanges:
        """Return what tells where other cores store."""
        params = self._params
        if params.epochs == () and self.elastic is None:
            return SegmentChanges(params.schedule, params.plan.window)
        failed = failed_cores(params.device)
        rules = EpochRules(params.device.manifest, params.plan.window, failed)
        schedule = self.elastic or params.epoch_schedule
        return EpochChanges(schedule, params.plan, self._intake.floor, rules)

    @property
    def _live(self) -> list[int]:
        """The cores that had not failed when the execution began, in the order of their numbers."""
        device = self._params.device
        failed = failed_cores(device)
        return [core for core in range(device.manifest.storage.cores) if core not in failed]

    def _begin_turns(self) -> None:
        """Let all cores take turns that have not failed."""
        device, live = self._params.device, self._live
        self._staging.append(segment_words(device.manifest, live, self._params.plan.window))
        if len(live) < device.manifest.storage.cores:
            self._decoder.begin_segment(live)

    def _elastic_cores(self) -> ElasticCores | None:
        """Return what chooses the cores that store; None if the join is not elastic."""
        params = self._params
        if params.elastic is None:
            return None
        return ElasticCores(
            params.device, params.elastic, params.plan.window, self._live, self._staging,
            self._decoder, pacing=self.pacing, note=params.note_decision,
        )  # fmt: skip

    def take_input(self) -> bool:
        """Stage input until there is enough; return False if more input must arrive first."""
        while self._wants_input and not self._flushed:
            arrived = self._intake.take()
            if arrived is not None and arrived.count:
                self._stage_parts(arrived)
            elif arrived is not None:
                self._deliver([])
                if self.delivery.ready:
                    return True
            elif self._intake.at_end:
                self._end()
            else:
                return False
        return True

    def _end(self) -> None:
        """Stage the end of the input."""
        self._staging.append(self._codec.pack_control("FLUSH"), marks=1)
        self._decoder.flush()
        self._flushed = True

    def _stage_parts(self, arrived: Arrived) -> None:
        """Stage tuples, and between them the words that change which cores store.

        At an epoch that is refused, the input ends. What comes before it is still answered.
        """
        if self.elastic is not None:
            self.elastic.admit(arrived)
        try:
            for part in self.changes.cut(arrived):
                if isinstance(part, Segment):
                    self._change_turns(part)
                else:
                    self._stage(part)
        except EpochError as error:
            self.refused = error
            self.delivery.is_cut = True
            self._end()

    @property
    def _wants_input(self) -> bool:
        """Whether so few words wait that more should be staged.

        Words that the device was offered count only in an elastic join, whose changes come behind
        all of them, and in one whose input has a pace.
        """
        staging = self._staging
        is_behind = self.elastic is not None or self.pacing is not None
        few = staging.waiting if is_behind else staging.kept_back
        return few < self._low_water

    def _stage(self, arrived: Arrived) -> None:
        """Write tuples into the words that the device will be offered."""
        sides = arrived.sides
        places = self._codec.places(
            {side: tuples.places for side, tuples in sides.items()}, arrived.count
        )
        words = self._staging.reserve(places.count)
        fields: dict[Side, dict[str, Blocks]] = {}
        for side, tuples in sides.items():
            batch = tuples.batch
            fields[side] = {f"key.{name}": values for name, values in batch.keys.items()}
            if self._params.plan.timed:
                fields[side]["timestamp"] = FieldValues(batch.times)
        begins = {side: tuples.begin for side, tuples in sides.items()}
        self._codec.scatter(words, places, fields, begins)
        self._staging.add(places.count)
        self._decoder.stage(arrived)
        if self.pacing is not None:
            self.pacing.stage(arrived)
        if self.elastic is not None:
            self.elastic.stage(arrived)
        if self.failures.replay is not None:
            counts = {side: len(own.places) for side, own in sides.items()}
            self.failures.replay.log.append(words, counts)
        if self._completion is not None:
            self._completion.stage(arrived)
        self._intake.counters.staged_bytes += words.nbytes
        self._intake.counters.moved_words = self._staging.moved

    def _change_turns(self, segment: Segment) -> None:
        """Let other cores store the tuples that are staged from now on."""
        manifest, window = self._params.device.manifest, self._params.plan.window
        self._staging.append(segment_words(manifest, segment.cores, window))
        self._decoder.begin_segment(segment.cores)
        if self.elastic is not None:
            self.elastic.begin(segment)

    def exchange(self) -> int:
        """Finish an exchange, begin the next one, and decode results; return the words moved.

        Without words that wait, and before all are staged, only results that are ready are counted:
        rows that come alone must be handed on first.
        """
        if not (self._staging.waiting or self._flushed):
            return sum(pairs.num_rows for pairs in self.delivery.ready)
        if not self._thread.is_busy:
            self._begin()
        finished = self._thread.finish(self._params.deadline.of_exchange)
        self.watch.see(finished)
        words = self._settle(finished)
        if len(words):
            self._memory.check()
        if self.adaptive is not None:
            self.adaptive.steer(self.watch.cycles)
        if self.elastic is not None:
            self.elastic.steer()
        # The device must not run on after it has answered everything.
        if self._staging.waiting or (self._flushed and self._staging.due):
            self._begin()
        if len(words):
            stamps = finished.stamps
            self._decode(words, None if stamps is None else stamps.produced[: len(words)])
        if self.adaptive is not None:
            self.adaptive.note_flight()
        if self.pacing is not None:
            waited = self.pacing.answer(self._decoder.complete, self.watch.cycles)
            if self.elastic is not None:
                self.elastic.note_waits(waited)
        if self.elastic is not None:
            self.elastic.note_flight()
        return max(1, finished.done.accepted + len(words))

    def _begin(self) -> None:
        """Begin an exchange that offers the device all waiting words."""
        words = self._staging.offer()
        results = self._rooms.pop(0)
        self._rooms.append(results)
        # Accepting a word takes at least one cycle, so with this limit the device stops before it
        # runs dry while it could be fed. After FLUSH, it returns by itself with the mark.
        cycles = self._chunk_cycles
        if self.pacing is not None:
            now = self.watch.cycles
            words = words[: self.pacing.due_words(words, self._accepted, now)]
            cycles = min(cycles, QUANTUM)
        elif not self._flushed:
            cycles = min(cycles, len(words))
        stamps = Stamps.for_arrays(words, results) if self._params.trace else None
        self._thread.begin(words, results, cycles=cycles, stamps=stamps)

    def _settle(self, finished: Finished) -> UInt64s:
        """Record the words that an exchange moved; return its result words."""
        done = finished.done
        self._staging.accept(done.accepted)
        if self.trace is not None and finished.stamps is not None:
            accepted = finished.words[: done.accepted]
            stamps = finished.stamps.accepted[: done.accepted]
            self.trace.accept(np.repeat(stamps, self._codec.tuple_counts(accepted)))
        if self.pacing is not None:
            self.pacing.require_clock(done.cycles, self._params.device.uri)
            taken = self._codec.tuple_counts(finished.words[: done.accepted])
            self._accepted += int(taken.sum())
        words = finished.results[: done.produced]
        if self._staging.due:
            self._staging.see_marks(int(np.count_nonzero(self._codec.marks(words))))
        if self.adaptive is not None:
            self.adaptive.settle(finished)
        if self.elastic is not None:
            self.elastic.settle(finished)
        return words

    def abandon(self) -> None:
        """End the execution, wherever it stands; the next one of the device skips its results."""
        try:
            if self._thread.is_busy and not self._thread.is_stuck:
                self._settle(self._thread.finish(self._params.deadline.of_exchange))
        finally:
            self._thread.close()
            self._staging.abandon()

    def _decode(self, words: UInt64s, stamps: UInt64s | None) -> None:
        """Decode result words, and queue the results whose turn it is."""
        params = self._params
        results, stamps = self._codec.split_words(words, stamps)
        start = self._skipped(results)
        results, stamps = results[start:], None if stamps is None else stamps[start:]
        parts, stars = self._decoder.decode(results, stamps)
        for recheck in params.rechecks:
            parts = [_holding(recheck, pairs, params.rows) for pairs in parts]
        self._check_faults()
        parts, restart = self.failures.see(
            self._decoder, self.delivery, parts, self.watch.cycles, flushed=self._flushed
        )
        if restart is not None:
            self._decoder, self._skip = restart.decoder, restart.skip
        # Each change of the precision, and each failure, has a mark of its own.
        changed = 0 if self.adaptive is None else self.adaptive.record.changed
        if self._decoder.marks > changed + self.failures.marks:
            self.done = True
            self.hashing.finish()
        if self._completion is not None:
            for pairs in parts:
                self._completion.mark(pairs)
        owned = (self._intake.owned(pairs) for pairs in parts if params.how.has_pairs)
        parts = [pairs for pairs in owned if pairs.num_rows]
        if self.trace is not None:
            parts = [self.trace.pairs(pairs) for pairs in parts]
            self.trace.stars(stars)
            self.trace.forget(self._complete)
        self._pairs += sum(pairs.num_rows for pairs in parts)
        self._deliver(parts)
        if params.report is not None:
            params.report(Progress(self._complete, self._pairs, self.watch.cycles))

    @property
    def _complete(self) -> int:
        """Number of first arrivals whose results can be handed on."""
        return self.failures.limit(self._decoder.complete)

    def _deliver(self, parts: list[Columns]) -> None:
        """Queue the results whose turn it is; release rows that no later result can refer to."""
        self.delivery.push(parts, self._complete, self._intake.reached, done=self.done)
        oldest = {side: self._decoder.oldest_row(side) for side in Side}
        self.delivery.allow(
            {
                side: self._intake.next_row(side) if row is None else row
                for side, row in oldest.items()
            }
        )

    def _skipped(self, results: UInt64s) -> int:
        """Return how many results come up to and including the mark of this execution's CLEAR."""
        if not self._skip:
            return 0
        marks = np.flatnonzero(self._codec.marks(results))[: self._skip]
        self._skip -= len(marks)
        return len(results) if self._skip else int(marks[-1]) + 1

    def _check_faults(self) -> None:
        """Raise an error if the accelerator has reported a fault."""
        faults, manifest = self._decoder.faults, self._params.device.manifest
        if faults.illegal:  # other faults may follow from this one
            raise IllegalWordError(self._params.device.uri)
        if faults.overflow:
            raise WindowOverflowError(
                faults.overflow[0],
                manifest.capacity,
                cores=manifest.storage.cores,
                engine=manifest.engine,
            )
        if faults.disorder:
            arrivals = self._decoder.arrivals
            raise DisorderError("timestamp", arrivals, "a later time", "an earlier one")


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

# SPDX-License-Identifier: Apache-2.0
"""One execution of a join: stage words, exchange them with the device, decode what comes back."""

import numpy as np

from host.accelerator.delivery import Delivery
from host.accelerator.failure_response import FailureResponse
from host.accelerator.params import AcceleratorJoinParams, Progress
from host.accelerator.steering import Steering
from host.cores.epoch_changes import EpochChanges
from host.cores.epoch_rules import EpochRules
from host.cores.failed_cores import failed_cores, has_gates, participation
from host.cores.segment_changes import SegmentChanges
from host.cores.turns import all_cores, segment_words
from host.device import Stamps
from host.device.thread import DeviceThread, Finished
from host.encode.recheck import Recheck
from host.encode.values import FieldValues
from host.errors import DisorderError, EpochError, IllegalWordError, WindowOverflowError
from host.exchange.cell_choice import fitted_words
from host.exchange.configuration import MARKS, configuration
from host.exchange.hash_choice import HashWatch
from host.exchange.memory_watch import MemoryWatch
from host.exchange.staging import Staging
from host.exchange.watch import DeviceWatch
from host.hardware.storage_segments import SEGMENTS
from host.query.on_failure import OnFailure
from host.query.segments import Segment
from host.reference.exact import UInt64s
from host.reference.side import Side
from host.results.completion import Completion
from host.results.ordinals import result_decoder
from host.results.trace import Trace
from host.runtime import Columns
from host.tuples.intake import Arrived, Intake
from host.tuples.row_store import Rows
from host.words import Blocks, WordCodec

__all__ = ["ROOMS", "Execution"]

ROOMS = 2
"""Rooms for result words: one is decoded while the device fills the other."""


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
    result_words : int
        Largest number of result words in one exchange.

    Attributes
    ----------
    changes : SegmentChanges or EpochChanges
        Changes of the cores that store.
    refused : EpochError or None
        Why the execution ends before its input does.
    trace : Trace or None
        Latencies, if they are asked for.
    steering : Steering
        What chooses precision and cores while the join runs, and when tuples are offered.
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
        self,
        params: AcceleratorJoinParams,
        intake: Intake,
        completion: Completion | None,
        result_words: int,
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
        failed = failed_cores(device)
        live = [core for core in range(device.manifest.storage.cores) if core not in failed]
        if has_gates(device.manifest):
            self._begin_turns(live)
        self.failures = FailureResponse(params, self._staging, self._decoder)
        self.steering = Steering(params, self._staging, self._decoder, cores=live, marks=self._skip)
        self.changes = self._changes()
        self.delivery = Delivery(params, completion)
        self.watch = DeviceWatch(device, params.deadline)
        self._memory = MemoryWatch(device)
        self._thread = DeviceThread(device)
        self._rooms = [
            np.zeros((result_words, device.manifest.result_word.columns), np.uint64)
            for _ in range(ROOMS)
        ]
        self._flushed = False
        self._fitted = False  # whether the cells of an index suit the first tuples
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
            newest_of=params.newest_of,
        )
        if has_gates(manifest):
            setup = np.concatenate([participation(params.device), setup])
        return setup

    def _changes(self) -> SegmentChanges | EpochChanges:
        """Return what tells where other cores store than those that have failed."""
        params, elastic = self._params, self.steering.elastic
        if params.epochs == () and elastic is None:
            return SegmentChanges(params.schedule, params.plan.window)
        rules = EpochRules(params.device, params.plan.window)
        schedule = elastic or params.epoch_schedule
        # A failure begins a segment at once, so a list of cores has to be free for it.
        lists = SEGMENTS - params.survives
        return EpochChanges(schedule, params.plan, self._intake.floor, rules, lists=lists)

    def _begin_turns(self, live: list[int]) -> None:
        """Let all cores take turns that have not failed."""
        manifest = self._params.device.manifest
        self._staging.append(segment_words(manifest, live, self._params.plan.window))
        if len(live) < manifest.storage.cores:
            self._decoder.begin_segment(live)

    def take_input(self) -> bool:
        """Stage input until there is enough; return False if more input must arrive first."""
        while self.steering.wants_input and not self._flushed:
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
        if not self._fitted:
            self._fitted = True
            params = self._params
            fitted = fitted_words(params.device.manifest, params.plan, arrived, self.hashing.choice)
            if fitted is not None:
                self._staging.append(fitted)
        if self.steering.elastic is not None:
            self.steering.elastic.admit(arrived)
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
        self.steering.stage(arrived)
        if self.failures.replay is not None:
            counts = {side: len(own.places) for side, own in sides.items()}
            self.failures.replay.log.append(words, counts)
        if self._completion is not None:
            self._completion.stage(arrived)
        self._intake.counters.staged_bytes += words.nbytes
        self._intake.counters.moved_words = self._staging.moved

    def _change_turns(self, segment: Segment) -> None:
        """Let other cores store the tuples that are staged from now on, but for failed ones."""
        manifest, window = self._params.device.manifest, self._params.plan.window
        failed = failed_cores(self._params.device)
        cores = tuple(core for core in segment.cores if core not in failed)
        self._staging.append(segment_words(manifest, cores, window))
        self._decoder.begin_segment(cores)
        self.steering.begin(segment)

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
        self.steering.steer(self.watch.cycles)
        # The device must not run on after it has answered everything.
        if self._staging.waiting or (self._flushed and self._staging.due):
            self._begin()
        if len(words):
            stamps = finished.stamps
            self._decode(words, None if stamps is None else stamps.produced[: len(words)])
        self.steering.note(self._decoder.complete, self.watch.cycles)
        return max(1, finished.done.accepted + len(words))

    def _begin(self) -> None:
        """Begin an exchange that offers the device the waiting words whose time has come."""
        words = self._staging.offer()
        results = self._rooms.pop(0)
        self._rooms.append(results)
        now = self.watch.cycles
        count, cycles = self.steering.bounds(words, now, flushed=self._flushed)
        words = words[:count]
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
        words = finished.results[: done.produced]
        if self._staging.due:
            self._staging.see_marks(int(np.count_nonzero(self._codec.marks(words))))
        self.steering.settle(finished)
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
        turns = self.failures.take_turns()
        if turns is not None:
            self.changes.go_on(turns)
            self.steering.go_on(turns)
        # Each change of the precision, and each failure, has a mark of its own.
        adaptive = self.steering.adaptive
        changed = 0 if adaptive is None else adaptive.record.changed
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

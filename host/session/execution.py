# SPDX-License-Identifier: Apache-2.0
"""One execution of a join: stage words, exchange them with the device, decode what comes back."""

from collections.abc import Sequence

import numpy as np

from host.columns.codes import FieldValues
from host.columns.fields import Recheck
from host.devices import Stamps
from host.devices.waiting import DeviceThread, DeviceWatch, Finished, MemoryWatch
from host.errors import DisorderError, EpochError, IllegalWordError, WindowOverflowError
from host.protocol.codecs import WordCodec
from host.protocol.configuration import MARKS, all_cores, configuration, segment_words
from host.protocol.input_words import Blocks
from host.protocol.segments import SEGMENTS
from host.query.cores import Segment
from host.query.queries import OnFailure
from host.reference.arrivals import Side, UInt64s
from host.runtime import Columns
from host.session import control
from host.session.control import AdaptivePrecision, ElasticCores, Pacing
from host.session.cores import (
    EpochChanges,
    EpochRules,
    NewTurns,
    SegmentChanges,
    failed_cores,
    has_gates,
    participation,
)
from host.session.decoder import ResultDecoder
from host.session.failures import FailureResponse
from host.session.intake import Arrived, Intake
from host.session.params import AcceleratorJoinParams, Progress
from host.session.restart import Trace, result_decoder
from host.session.results import Completion, Delivery
from host.session.rows import Rows
from host.session.staging import HashWatch, Staging, fitted_words

__all__ = [
    "Answer",
    "Execution",
    "Offering",
    "ROOMS",
    "Steering",
    "holding",
]

# What is observed of a device while it joins, and how its next exchange follows from that.


class Steering:
    """The precision that adapts, the cores of an elastic join, and the pace of the input.

    Each of the three is there if it is asked for. Without any of them, every exchange offers all
    words that wait.

    Parameters
    ----------
    params : AcceleratorJoinParams
        What is executed.
    staging : Staging
        The words that wait; it holds those of the configuration.
    decoder : ResultDecoder
        The decoder of the results.
    cores : sequence of int
        The cores that take turns at first.
    marks : int
        Marks that come before the first tuple.

    Attributes
    ----------
    adaptive : AdaptivePrecision or None
        What chooses the precision.
    elastic : ElasticCores or None
        What chooses the cores that store.
    pacing : Pacing or None
        When the tuples arrive.
    """

    def __init__(
        self,
        params: AcceleratorJoinParams,
        staging: Staging,
        decoder: ResultDecoder,
        *,
        cores: Sequence[int],
        marks: int,
    ) -> None:
        device = params.device
        self._staging = staging
        self.adaptive: AdaptivePrecision | None = None
        self.elastic: ElasticCores | None = None
        self.pacing: Pacing | None = None
        self._chunk_cycles, self._low_water = params.chunk_cycles, params.low_water
        if params.adapts:
            self.adaptive = AdaptivePrecision(
                device, params.ordering, staging, decoder, marks=marks
            )
            self._chunk_cycles = min(self._chunk_cycles, self.adaptive.chunk_cycles)
        if params.pace is not None:
            self.pacing = Pacing(params.pace, params.plan.times, device, staging)
            self._chunk_cycles = min(self._chunk_cycles, control.QUANTUM)
            self._low_water = min(self._low_water, 2 * control.PACED_ROWS)
        if params.elastic is not None:
            self.elastic = ElasticCores(
                device, params.elastic, params.plan.window, cores, staging,
                pacing=self.pacing, note=params.note_decision,
            )  # fmt: skip
            self._chunk_cycles = min(self._chunk_cycles, self.elastic.chunk_cycles)
            self._low_water = min(self._low_water, control.ROWS)

    @property
    def marks(self) -> int:
        """Number of marks that answer changes of the precision."""
        return 0 if self.adaptive is None else self.adaptive.record.changed

    @property
    def wants_input(self) -> bool:
        """Whether so few words wait that more should be staged.

        Words that the device was offered count only in an elastic join, whose changes come behind
        all of them, and in one whose input has a pace.
        """
        is_behind = self.elastic is not None or self.pacing is not None
        few = self._staging.waiting if is_behind else self._staging.kept_back
        return few < self._low_water

    def stage(self, arrived: Arrived) -> None:
        """Take tuples that are staged."""
        if self.pacing is not None:
            self.pacing.stage(arrived)
        if self.elastic is not None:
            self.elastic.stage(arrived)

    def begin(self, segment: Segment) -> None:
        """Take note of a segment that begins with the next tuple that is staged."""
        if self.elastic is not None:
            self.elastic.begin(segment)

    def go_on(self, turns: NewTurns) -> None:
        """Take note of a failure: these cores store what is staged from now on."""
        for part in (self.pacing, self.elastic):
            if part is not None:
                part.go_on(turns)

    def bounds(self, words: UInt64s, cycle: int, *, flushed: bool) -> tuple[int, int]:
        """Return how many of the waiting words the next exchange offers, and its most cycles.

        Accepting a word takes at least one cycle, so with this limit the device stops before it
        runs dry while it could be fed. After FLUSH, it returns by itself with the mark.

        Parameters
        ----------
        words : array of uint64
            The words.
        cycle : int
            Cycles that the device has run.
        flushed : bool
            Whether FLUSH is among the words so far.
        """
        if self.pacing is not None:
            return self.pacing.due_words(words, cycle), self._chunk_cycles
        limit = self._chunk_cycles if flushed else min(self._chunk_cycles, len(words))
        return len(words), limit

    def settle(self, finished: Finished) -> None:
        """Take the outcome of an exchange whose words and marks :class:`Staging` knows already."""
        for part in (self.pacing, self.adaptive, self.elastic):
            if part is not None:
                part.settle(finished)

    def steer(self, cycle: int) -> None:
        """Change the precision or the cores, if what was observed calls for it.

        Called while the device is in no exchange.

        Parameters
        ----------
        cycle : int
            Cycles that the device has run.
        """
        if self.adaptive is not None:
            self.adaptive.steer(cycle)
        if self.elastic is not None:
            self.elastic.steer()

    def note(self, complete: int, cycle: int) -> None:
        """Observe what is answered, now that all results that have come are decoded.

        Parameters
        ----------
        complete : int
            Tuples that are answered.
        cycle : int
            Cycles that the device has run.
        """
        if self.pacing is not None:
            waited = self.pacing.answer(complete, cycle)
            if self.elastic is not None:
                self.elastic.note_waits(waited)
        if self.adaptive is not None:
            self.adaptive.note_flight()
        if self.elastic is not None:
            self.elastic.note_flight(complete)


# What comes back from a device in one execution: result words become results in their turn.


class Answer:
    """Decodes the result words of one execution, and queues the results whose turn it is.

    Parameters
    ----------
    params : AcceleratorJoinParams
        What is executed.
    intake : Intake
        Where the tuples come from.
    completion : Completion or None
        What finds the rows that come alone; None if only pairs are asked for.
    codec : WordCodec
        Layouts of the words.
    decoder : ResultDecoder
        What turns results into pairs of row numbers.
    failures : FailureResponse
        What is done about a core that fails.
    steering : Steering
        What changes the precision, with marks of its own.
    skip : int
        Marks that come before the first result of this execution.
    foreign : int
        Tuples of an earlier query that the device takes first.

    Attributes
    ----------
    decoder : ResultDecoder
        The decoder; another one after a failure that is answered again.
    delivery : Delivery
        Results whose turn it is.
    trace : Trace or None
        Latencies, if they are asked for.
    done : bool
        Whether all results have been decoded.
    """

    def __init__(
        self,
        params: AcceleratorJoinParams,
        intake: Intake,
        completion: Completion | None,
        codec: WordCodec,
        decoder: ResultDecoder,
        failures: FailureResponse,
        steering: Steering,
        *,
        skip: int,
        foreign: int,
    ) -> None:
        self._params, self._intake, self._completion = params, intake, completion
        self._codec, self._failures, self._steering = codec, failures, steering
        self.decoder = decoder
        self.delivery = Delivery(params, completion)
        self.trace = Trace(foreign) if params.trace else None
        self.done = False
        self._skip = skip
        self._pairs = 0

    @property
    def complete(self) -> int:
        """Number of first arrivals whose results can be handed on."""
        return self._failures.limit(self.decoder.complete)

    def accept(self, words: UInt64s, stamps: UInt64s) -> None:
        """Take the cycles in which the device accepted these input words; only with a trace."""
        if self.trace is not None:
            self.trace.accept(np.repeat(stamps, self._codec.tuple_counts(words)))

    def decode(self, words: UInt64s, stamps: UInt64s | None, cycles: int, *, flushed: bool) -> None:
        """Decode result words, and queue the results whose turn it is.

        Parameters
        ----------
        words : array of uint64
            The words.
        stamps : array of uint64 or None
            Cycles in which they left the device; None without a trace.
        cycles : int
            Cycles that the device has run.
        flushed : bool
            Whether the FLUSH of the execution has been staged.

        Raises
        ------
        JoinError
            If the accelerator tells of a fault, or of a core that has failed.
        """
        params = self._params
        results, stamps = self._codec.split_words(words, stamps)
        start = self._skipped(results)
        results, stamps = results[start:], None if stamps is None else stamps[start:]
        parts, stars = self.decoder.decode(results, stamps)
        for recheck in params.rechecks:
            parts = [holding(recheck, pairs, params.rows) for pairs in parts]
        self._check_faults()
        parts, restart = self._failures.see(
            self.decoder, self.delivery, parts, cycles, flushed=flushed
        )
        if restart is not None:
            self.decoder, self._skip = restart.decoder, restart.skip
        # Each change of the precision, and each failure, has a mark of its own.
        if self.decoder.marks > self._steering.marks + self._failures.marks:
            self.done = True
        if self._completion is not None:
            for pairs in parts:
                self._completion.mark(pairs)
        owned = (self._intake.owned(pairs) for pairs in parts if params.how.has_pairs)
        parts = [pairs for pairs in owned if pairs.num_rows]
        if self.trace is not None:
            parts = [self.trace.pairs(pairs) for pairs in parts]
            self.trace.stars(stars)
            self.trace.forget(self.complete)
        self._pairs += sum(pairs.num_rows for pairs in parts)
        self.deliver(parts)
        if params.report is not None:
            params.report(Progress(self.complete, self._pairs, cycles))

    def deliver(self, parts: list[Columns]) -> None:
        """Queue the results whose turn it is; release rows that no later result can refer to."""
        self.delivery.push(parts, self.complete, self._intake.reached, done=self.done)
        oldest = {side: self.decoder.oldest_row(side) for side in Side}
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
        faults, manifest = self.decoder.faults, self._params.device.manifest
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
            arrivals = self.decoder.arrivals
            raise DisorderError("timestamp", arrivals, "a later time", "an earlier one")


def holding(recheck: Recheck, pairs: Columns, rows: tuple[Rows, Rows]) -> Columns:
    """Return the pairs for which a term holds."""
    if not pairs.num_rows:
        return pairs
    columns = [
        of_side.take(pairs[name], slice(place, place + 1))[0]
        for of_side, name, place in zip(rows, ("left", "right"), recheck.places, strict=True)
    ]
    kept = recheck.holds(columns)
    return pairs if kept.all() else pairs.take(np.flatnonzero(kept))


# What a device is offered in one execution: tuples, and the control words between them.


class Offering:
    """Stages the tuples of one execution, as far as they have arrived and are wanted.

    Parameters
    ----------
    params : AcceleratorJoinParams
        What is executed.
    intake : Intake
        Where the tuples come from.
    completion : Completion or None
        What finds the rows that come alone; None if only pairs are asked for.
    codec : WordCodec
        Layouts of the words.
    staging : Staging
        The words that wait; it holds those of the configuration.
    answer : Answer
        What decodes the results; its decoder is told what is staged.
    failures : FailureResponse
        What sends tuples again after a core has failed.
    steering : Steering
        What tells how much input is wanted, and which cores store.
    choice : int
        Choice of the hash seeds of an index.

    Attributes
    ----------
    changes : SegmentChanges or EpochChanges
        Changes of the cores that store.
    refused : EpochError or None
        Why the execution ends before its input does.
    flushed : bool
        Whether everything has been staged, and FLUSH behind it.
    """

    def __init__(
        self,
        params: AcceleratorJoinParams,
        intake: Intake,
        completion: Completion | None,
        codec: WordCodec,
        staging: Staging,
        answer: Answer,
        failures: FailureResponse,
        steering: Steering,
        choice: int,
    ) -> None:
        self._params, self._intake, self._completion = params, intake, completion
        self._codec, self._staging, self._answer = codec, staging, answer
        self._failures, self._steering, self._choice = failures, steering, choice
        self.changes = self._changes()
        self.refused: EpochError | None = None
        self.flushed = False
        self._fitted = False  # whether the cells of an index suit the first tuples

    def _changes(self) -> SegmentChanges | EpochChanges:
        """Return what tells where other cores store than those that have failed."""
        params, elastic = self._params, self._steering.elastic
        if params.epochs == () and elastic is None:
            return SegmentChanges(params.schedule, params.plan.window)
        rules = EpochRules(params.device, params.plan.window)
        schedule = elastic or params.epoch_schedule
        # A failure begins a segment at once, so a list of cores has to be free for it.
        lists = SEGMENTS - params.survives
        return EpochChanges(schedule, params.plan, self._intake.floor, rules, lists=lists)

    def take_input(self) -> bool:
        """Stage input until there is enough; return False if more input must arrive first.

        A device that takes words slowly leaves no room for more, and then no more are staged.
        """
        while self._steering.wants_input and self._has_room and not self.flushed:
            arrived = self._intake.take()
            if arrived is not None and arrived.count:
                self._stage_parts(arrived)
            elif arrived is not None:
                self._answer.deliver([])
                if self._answer.delivery.ready:
                    return True
            elif self._intake.at_end:
                self._end()
            else:
                return False
        return True

    @property
    def _has_room(self) -> bool:
        """Whether the next rows of either side fit beside the words that wait."""
        return self._staging.room >= len(Side) * self._intake.most_rows

    def go_on(self, turns: NewTurns) -> None:
        """Take note of a failure: these cores store what is staged from now on."""
        self.changes.go_on(turns)
        self._steering.go_on(turns)

    def _end(self) -> None:
        """Stage the end of the input."""
        self._staging.append(self._codec.pack_control("FLUSH"), marks=1)
        self._answer.decoder.flush()
        self.flushed = True

    def _stage_parts(self, arrived: Arrived) -> None:
        """Stage tuples, and between them the words that change which cores store.

        At an epoch that is refused, the input ends. What comes before it is still answered.
        """
        if not self._fitted:
            self._fitted = True
            params = self._params
            fitted = fitted_words(params.device.manifest, params.plan, arrived, self._choice)
            if fitted is not None:
                self._staging.append(fitted)
        if self._steering.elastic is not None:
            self._steering.elastic.admit(arrived)
        try:
            for part in self.changes.cut(arrived):
                if isinstance(part, Segment):
                    self._change_turns(part)
                else:
                    self._stage(part)
        except EpochError as error:
            self.refused = error
            self._answer.delivery.is_cut = True
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
        self._answer.decoder.stage(arrived)
        self._steering.stage(arrived)
        if self._failures.replay is not None:
            counts = {side: len(own.places) for side, own in sides.items()}
            self._failures.replay.log.append(words, counts)
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
        self._answer.decoder.begin_segment(cores)
        self._steering.begin(segment)


# One execution of a join: stage words, exchange them with the device, decode what comes back.

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
    staged_words : int
        Number of input words in an area of the staging.

    Attributes
    ----------
    offering : Offering
        What stages the tuples, and changes which cores store them.
    answer : Answer
        What decodes the results, and queues those whose turn it is.
    steering : Steering
        What chooses precision and cores while the join runs, and when tuples are offered.
    failures : FailureResponse
        What is done about a core that fails.
    watch : DeviceWatch
        Cycles and seconds.
    hashing : HashWatch
        Seeds that an index has, and whether the next execution gets others.
    """

    def __init__(
        self,
        params: AcceleratorJoinParams,
        intake: Intake,
        completion: Completion | None,
        result_words: int,
        staged_words: int,
    ) -> None:
        device = params.device
        self._params = params
        self._codec = codec = WordCodec(device.manifest)
        self.hashing = HashWatch(device)
        self._staging = staging = Staging(device, codec.input.columns, staged_words)
        # Marks of earlier queries and of the setup come first.
        skip = staging.inherited + MARKS
        staging.append(self._setup(), marks=MARKS)
        staging.append(all_cores(device.manifest))
        foreign = int(codec.tuple_counts(staging.words).sum())  # of an earlier query
        decoder = self._decoder()
        failed = failed_cores(device)
        live = [core for core in range(device.manifest.storage.cores) if core not in failed]
        if has_gates(device.manifest):
            self._begin_turns(decoder, live)
        self.failures = FailureResponse(params, staging, decoder)
        self.steering = Steering(params, staging, decoder, cores=live, marks=skip)
        self.answer = Answer(
            params, intake, completion, codec, decoder, self.failures, self.steering,
            skip=skip, foreign=foreign,
        )  # fmt: skip
        self.offering = Offering(
            params, intake, completion, codec, staging, self.answer, self.failures, self.steering,
            self.hashing.choice,
        )  # fmt: skip
        self.watch = DeviceWatch(device, params.deadline)
        self._memory = MemoryWatch(device)
        self._thread = DeviceThread(device)
        self._rooms = [
            np.zeros((result_words, device.manifest.result_word.columns), np.uint64)
            for _ in range(ROOMS)
        ]

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

    def _decoder(self) -> ResultDecoder:
        """Return what decodes the results of this execution."""
        params = self._params
        return result_decoder(
            params.device.manifest,
            params.precision,
            params.plan.window,
            detailed=params.strict or params.trace,
            changes=params.adapts,
            origins=params.survives,
            restarts=params.on_failure is OnFailure.REPLAY,
        )

    def _begin_turns(self, decoder: ResultDecoder, live: list[int]) -> None:
        """Let all cores take turns that have not failed."""
        manifest = self._params.device.manifest
        self._staging.append(segment_words(manifest, live, self._params.plan.window))
        if len(live) < manifest.storage.cores:
            decoder.begin_segment(live)

    def exchange(self) -> int:
        """Finish an exchange, begin the next one, and decode results; return the words moved.

        Without words that wait, and before all are staged, only results that are ready are counted:
        rows that come alone must be handed on first.
        """
        if not (self._staging.waiting or self.offering.flushed):
            return sum(pairs.num_rows for pairs in self.answer.delivery.ready)
        if not self._thread.is_busy:
            self._begin()
        finished = self._thread.finish(self._params.deadline.of_exchange)
        self.watch.see(finished)
        words = self._settle(finished)
        if len(words):
            self._memory.check()
        self.steering.steer(self.watch.cycles)
        # The device must not run on after it has answered everything.
        if self._staging.waiting or (self.offering.flushed and self._staging.due):
            self._begin()
        if len(words):
            stamps = finished.stamps
            self._decode(words, None if stamps is None else stamps.produced[: len(words)])
        self.steering.note(self.answer.decoder.complete, self.watch.cycles)
        return max(1, finished.done.accepted + len(words))

    def _begin(self) -> None:
        """Begin an exchange that offers the device the waiting words whose time has come."""
        words = self._staging.offer()
        results = self._rooms.pop(0)
        self._rooms.append(results)
        count, cycles = self.steering.bounds(
            words, self.watch.cycles, flushed=self.offering.flushed
        )
        words = words[:count]
        stamps = Stamps.for_arrays(words, results) if self._params.trace else None
        self._thread.begin(words, results, cycles=cycles, stamps=stamps)

    def _settle(self, finished: Finished) -> UInt64s:
        """Record the words that an exchange moved; return its result words."""
        done = finished.done
        self._staging.accept(done.accepted)
        if finished.stamps is not None:
            self.answer.accept(
                finished.words[: done.accepted], finished.stamps.accepted[: done.accepted]
            )
        words = finished.results[: done.produced]
        if self._staging.due:
            self._staging.see_marks(int(np.count_nonzero(self._codec.marks(words))))
        self.steering.settle(finished)
        return words

    def _decode(self, words: UInt64s, stamps: UInt64s | None) -> None:
        """Decode result words, and take note of cores that turn out to have failed."""
        self.answer.decode(words, stamps, self.watch.cycles, flushed=self.offering.flushed)
        turns = self.failures.take_turns()
        if turns is not None:
            self.offering.go_on(turns)
        if self.answer.done:
            self.hashing.finish()

    def abandon(self) -> None:
        """End the execution, wherever it stands; the next one of the device skips its results."""
        try:
            if self._thread.is_busy and not self._thread.is_stuck:
                self._settle(self._thread.finish(self._params.deadline.of_exchange))
        finally:
            self._thread.close()
            self._staging.abandon()

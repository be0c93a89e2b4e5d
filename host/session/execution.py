# SPDX-License-Identifier: Apache-2.0
"""One execution of a join: stage words, exchange them with the device, decode what comes back."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from host.arrays import UInt64s
from host.columns.codes import FieldValues
from host.devices import Stamps
from host.devices.waiting import DeviceThread, DeviceWatch, MemoryWatch, Turn
from host.errors import DeviceError, EpochError, OrderError
from host.protocol.codecs import WordCodec
from host.protocol.configuration import MARKS, all_cores, configuration, segment_words
from host.protocol.input_words import Blocks
from host.protocol.segments import SEGMENTS, outgrown
from host.query.cores import Epoch
from host.reference.arrivals import Side
from host.runtime import Buffer
from host.session.control import (
    PACED_ROWS,
    ROWS,
    AdaptivePrecision,
    ElasticCores,
    Pacing,
    Steering,
)
from host.session.cores import (
    EpochChanges,
    failed_cores,
    has_gates,
    participation,
)
from host.session.decoder import ResultDecoder, result_decoder
from host.session.failures import failure_response
from host.session.intake import Arrived
from host.session.params import ROOMS, JoinParams
from host.session.records import Trace
from host.session.run import Run
from host.session.staging import HashWatch, Staging, fitted_words

__all__ = ["Execution"]


class Execution(Run):
    """One conversation with a device, kept together so that none of it can leak into the next one.

    Each turn stages tuples as far as they have arrived and are wanted, with the control words
    between them; offers the waiting words to the device; and decodes the results that came before,
    while the device works on. Result words become results when their turn has come.

    Parameters
    ----------
    params, inputs
        See :class:`Run`.
    result_words : int
        Largest number of result words in one exchange.
    staged_words : int
        Number of input words in an area of the staging.
    """

    def __init__(
        self,
        params: JoinParams,
        inputs: Sequence[Buffer[pa.RecordBatch]],
        result_words: int,
        staged_words: int,
    ) -> None:
        super().__init__(params, inputs)
        device, manifest = params.device, params.device.manifest
        measured, intake = self.measured, self._intake
        # A third of an area has room for a batch of either side.
        intake.most_rows = min(intake.most_rows, staged_words // 6)
        if params.query.elastic is not None:
            intake.most_rows = min(ROWS, max(1, manifest.storage.sub_window // 2))
        if params.options.pace is not None:
            intake.most_rows = min(intake.most_rows, PACED_ROWS)
        self._codec = codec = WordCodec(manifest)
        self._hashing = HashWatch(device)
        self._staging = staging = Staging(device, codec.input.columns, staged_words)
        staging.append(self._setup(), marks=MARKS)
        staging.append(all_cores(manifest))
        foreign = int(codec.tuple_counts(staging.words).sum())  # of an earlier query
        decoder = result_decoder(
            manifest,
            params.precision,
            params.plan.window,
            detailed=params.strict or params.options.trace,
            changes=params.adapts,
            origins=params.survives,
        )
        self._failures = failure_response(params, staging, self.delivery, decoder)
        # Marks of earlier queries and of the setup come first.
        self._failures.skip = staging.inherited + MARKS
        failed = failed_cores(device)
        self._live = [core for core in range(manifest.storage.cores) if core not in failed]
        if has_gates(manifest):
            # Let all cores take turns that have not failed.
            staging.append(segment_words(manifest, self._live, params.plan.window))
            if len(self._live) < manifest.storage.cores:
                self._decoder.begin_segment(self._live)
        measured.failures = self._failures.record
        self._chunk_cycles, self._low_water = params.options.chunk_cycles, params.options.low_water
        self._steering = self._controllers(-foreign)
        self._changes = self._core_changes()
        measured.epochs, measured.superseded = self._changes.epochs, self._changes.superseded
        if params.options.trace:
            measured.trace = Trace(foreign)
        self._flushed = False  # whether everything has been staged, and FLUSH behind it
        self._fitted = False  # whether the cells of an index suit the first tuples
        self._watch = DeviceWatch(device, params.options.deadline, measured)
        self._memory = MemoryWatch(device)
        self._thread = DeviceThread(device)
        self._rooms = [
            np.zeros((result_words, manifest.result_word.columns), np.uint64) for _ in range(ROOMS)
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
            choice=self._hashing.choice,
            newest_of=params.newest_of,
        )
        if has_gates(manifest):
            setup = np.concatenate([participation(params.device), setup])
        return setup

    def _controllers(self, accepted: int) -> list[Steering]:
        """Return what steers the device, in the order in which they are told what happens."""
        params, staging = self._params, self._staging
        device, measured, query = params.device, self.measured, params.query
        steering: list[Steering] = []
        pacing: Pacing | None = None
        if params.options.pace is not None:
            pacing = Pacing(params.options.pace, params.plan.times, device, accepted, measured)
            steering.append(pacing)
        if params.adapts:
            adaptive = AdaptivePrecision(
                device,
                query.ordering,
                staging,
                self._decoder,
                marks=self._failures.skip,
                accepted=accepted,
            )
            measured.precision = adaptive.record
            steering.append(adaptive)
        if query.elastic is not None:
            elastic = ElasticCores(
                device, query.elastic, params.plan.window, self._live, accepted,
                pacing=pacing, note=params.options.note_decision,
            )  # fmt: skip
            measured.elastic = elastic.record
            steering.append(elastic)
        for each in steering:
            self._chunk_cycles = min(self._chunk_cycles, each.chunk_cycles)
            self._low_water = min(self._low_water, each.low_water)
        return steering

    def _core_changes(self) -> EpochChanges:
        """Return what tells where other cores store than those that have failed."""
        params = self._params
        elastic = next((each for each in self._steering if isinstance(each, ElasticCores)), None)
        # A failure begins a segment at once, so a list of cores has to be free for it.
        return EpochChanges(
            params.device, params.plan, elastic or params.epoch_schedule, self._intake.floor,
            lists=SEGMENTS - params.survives,
        )  # fmt: skip

    def advance(self) -> int | None:
        """Take input and exchange words; return the rows moved, None if input must come first."""
        return self._exchange() if self._take_input() else None

    @property
    def _decoder(self) -> ResultDecoder:
        """What decodes the next results; a failure may have brought another one."""
        return self._failures.decoder

    # What the device is offered: tuples, and the control words between them.

    def _take_input(self) -> bool:
        """Stage input until there is enough; return False if more input must arrive first.

        A device that takes words slowly leaves no room for more, and then no more are staged.
        """
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

    @property
    def _wants_input(self) -> bool:
        """Whether few words wait, and the next rows of either side fit beside them.

        Words that the device was offered count only where something that steers says so.
        """
        staging = self._staging
        is_behind = any(each.counts_offered for each in self._steering)
        few = (staging.waiting if is_behind else staging.kept_back) < self._low_water
        return few and staging.room >= len(Side) * self._intake.most_rows

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
            fitted = fitted_words(
                params.device.manifest, params.plan, arrived, self._hashing.choice
            )
            if fitted is not None:
                self._staging.append(fitted)
        for each in self._steering:
            each.admit(arrived)
        try:
            for part in self._changes.cut(arrived):
                if isinstance(part, Epoch):
                    self._change_turns(part)
                else:
                    self._stage(part)
        except EpochError as error:
            self.measured.refused = error
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
        for each in self._steering:
            each.stage(arrived)
        self._failures.stage(words, {side: len(own.places) for side, own in sides.items()})
        if self._completion is not None:
            self._completion.stage(arrived)
        self.measured.staged.staged_bytes += words.nbytes
        self.measured.staged.moved_words = self._staging.moved

    def _change_turns(self, epoch: Epoch) -> None:
        """Let other cores store the tuples that are staged from now on."""
        manifest, window = self._params.device.manifest, self._params.plan.window
        self._staging.append(segment_words(manifest, epoch.cores, window))
        self._decoder.begin_segment(epoch.cores)
        for each in self._steering:
            each.begin(epoch)

    # Exchanges with the device.

    def _exchange(self) -> int:
        """Finish an exchange, begin the next one, and decode results; return the words moved.

        Without words that wait, and before all are staged, only results that are ready are counted:
        one-sided rows must be handed on first.
        """
        if not (self._staging.waiting or self._flushed):
            return sum(pairs.num_rows for pairs in self.delivery.ready)
        if not self._thread.is_busy:
            self._begin()
        finished = self._thread.finish(self._params.options.deadline.of_exchange)
        self._watch.see(finished)
        words = self._settle(finished)
        if len(words):
            self._memory.check()
        for each in self._steering:
            each.steer(self.measured.cycles)
        # The device must not run on after it has answered everything.
        if self._staging.waiting or (self._flushed and self._staging.due):
            self._begin()
        if len(words):
            stamps = finished.stamps
            self._decode(words, None if stamps is None else stamps.produced[: len(words)])
        for each in self._steering:
            each.note(self._decoder.complete, self.measured.cycles)
        return max(1, finished.done.accepted + len(words))

    def _begin(self) -> None:
        """Begin an exchange that offers the device the waiting words whose time has come.

        Accepting a word takes at least one cycle, so with this limit the device stops before it
        runs dry while it could be fed. After FLUSH, it returns by itself with the mark.
        """
        words = self._staging.offer()
        results = self._rooms.pop(0)
        self._rooms.append(results)
        limit = self._chunk_cycles if self._flushed else min(self._chunk_cycles, len(words))
        for each in self._steering:
            due = each.due_words(words, self.measured.cycles)
            if due is not None:
                words, limit = words[:due], self._chunk_cycles
        stamps = Stamps.for_arrays(words, results) if self._params.options.trace else None
        self._thread.begin(words, results, cycles=limit, stamps=stamps)

    def _settle(self, finished: Turn) -> UInt64s:
        """Record the words that an exchange moved; return its result words."""
        done = finished.done
        accepted = finished.words[: done.accepted]
        self._staging.accept(done.accepted)
        if finished.stamps is not None and self.measured.trace is not None:
            stamps = finished.stamps.accepted[: done.accepted]
            self.measured.trace.accept(np.repeat(stamps, self._codec.tuple_counts(accepted)))
        words = finished.results[: done.produced]
        if self._staging.due:
            self._staging.see_marks(int(np.count_nonzero(self._codec.marks(words))))
        if self._steering:
            tuples = int(self._codec.tuple_counts(accepted).sum())
            for each in self._steering:
                each.settle(done.cycles, tuples)
        return words

    # What comes back: result words become results in their turn.

    def _decode(self, words: UInt64s, stamps: UInt64s | None) -> None:
        """Decode result words, and queue the results whose turn it is.

        Parameters
        ----------
        words : array of uint64
            The words.
        stamps : array of uint64 or None
            Cycles in which they left the device; None without a trace.

        Raises
        ------
        JoinError
            If the accelerator tells of a fault, or of a core that has failed.
        """
        trace = self.measured.trace
        results, stamps = self._codec.split_words(words, stamps)
        start = self._skipped(results)
        results, stamps = results[start:], None if stamps is None else stamps[start:]
        parts, stars = self._decoder.decode(results, stamps)
        parts = self._checked(parts)
        self._check_faults()
        parts = self._failures.see(parts, self.measured.cycles, flushed=self._flushed)
        self.done = self._flushed and not self._staging.outstanding
        parts = self._owned(parts)
        if trace is not None:
            parts = [trace.pairs(pairs) for pairs in parts]
            trace.stars(stars["arrival"], stars["cycle"])
            trace.forget(self._complete)
        self._deliver(parts)
        self._report()
        turns = self._failures.take_turns()
        if turns is not None:  # a core turned out to have failed
            self._changes.go_on(turns)
            for each in self._steering:
                each.go_on(turns)
        if self.done:
            self.measured.hash_note = self._hashing.finish()

    @property
    def _complete(self) -> int:
        return self._failures.limit(self._decoder.complete)

    def _oldest(self, side: Side) -> int:
        row = self._decoder.oldest_row(side)
        return self._intake.next_row(side) if row is None else row

    def _skipped(self, results: UInt64s) -> int:
        """Return how many results come up to and including the mark of this execution's CLEAR."""
        skip = self._failures.skip
        if not skip:
            return 0
        marks = np.flatnonzero(self._codec.marks(results))[:skip]
        self._failures.skip -= len(marks)
        return len(results) if self._failures.skip else int(marks[-1]) + 1

    def _check_faults(self) -> None:
        """Raise an error if the accelerator has reported a fault."""
        faults = self._decoder.faults
        if faults.illegal:  # other faults may follow from this one
            raise DeviceError(
                f"Device {self._params.device.uri!r} got an input word that is neither a tuple nor "
                f"an operation it knows, and dropped it, so its answer may lack pairs; check the "
                f"link to the device, and that nobody else writes to it, then run the join again, "
                f"which begins with CLEAR."
            )
        if faults.overflow:
            raise outgrown(self._params.device.manifest, faults.overflow[0])
        if faults.disorder:
            arrivals = self._decoder.arrivals
            raise OrderError.disorder("timestamp", arrivals, "a later time", "an earlier one")

    def abandon(self) -> None:
        """End the execution, wherever it stands; the next one of the device skips its results."""
        try:
            if self._thread.is_busy and not self._thread.is_stuck:
                self._settle(self._thread.finish(self._params.options.deadline.of_exchange))
        finally:
            self._thread.close()
            self._staging.abandon()

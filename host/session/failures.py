# SPDX-License-Identifier: Apache-2.0
"""What is done about a core that fails: end, go on without it, or answer again."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from host.arrays import UInt64s
from host.protocol.codecs import WordCodec
from host.protocol.segments import SEGMENTS
from host.query.queries import OnFailure
from host.reference.arrivals import Side
from host.reference.window import CountWindow
from host.runtime import Columns
from host.session.cores import (
    NewTurns,
    core_failure,
    exclude,
    failed_cores,
    has_gates,
    note_failed,
    note_new,
)
from host.session.decoder import Again, ResultDecoder
from host.session.params import JoinParams
from host.session.records import CoreFailure, FailureRecord, LostTuples, cause_of
from host.session.results import Delivery
from host.session.staging import Staging

__all__ = [
    "CoreFailures",
    "FailureResponse",
    "Replay",
    "ReplayLog",
    "failure_response",
]

# What an execution does about a core that fails.


class FailureResponse:
    """Responds to cores that fail in one execution; this one ends it with an error.

    Parameters
    ----------
    params : JoinParams
        The execution.
    staging : Staging
        The words that wait.
    delivery : Delivery
        Pairs that wait in it, and count as missing or come again, are dropped.
    decoder : ResultDecoder
        The decoder at the beginning.

    Attributes
    ----------
    decoder : ResultDecoder
        Decoder of all results from now on, but for those that are skipped.
    skip : int
        Marks that come first; all results up to the last one of them are skipped.
    record : FailureRecord or None
        What has failed; None if a failure ends the join.
    """

    def __init__(
        self, params: JoinParams, staging: Staging, delivery: Delivery, decoder: ResultDecoder
    ) -> None:
        self._device, self._window = params.device, params.plan.window
        self._staging, self._delivery = staging, delivery
        self.decoder, self.skip = decoder, 0
        self._codec = WordCodec(params.device.manifest)
        self._new_turns: NewTurns | None = None
        self._failures: list[CoreFailure] = []
        self.record: FailureRecord | None = None

    def stage(self, words: UInt64s, counts: dict[Side, int]) -> None:
        """Take words that are staged, which hold so many tuples of each side."""

    def take_turns(self) -> NewTurns | None:
        """Return which cores take turns since the last call, if others do than before."""
        turns, self._new_turns = self._new_turns, None
        return turns

    def limit(self, complete: int) -> int:
        """Return how many first arrivals can be handed on, of those whose results have come."""
        return complete

    def see(self, parts: list[Columns], cycle: int, *, flushed: bool) -> list[Columns]:
        """Take what the decoder was told of cores in its last batch of results.

        Returns the pairs that do not count as missing, and do not come again.

        Parameters
        ----------
        parts : list of Columns
            Pairs of the batch.
        cycle : int
            Cycles that the device has run.
        flushed : bool
            Whether the FLUSH of the execution has been staged.

        Raises
        ------
        DeviceError
            If a core has failed, and the join cannot go on.
        """
        del cycle, flushed
        cores = self.decoder.take_failures().cores
        if not cores:
            return parts
        core = min(cores)
        note_failed(self._device, core)
        cause = f"It read {cause_of(cores[core])}. " if cores[core] else ""
        raise core_failure(
            self._device,
            core,
            f"{cause}Run the join again, which leaves the core out, or let it go on after a "
            "failure by on_failure='report' or 'replay'.",
        )


def failure_response(
    params: JoinParams, staging: Staging, delivery: Delivery, decoder: ResultDecoder
) -> FailureResponse:
    """Return what responds to failed cores as the query says; see :class:`FailureResponse`."""
    kinds = {OnFailure.REPORT: CoreFailures, OnFailure.REPLAY: Replay}
    gated = has_gates(params.device.manifest)
    kind = kinds.get(params.query.on_failure, FailureResponse) if gated else FailureResponse
    return kind(params, staging, delivery, decoder)


# Go on without a core that has failed, and tell exactly what is missing.


@dataclass
class _Episode:
    """From the first answer that lacks something to the mark after which none does.

    ``begins`` gives, by side, the number of the first probe whose answer may lack something, and
    the place of that probe among all tuples. Results of the arrivals from ``hold`` on are held.
    ``cores`` are the failed cores, with the cycles of the device when they were noticed, and
    ``parity`` says of whose tuples each of them read a flipped bit. ``mark`` is the number of the
    mark that ends the episode.
    """

    begins: dict[Side, tuple[int, int]]
    hold: int
    cores: dict[int, int] = field(default_factory=dict[int, int])
    parity: dict[int, tuple[Side, ...]] = field(default_factory=dict[int, tuple[Side, ...]])
    mark: int = 0


class CoreFailures(FailureResponse):
    """Masks the cores that fail in one execution, and leaves their pairs out from a place on.

    The stars and marks of an accelerator tell when the results of a core are missing, up to the
    word MASK of that core. So a failure is answered with MASK, a segment without the core, and
    FLUSH. Until the mark of FLUSH, no later pair is handed on, because another core may have failed
    in the meantime; if the mark says so, that core is masked as well. Then all pairs of these cores
    from the first incomplete group on are dropped, whether they came or not, which makes the answer
    independent of the moment at which a core stopped. The decoder gives the column ``origin`` of
    every pair.
    """

    def __init__(
        self, params: JoinParams, staging: Staging, delivery: Delivery, decoder: ResultDecoder
    ) -> None:
        super().__init__(params, staging, delivery, decoder)
        self.record = FailureRecord(self._failures)
        self._episode: _Episode | None = None
        self._flushes = 0  # FLUSH words behind segments
        # By failed core: the places from which on pairs of each side's probes are dropped.
        self._dropped: dict[int, dict[Side, int]] = {}

    def see(self, parts: list[Columns], cycle: int, *, flushed: bool) -> list[Columns]:
        if self._is_missing(cycle, flushed=flushed):
            self._delivery.sift(self._sift)
        return [self._sift(pairs) for pairs in parts]

    def _is_missing(self, cycle: int, *, flushed: bool) -> bool:
        """Take what the decoder was told; return whether held pairs must be sifted again."""
        told = self.decoder.take_failures()
        new = note_new(self._device, told.cores)
        episode = self._episode
        if episode is None:
            if not new:
                return False
            # No probe of a side without an incomplete group lacks anything before MASK.
            begins = {
                side: (log.count, self.decoder.arrivals) for side, log in self.decoder.logs.items()
            } | told.begins
            places = [place for _, place in told.begins.values()]
            episode = _Episode(begins, min([self.decoder.complete, *places]))
            self._episode = episode
        for side, begin in told.begins.items():
            episode.begins[side] = min(episode.begins[side], begin)
        if new:
            episode.cores |= dict.fromkeys(new, cycle)
            episode.parity |= {core: told.cores[core] for core in new}
            self._send(episode, new, flushed=flushed)
        for core in episode.cores:
            self._dropped[core] = {side: place for side, (_, place) in episode.begins.items()}
        if not new and self.decoder.marks >= episode.mark:
            self._end(episode)
        return True

    def limit(self, complete: int) -> int:
        return complete if self._episode is None else min(complete, self._episode.hold)

    def _sift(self, pairs: Columns) -> Columns:
        """Return the pairs without those that count as missing."""
        if not self._dropped or not pairs.num_rows:
            return pairs
        kept = np.ones(pairs.num_rows, np.bool_)
        for core, places in self._dropped.items():
            for side, place in places.items():
                kept &= (pairs["origin"] != 2 * core + side) | (pairs["probe"] < place)
        return pairs if kept.all() else pairs.take(np.flatnonzero(kept))

    def _end(self, episode: _Episode) -> None:
        """Note what is missing, now that no other core can have failed in the meantime."""
        for core, cycle in episode.cores.items():
            lost = [
                part
                for side, begin in episode.begins.items()
                for part in self._lost(core, side, begin)
            ]
            parity = episode.parity[core]
            self._failures.append(CoreFailure(core, cycle, tuple(lost), parity=parity))
        self.decoder.frozen = False
        self._episode = None

    def _lost(self, core: int, side: Side, begin: tuple[int, int]) -> list[LostTuples]:
        """Return what probes of ``side`` from ``begin`` on cannot meet, segment by segment."""
        number, place = begin
        other, before = side.other, place - number
        oldest = max(0, before - self._reach)
        ordinals = np.arange(oldest, self.decoder.logs[other].count)
        mine = ordinals[self.decoder.segments[other].locals(ordinals)[0] == core]
        bends = np.flatnonzero(np.diff(np.diff(mine))) + 2
        return [
            LostTuples(other, int(part[0]), int(part[-1]), len(part), number)
            for part in np.split(mine, bends)
            if len(part)
        ]

    @property
    def _reach(self) -> int:
        """Largest number of tuples that a probe looks back."""
        if isinstance(self._window, CountWindow):
            return int(self._window.size)
        return self.decoder.reach

    def _send(self, episode: _Episode, new: list[int], *, flushed: bool) -> None:
        """Stage the words that go on without the failed cores, behind all that is staged."""
        self._require_room()
        live, masks, segment = exclude(
            self._device,
            new,
            self.decoder.segments[Side.R].live.tolist(),
            self._window,
            others=range(self._device.manifest.storage.cores),
        )
        flush = self._codec.pack_control("FLUSH")
        self._staging.append(np.concatenate([masks, segment, flush]), marks=1)
        self.decoder.begin_segment(live)
        self.decoder.frozen = True
        self._new_turns = NewTurns(tuple(live))
        self._flushes += 1
        episode.mark = self._flushes + flushed

    def _require_room(self) -> None:
        """Raise unless the accelerator can keep another list of cores."""
        if not isinstance(self._window, CountWindow):
            return
        for side, log in self.decoder.logs.items():
            oldest = max(log.count - int(self._window.size), 0)
            if log.count and self.decoder.segments[side].number(oldest) >= SEGMENTS - 1:
                raise core_failure(
                    self._device,
                    min(failed_cores(self._device)),
                    "Too many cores failed within one window for a list of the others; run the "
                    "join again, which begins without them.",
                )


# Answer again what a failed core left unanswered, from the tuples of the window on.


class ReplayLog:
    """Keeps the words of tuples, in the order of arrival, batch by batch.

    Tuples are numbered within their side from the beginning of the execution.

    Parameters
    ----------
    codec : WordCodec
        Codec of the accelerator's words.
    """

    def __init__(self, codec: WordCodec) -> None:
        self._codec = codec
        self._batches: list[UInt64s] = []
        self._firsts: list[dict[Side, int]] = []  # by batch: numbers of the next tuples before it
        self._counts = dict.fromkeys(Side, 0)

    @property
    def kept(self) -> int:
        """Number of words that are kept."""
        return sum(len(words) for words in self._batches)

    def append(self, words: UInt64s, counts: Mapping[Side, int]) -> None:
        """Add a copy of words that hold so many tuples of each side."""
        self._batches.append(words.copy())
        self._firsts.append(dict(self._counts))
        for side, count in counts.items():
            self._counts[side] += count

    def forget(self, before: Mapping[Side, int]) -> None:
        """Release batches whose tuples all have lower numbers."""
        while len(self._batches) > 1 and all(
            self._firsts[1][side] <= number for side, number in before.items()
        ):
            del self._batches[0], self._firsts[0]

    def again(self, first: Mapping[Side, int]) -> Again:
        """Return the tuples from the numbers ``first`` on, which must not have been forgotten."""
        words = np.concatenate(self._batches)
        sides, keys, times = self._codec.unpack_tuples(words)
        numbers = np.empty(len(sides), np.int64)
        for side in Side:
            mine = sides == side
            numbers[mine] = self._firsts[0][side] + np.arange(np.count_nonzero(mine))
        kept = np.flatnonzero(numbers >= np.where(sides == Side.R, first[Side.R], first[Side.S]))
        sides, numbers = sides[kept], numbers[kept]
        fields = {name: column[kept] for name, column in keys.items()}
        return Again(
            self._codec.pack_tuples(sides, fields, times[kept]),
            {side: numbers[sides == side] for side in Side},
            {side: np.flatnonzero(sides == side) for side in Side},
        )


class Replay(FailureResponse):
    """Starts the accelerator anew without a core that has failed, so that nothing is missing.

    The failed core is masked, and CLEAR forgets everything. Then the tuples are sent again that
    probes can meet that are not answered yet, and these probes themselves. What a probe finds that
    was answered before is dropped. All results that come before the mark of CLEAR are dropped.
    """

    def __init__(
        self, params: JoinParams, staging: Staging, delivery: Delivery, decoder: ResultDecoder
    ) -> None:
        super().__init__(params, staging, delivery, decoder)
        self.record = FailureRecord(self._failures)
        self._log = ReplayLog(self._codec)

    def stage(self, words: UInt64s, counts: dict[Side, int]) -> None:
        self._log.append(words, counts)

    def see(self, parts: list[Columns], cycle: int, *, flushed: bool) -> list[Columns]:
        decoder = self.decoder
        told = decoder.take_failures()
        new = note_new(self._device, told.cores)
        if not new:
            self._log.forget({side: decoder.sent_from(side) for side in Side})
            return parts
        answered = decoder.answered(told)
        again = self._log.again(decoder.needed(answered))
        cores = range(self._device.manifest.storage.cores)
        live, masks, segment = exclude(self._device, new, cores, self._window)
        self.decoder = restarted = decoder.restarted(again, answered, live)
        clear = self._codec.pack_control("CLEAR")
        self._staging.append(np.concatenate([masks, clear]), marks=1)
        self.skip = self._staging.outstanding
        self._staging.append(np.concatenate([segment, again.words]))
        first = {side: restarted.sent_from(side) for side in Side}
        self._new_turns = NewTurns(tuple(live), first)
        if flushed:
            self._staging.append(self._codec.pack_control("FLUSH"), marks=1)
            restarted.flush()
        for core in new:
            replayed = sum(map(len, again.numbers.values()))
            self._failures.append(
                CoreFailure(core, cycle, replayed=replayed, parity=told.cores[core])
            )

        def keep(pairs: Columns) -> Columns:
            """Return the pairs of the probes that are answered; those of later ones come again."""
            (_, of_r), (_, of_s) = answered[Side.R], answered[Side.S]
            first = np.where(pairs["origin"] % 2 == Side.R, of_r, of_s)
            return pairs.take(np.flatnonzero(pairs["probe"] < first))

        self._delivery.sift(keep)
        return [keep(pairs) for pairs in parts]

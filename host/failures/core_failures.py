# SPDX-License-Identifier: Apache-2.0
"""Go on without a core that has failed, and tell exactly what is missing."""

from dataclasses import dataclass, field

import numpy as np

from host.cores.failed_cores import NewTurns, exclude, failed_cores, note_new
from host.device import Device
from host.errors import CoreFailureError
from host.exchange.staging import Staging
from host.failures.failure_record import CoreFailure, FailureRecord, LostTuples
from host.hardware.storage_segments import SEGMENTS
from host.reference.side import Side
from host.reference.window import CountWindow, Window
from host.results.decoder import ResultDecoder
from host.runtime import Columns
from host.words import WordCodec

__all__ = ["CoreFailures"]


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


class CoreFailures:
    """Masks the cores that fail in one execution, and leaves their pairs out from a place on.

    The stars and marks of an accelerator tell when the results of a core are missing, up to the
    word MASK of that core. So a failure is answered with MASK, a segment without the core, and
    FLUSH. Until the mark of FLUSH, no later pair is handed on, because another core may have failed
    in the meantime; if the mark says so, that core is masked as well. Then all pairs of these cores
    from the first incomplete group on are dropped, whether they came or not, which makes the answer
    independent of the moment at which a core stopped.

    Parameters
    ----------
    device : Device
        The device.
    window : CountWindow or TimeWindow
        Window of either side.
    staging : Staging
        The words that wait.
    decoder : ResultDecoder
        The decoder; it gives the column ``origin`` of every pair.

    Attributes
    ----------
    marks : int
        Number of marks that answer inserted words, whether they have come or not.
    record : FailureRecord
        What has failed.
    """

    def __init__(
        self, device: Device, window: Window, staging: Staging, decoder: ResultDecoder
    ) -> None:
        self._device, self._window = device, window
        self._staging, self._decoder = staging, decoder
        self._codec = WordCodec(device.manifest)
        self._episode: _Episode | None = None
        # By failed core: the places from which on pairs of each side's probes are dropped.
        self._dropped: dict[int, dict[Side, int]] = {}
        self._new_turns: NewTurns | None = None
        self.marks = 0
        self.record = FailureRecord()

    def see(self, cycle: int, *, flushed: bool) -> bool:
        """Take what the decoder was told in its last batch of results.

        Parameters
        ----------
        cycle : int
            Cycles that the device has run.
        flushed : bool
            Whether the FLUSH of the execution has been staged.

        Returns
        -------
        bool
            Whether pairs that are held must be sifted again.
        """
        told = self._decoder.take_failures()
        new = note_new(self._device, told.cores)
        episode = self._episode
        if episode is None:
            if not new:
                return False
            # No probe of a side without an incomplete group lacks anything before MASK.
            begins = {
                side: (log.count, self._decoder.arrivals)
                for side, log in self._decoder.logs.items()
            } | told.begins
            places = [place for _, place in told.begins.values()]
            episode = _Episode(begins, min([self._decoder.complete, *places]))
            self._episode = episode
        for side, begin in told.begins.items():
            episode.begins[side] = min(episode.begins[side], begin)
        if new:
            episode.cores |= dict.fromkeys(new, cycle)
            episode.parity |= {core: told.cores[core] for core in new}
            self._send(episode, new, flushed=flushed)
        for core in episode.cores:
            self._dropped[core] = {side: place for side, (_, place) in episode.begins.items()}
        if not new and self._decoder.marks >= episode.mark:
            self._end(episode)
        return True

    def take_turns(self) -> NewTurns | None:
        """Return which cores take turns since the last call, if others do than before."""
        turns, self._new_turns = self._new_turns, None
        return turns

    def limit(self, complete: int) -> int:
        """Return how many first arrivals can be handed on, of those whose results have come."""
        return complete if self._episode is None else min(complete, self._episode.hold)

    def sift(self, pairs: Columns) -> Columns:
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
            self.record.failures.append(CoreFailure(core, cycle, tuple(lost), parity=parity))
        self._decoder.frozen = False
        self._episode = None

    def _lost(self, core: int, side: Side, begin: tuple[int, int]) -> list[LostTuples]:
        """Return what probes of ``side`` from ``begin`` on cannot meet, segment by segment."""
        number, place = begin
        other, before = side.other, place - number
        oldest = max(0, before - self._reach)
        ordinals = np.arange(oldest, self._decoder.logs[other].count)
        mine = ordinals[self._decoder.segments[other].locals(ordinals)[0] == core]
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
        return self._decoder.reach

    def _send(self, episode: _Episode, new: list[int], *, flushed: bool) -> None:
        """Stage the words that go on without the failed cores, behind all that is staged."""
        self._require_room()
        live, masks, segment = exclude(
            self._device,
            new,
            self._decoder.segments[Side.R].live.tolist(),
            self._window,
            others=range(self._device.manifest.storage.cores),
        )
        flush = self._codec.pack_control("FLUSH")
        self._staging.append(np.concatenate([masks, segment, flush]), marks=1)
        self._decoder.begin_segment(live)
        self._decoder.frozen = True
        self._new_turns = NewTurns(tuple(live))
        self.marks += 1
        episode.mark = self.marks + flushed

    def _require_room(self) -> None:
        """Raise unless the accelerator can keep another list of cores."""
        if not isinstance(self._window, CountWindow):
            return
        for side, log in self._decoder.logs.items():
            oldest = max(log.count - int(self._window.size), 0)
            if log.count and self._decoder.segments[side].number(oldest) >= SEGMENTS - 1:
                raise CoreFailureError(
                    self._device.uri,
                    min(failed_cores(self._device)),
                    "Too many cores failed within one window for a list of the others; run the "
                    "join again, which begins without them.",
                )

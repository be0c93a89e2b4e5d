# SPDX-License-Identifier: Apache-2.0
"""Hold pairs until their group closes, then emit them in the order of the hardware."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from host.device.rounds import Rounds, rounds_of
from host.hardware.punctuation import Closings
from host.hardware.storage import StorageRule
from host.hardware.storage_segments import StorageSegments
from host.manifest import Manifest
from host.reference.exact import UInt64s
from host.reference.side import Side
from host.words import WordCodec

__all__ = ["Emission", "GroupEmission", "Pairs", "with_stars"]

Int64s = npt.NDArray[np.int64]


class Pairs(NamedTuple):
    """Pairs of one side's probes with stored tuples of the other side.

    A join aggregate also needs the ``value`` of each stored tuple.
    """

    probe: Int64s
    stored: Int64s
    value: Int64s | None = None

    @classmethod
    def empty(cls) -> "Pairs":
        """Return no pairs."""
        return cls(np.zeros(0, np.int64), np.zeros(0, np.int64))


class _Side:
    """State of one side's probes: their number, and where the open group and period began."""

    def __init__(self) -> None:
        self.probes = 0  # number of probes since the device was opened
        self.grouped = 0  # number of probes in closed groups
        self.starred = 0  # number of probes before the last star
        self.pairs = Pairs.empty()  # pairs of open groups; probes count since opening


def with_stars(words: UInt64s, stars: UInt64s, after: Int64s) -> UInt64s:
    """Return words with a star behind the first ``after[n]`` of them, for each star ``n``.

    Parameters
    ----------
    words, stars : array of uint64
        Result words, one in each row.
    after : array of int64
        For each star, the number of words before it; never less than for the star before.
    """
    merged = np.empty((len(words) + len(stars), words.shape[1]), np.uint64)
    is_star = np.zeros(len(merged), np.bool_)
    is_star[after + np.arange(len(stars))] = True
    merged[~is_star] = words
    merged[is_star] = stars
    return merged


class GroupEmission(ABC):
    """Turns what probes find into result words, group by group.

    Parameters
    ----------
    manifest : Manifest
        Manifest with the layout of the words and the storage rule.

    Attributes
    ----------
    segments : dict of Side to StorageSegments
        Where each side's tuples are stored.
    round_size : int
        Number of tuples of a core in a round; zero if results do not come in rounds.
    none : array of uint64
        No result.
    """

    def __init__(self, manifest: Manifest) -> None:
        rule = StorageRule.of(manifest)
        self.segments = {side: StorageSegments(rule) for side in Side}
        self.none = np.zeros((0, manifest.result.columns), np.uint64)
        self.round_size = 0

    def see(self, side: Side, start: Int64s, before: Int64s, mute: npt.NDArray[np.bool_]) -> None:
        """Note which stored tuples the next probes see; only if results come in rounds."""
        raise NotImplementedError

    def drop(self, core: int) -> None:
        """Lose what open groups have found in ``core``; only if cores have gates."""
        raise NotImplementedError

    @abstractmethod
    def add(self, side: Side, probes: int, pairs: Pairs) -> None:
        """Add the pairs of the next ``probes`` probes of ``side``, whose probes count from zero."""

    @abstractmethod
    def mark(
        self,
        overflowed: Mapping[Side, bool],
        *,
        disorder: bool,
        illegal: bool,
        failed: int | None = None,
    ) -> UInt64s:
        """Return a mark as a result word."""

    @abstractmethod
    def emit(
        self,
        closings: Closings,
        overflow: npt.NDArray[np.bool_],
        *,
        disorder: bool,
        illegal: bool,
        failed: int | None = None,
    ) -> tuple[UInt64s, int]:
        """Return the words of closed groups and their stars, and the number of words but stars.

        Parameters
        ----------
        closings : Closings
            The closed groups.
        overflow : array of bool
            For each group, whether its star reports that the window its probes met has overflowed.
        disorder : bool
            Whether the stars report decreasing timestamps.
        illegal : bool
            Whether the stars report an illegal word.
        failed : int, optional
            Core that the stars report to have failed.
        """


class Emission(GroupEmission):
    """Turns pairs into result words.

    Parameters
    ----------
    manifest : Manifest
        Manifest with the layout of the words and the storage rule.
    """

    def __init__(self, manifest: Manifest) -> None:
        super().__init__(manifest)
        self._codec = WordCodec(manifest)
        self._probes = 1 << manifest.probe_bits  # the index of a probe wraps at this number
        self._sides = {side: _Side() for side in Side}
        self._rounds = dict.fromkeys(Side, Rounds.empty())  # of probes that were added

    def see(self, side: Side, start: Int64s, before: Int64s, mute: npt.NDArray[np.bool_]) -> None:
        """Note which stored tuples the next probes of ``side`` see, from ``start`` on.

        The cores that ``mute`` flags answer nothing.

        Only if results come in rounds; the groups of these probes close before the next ones come.
        """
        self._rounds[side] = rounds_of(
            self.segments[side.other], self.round_size, start, before, mute
        )

    def add(self, side: Side, probes: int, pairs: Pairs) -> None:
        """Add the pairs of the next ``probes`` probes of ``side``, whose probes count from zero."""
        state = self._sides[side]
        state.pairs = Pairs(
            np.concatenate([state.pairs.probe, pairs.probe + state.probes]),
            np.concatenate([state.pairs.stored, pairs.stored]),
        )
        state.probes += probes

    def mark(
        self,
        overflowed: Mapping[Side, bool],
        *,
        disorder: bool,
        illegal: bool,
        failed: int | None = None,
    ) -> UInt64s:
        """Return a mark as a result word."""
        flags = sum(overflowed[side] << side for side in Side)
        return self._codec.pack_punctuation(self._codec.mark, 0, flags, disorder, illegal, failed)

    def drop(self, core: int) -> None:
        """Lose the pairs of open groups whose stored tuples are in ``core``."""
        for side, state in self._sides.items():
            cores, _ = self.segments[side.other].locals(state.pairs.stored)
            kept = cores != core
            state.pairs = Pairs(state.pairs.probe[kept], state.pairs.stored[kept])

    def emit(
        self,
        closings: Closings,
        overflow: npt.NDArray[np.bool_],
        *,
        disorder: bool,
        illegal: bool,
        failed: int | None = None,
    ) -> tuple[UInt64s, int]:
        """See :meth:`GroupEmission.emit`."""
        if not len(closings.side):
            return self.none, 0
        ranks, index, cores, numbers, sides = [], [], [], [], []
        for side in Side:
            rank, probe, other = self._leave(side, closings)
            ranks.append(rank)
            index.append(probe)
            core, local = self.segments[side.other].locals(other)
            cores.append(core)
            numbers.append(local)
            sides.append(np.full(len(rank), side, np.int64))
        rank, probe, core, local, of_side = (
            np.concatenate(part) for part in (ranks, index, cores, numbers, sides)
        )
        size = self.round_size
        round_ = local // size if size else np.zeros_like(local)
        order = np.lexsort((probe, local, core, round_, rank))
        rank, round_, probe, core, local, of_side = (
            column[order] for column in (rank, round_, probe, core, local, of_side)
        )
        row, lane = self.segments[Side.R].slots(local)
        pairs = self._codec.pack_pairs(of_side, probe, core, row, lane)

        stars = np.flatnonzero(closings.star)
        of_star = closings.side[stars]
        flags = overflow[stars].astype(np.int64) << (1 - of_star)
        ends = self._codec.pack_punctuation(
            self._codec.star, of_star, flags, disorder, illegal, failed
        )
        if size:
            return self._in_rounds(closings, (rank, round_, pairs), (stars, ends)), len(rank)
        after = np.searchsorted(rank, stars, side="right")
        return with_stars(pairs, ends, after), len(rank)

    def _in_rounds(
        self,
        closings: Closings,
        pairs: tuple[Int64s, Int64s, UInt64s],
        stars: tuple[Int64s, UInt64s],
    ) -> UInt64s:
        """Return the words of groups of one probe each, with the stars of rounds between them.

        Parameters
        ----------
        closings : Closings
            The closed groups, each of them with a star.
        pairs : tuple of arrays
            Group, round and word of every pair, in order.
        stars : tuple of arrays
            Group and word of every star.
        """
        groups, rounds = np.zeros(0, np.int64), np.zeros(0, np.int64)
        for side in Side:
            of_side = np.flatnonzero(closings.side == side)
            first, end = self._rounds[side]
            counts = end - first
            begins = np.cumsum(counts) - counts
            groups = np.concatenate([groups, np.repeat(of_side, counts)])
            numbers = np.arange(counts.sum()) + np.repeat(first - begins, counts)
            rounds = np.concatenate([rounds, numbers])
        after = np.full(len(stars[0]), np.iinfo(np.int64).max)
        parts = [
            (pairs[0], pairs[1], pairs[2]),
            (groups, rounds, self._codec.pack_inner_stars(closings.side[groups])),
            (stars[0], after, stars[1]),
        ]
        group, round_, words = (np.concatenate(column) for column in zip(*parts, strict=True))
        kind = np.repeat(np.arange(len(parts)), [len(part[0]) for part in parts])
        ordered: UInt64s = words[np.lexsort((kind, round_, group))]
        return ordered

    def _leave(self, side: Side, closings: Closings) -> tuple[Int64s, Int64s, Int64s]:
        """Return group, probe index and stored tuple of the pairs whose groups are closed."""
        state = self._sides[side]
        groups = np.flatnonzero(closings.side == side)
        ends = state.grouped + np.cumsum(closings.probes[groups])
        star_ends = np.where(closings.star[groups], ends, state.starred)
        periods = np.maximum.accumulate(np.concatenate([[state.starred], star_ends]))
        if len(groups):
            state.grouped, state.starred = int(ends[-1]), int(periods[-1])
        group = np.searchsorted(ends, state.pairs.probe, side="right")
        leaving = group < len(groups)
        probe, stored, group = (
            column[leaving] for column in (state.pairs.probe, state.pairs.stored, group)
        )
        state.pairs = Pairs(state.pairs.probe[~leaving], state.pairs.stored[~leaving])
        return groups[group], (probe - periods[group]) % self._probes, stored

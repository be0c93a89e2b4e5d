# SPDX-License-Identifier: Apache-2.0
"""The storage rule over segments: from some tuple on, other cores take turns to store."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from host.errors import DeviceError
from host.hardware.storage import StorageRule

__all__ = ["SEGMENTS", "StorageSegments"]

Int64s = npt.NDArray[np.int64]

#: Most segments that a count-based window of either side holds tuples of.
SEGMENTS = 3


class _Segment(NamedTuple):
    """Tuples from ``first`` on, which the cores of ``live`` store in turn."""

    first: int
    live: Int64s
    rank: Int64s  # by core: its place in `live`, or -1
    base: Int64s  # by core: number of tuples that it has stored before the segment


class StorageSegments:
    """Where the cores keep the tuples of one side, over any number of segments.

    Parameters
    ----------
    rule : StorageRule
        Shape of the storage.

    Attributes
    ----------
    live : array of int64
        The cores that take turns to store, in this order.
    """

    def __init__(self, rule: StorageRule) -> None:
        self._rule = rule
        self.live: Int64s = np.arange(rule.cores)
        self._segments: list[_Segment] = []
        self.restart()

    @property
    def fewest(self) -> int:
        """The fewest cores of a segment that is not forgotten."""
        return min(len(segment.live) for segment in self._segments)

    def restart(self) -> None:
        """Begin an empty window: the live cores stay, and ordinals restart at zero."""
        self._segments = [self._segment(0, np.zeros(self._rule.cores, np.int64))]

    def begin(self, count: int, live: Sequence[int]) -> None:
        """Begin a segment after ``count`` tuples, in which the cores of ``live`` store.

        Raises
        ------
        DeviceError
            If there is no core, an unknown one, or one twice.
        """
        cores = self._rule.cores
        if not live or len(set(live)) < len(live) or not all(0 <= core < cores for core in live):
            raise DeviceError(
                f"A segment needs at least one core, each of 0 to {cores - 1} at most once, not "
                f"{list(live)}; give it the numbers of the live cores."
            )
        last = self._segments[-1]
        base = last.base + _turns(np.int64(count) - last.first, last.rank, len(last.live))
        if not count:  # no tuple is in the segments before
            self._segments.clear()
        self.live = np.array(live, np.int64)
        self._segments.append(self._segment(count, base))

    def forget(self, ordinal: int) -> None:
        """Forget the segments that end before the tuple ``ordinal``."""
        while len(self._segments) > 1 and self._segments[1].first <= ordinal:
            del self._segments[0]

    def number(self, ordinal: int) -> int:
        """Return how many segments have begun after the one of the tuple ``ordinal``."""
        return sum(segment.first > ordinal for segment in self._segments)

    def locals(self, ordinals: Int64s) -> tuple[Int64s, Int64s]:
        """Return the core of each tuple, and the tuple's number among those of that core."""
        if self._is_plain():
            return ordinals % self._rule.cores, ordinals // self._rule.cores
        core, local = np.zeros_like(ordinals), np.zeros_like(ordinals)
        for segment in self._segments:
            mine = ordinals >= segment.first
            turns, rank = np.divmod(ordinals[mine] - segment.first, len(segment.live))
            core[mine] = segment.live[rank]
            local[mine] = segment.base[core[mine]] + turns
        return core, local

    def slots(self, local: Int64s) -> tuple[Int64s, Int64s]:
        """Return row and lane of tuples, given by their numbers within their core."""
        return (local // self._rule.lanes) % self._rule.ring_rows, local % self._rule.lanes

    def held(self, begin: Int64s, end: Int64s, core: Int64s) -> Int64s:
        """Return how many of the tuples from ``begin`` until before ``end`` are in ``core``."""
        return self._before(end, core) - self._before(begin, core)

    def ordinals(self, before: Int64s, core: Int64s, row: Int64s, lane: Int64s) -> Int64s:
        """Return the stored tuples of pairs; see :meth:`StorageRule.ordinals`."""
        if self._is_plain():
            return self._rule.ordinals(before, core, row, lane)
        known = core < self._rule.cores
        newest = self._before(before, np.where(known, core, 0)) - 1
        local = newest - (newest - row * self._rule.lanes - lane) % self._rule.slots
        ordinals = np.full_like(local, -1)
        for segment in self._segments:
            rank, base = (by_core[np.where(known, core, 0)] for by_core in segment[2:])
            mine = (rank >= 0) & (local >= base) & known
            found = segment.first + (local - base) * len(segment.live) + rank
            ordinals[mine] = found[mine]
        wrong = (local < 0) | (ordinals < 0) | (ordinals >= before)
        if wrong.any():
            bad = int(np.argmax(wrong))
            raise DeviceError(
                f"The device answered with core {core[bad]}, row {row[bad]}, lane {lane[bad]} to a "
                f"probe that {before[bad]} tuples precede, where nothing is stored; its bundle and "
                f"its hardware do not belong together."
            )
        return ordinals

    def _is_plain(self) -> bool:
        """Return whether all cores have stored in the order of their numbers since the start."""
        only = self._segments[0]
        if len(self._segments) > 1 or only.first:
            return False
        return np.array_equal(only.live, np.arange(self._rule.cores))

    def _segment(self, first: int, base: Int64s) -> _Segment:
        rank = np.full(self._rule.cores, -1, np.int64)
        rank[self.live] = np.arange(len(self.live))
        return _Segment(first, self.live, rank, base)

    def _before(self, ordinals: Int64s | np.int64, core: Int64s) -> Int64s:
        """Return how many tuples before ``ordinals`` are stored in ``core``."""
        first = np.array([segment.first for segment in self._segments])
        at = np.searchsorted(first, ordinals, side="right") - 1
        # By segment, and by core in it; the last segment of those that begin together counts.
        rank, base = (np.stack(of) for of in list(zip(*self._segments, strict=True))[2:])
        live = np.array([len(segment.live) for segment in self._segments])
        own = rank[at, core]
        count: Int64s = base[at, core] + _turns(ordinals - first[at], own, live[at])
        return np.where(at >= 0, count, 0)


def _turns(count: Int64s | np.int64, rank: Int64s, live: Int64s | int) -> Int64s:
    """Return how many of the first ``count`` tuples of a segment the core of a rank stores."""
    turns: Int64s = np.maximum(-(-(count - rank) // live), 0)
    return np.where(rank >= 0, turns, 0)

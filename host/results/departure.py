# SPDX-License-Identifier: Apache-2.0
"""When rows leave the window: which sent tuple pushes each of them out."""

from abc import ABC, abstractmethod

import numpy as np
import numpy.typing as npt

from host.reference.exact import UInt64s, shifted
from host.reference.side import Side
from host.reference.window import CountWindow, Window
from host.runtime import Columns
from host.tuples.intake import Arrived
from host.tuples.side_log import SideLog
from host.tuples.tracked_rows import TrackedRows

__all__ = ["Departures", "departures"]

Int64s = npt.NDArray[np.int64]


class Departures(ABC):
    """Finds the places in the order of arrival at which tracked rows leave the window.

    A row *leaves at* a place if no tuple at that place or behind it can match the row, but a tuple
    at the preceding place could.
    """

    @abstractmethod
    def stage(self, arrived: Arrived) -> None:
        """Announce tuples that are sent, in the order of arrival."""

    @abstractmethod
    def gone(self, side: Side, rows: TrackedRows, complete: int, reached: int) -> int:
        """Return how many of the first rows leave at the place ``complete`` or before it.

        Parameters
        ----------
        side : Side
            Side of the rows.
        rows : TrackedRows
            The rows.
        complete : int
            At most the number of tuples announced.
        reached : int
            No tuple that is announced later has a smaller timestamp.
        """

    @abstractmethod
    def places(self, side: Side, rows: TrackedRows, count: int) -> Int64s:
        """Return the places at which the first ``count`` rows leave.

        For rows that no tuple has pushed out, the place is at least the number of tuples announced.
        """

    @abstractmethod
    def forget(self, complete: int) -> None:
        """Allow places below ``complete`` to be forgotten; they are not asked for any more."""


def departures(window: Window) -> Departures:
    """Return the departures for ``window``, which both sides have."""
    if isinstance(window, CountWindow):
        return _ByRank(window.size)
    return _ByTime(int(window.lifespan))


class _ByTime(Departures):
    """A tuple whose timestamp exceeds a row's timestamp plus the lifespan pushes the row out."""

    def __init__(self, lifespan: int) -> None:
        self._lifespan = lifespan
        self._times = SideLog()  # timestamps of all arrivals, by place

    def stage(self, arrived: Arrived) -> None:
        self._times.append(Columns({"time": arrived.times}))

    def gone(self, side: Side, rows: TrackedRows, complete: int, reached: int) -> int:
        del side  # timestamps are the same for both sides
        if complete < self._times.count:
            reached = int(self._times.at("time", complete))
        bound = np.uint64(reached)
        return int(np.searchsorted(self._last(rows.times), bound, side="left"))

    def places(self, side: Side, rows: TrackedRows, count: int) -> Int64s:
        del side
        if not self._times.has("time"):
            return np.zeros(count, np.int64)
        first = self._times.kept
        times = self._times.part("time", first, self._times.count)
        found = np.searchsorted(times, self._last(rows.times[:count]), side="right")
        return found.astype(np.int64) + first

    def forget(self, complete: int) -> None:
        self._times.forget(complete)

    def _last(self, times: UInt64s) -> UInt64s:
        """Return the last timestamp at which each row is in the window."""
        return shifted(times, self._lifespan)[0]


class _ByRank(Departures):
    """The tuple that comes ``size`` tuples of its own side after a row pushes the row out."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._places = {side: SideLog() for side in Side}  # places of each side's tuples
        self._arrivals = 0

    def stage(self, arrived: Arrived) -> None:
        for side, tuples in arrived.sides.items():
            self._places[side].append(Columns({"place": tuples.places + self._arrivals}))
        self._arrivals += arrived.count

    def gone(self, side: Side, rows: TrackedRows, complete: int, reached: int) -> int:
        del reached  # timestamps do not matter
        return int(np.searchsorted(self._pushing(side, rows), complete, side="right"))

    def places(self, side: Side, rows: TrackedRows, count: int) -> Int64s:
        found = np.full(count, self._arrivals, np.int64)
        known = self._pushing(side, rows)[:count]
        found[: len(known)] = known
        return found

    def forget(self, complete: int) -> None:
        del complete  # the remaining rows decide what is needed

    def _pushing(self, side: Side, rows: TrackedRows) -> Int64s:
        """Return the places of the tuples that push the first rows out, as far as sent."""
        log = self._places[side]
        begin = rows.first + self._size  # over a count-based window, every row is a tuple
        if begin >= log.count:
            return np.zeros(0, np.int64)
        log.forget(begin)
        return log.part("place", begin, log.count)

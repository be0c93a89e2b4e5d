# SPDX-License-Identifier: Apache-2.0
"""When rows leave the window: which of those that were sent pushes each of them out."""

from abc import ABC, abstractmethod

import numpy as np
import numpy.typing as npt

from host.exact import UInt64s, shifted
from host.runtime import Columns
from host.side import Side
from host.streams.intake import Arrived
from host.streams.side_log import SideLog
from host.streams.tracked_rows import TrackedRows
from host.window import CountWindow, Window

__all__ = ["Departures", "departures"]

Int64s = npt.NDArray[np.int64]


class Departures(ABC):
    """Knows the places of arrivals that tracked rows leave at.

    A row *leaves at* a place if no tuple at that place or behind it can match the row, but one at
    the place before it could, were it of the right kind.
    """

    @abstractmethod
    def stage(self, arrived: Arrived) -> None:
        """Announce tuples that are sent, in the order of arrival."""

    @abstractmethod
    def gone(self, side: Side, rows: TrackedRows, complete: int, reached: int) -> int:
        """Return how many first rows leave at the place ``complete`` or before it.

        Parameters
        ----------
        side : Side
            Of the rows.
        rows : TrackedRows
            The rows.
        complete : int
            Not above the number of tuples announced.
        reached : int
            No tuple that has not been announced has an earlier timestamp.
        """

    @abstractmethod
    def places(self, side: Side, rows: TrackedRows, count: int) -> Int64s:
        """Return the places that the first ``count`` rows leave at.

        For those that nothing has pushed out it is the number of tuples announced, or beyond it.
        """

    @abstractmethod
    def forget(self, complete: int) -> None:
        """No place below ``complete`` is asked for any more."""


def departures(window: Window) -> Departures:
    """Return what knows when rows leave ``window``, which either side has."""
    if isinstance(window, CountWindow):
        return _ByRank(window.size)
    return _ByTime(int(window.lifespan))


class _ByTime(Departures):
    """A tuple later than a row's time and the lifespan pushes the row out."""

    def __init__(self, lifespan: int) -> None:
        self._lifespan = lifespan
        self._times = SideLog()  # of all arrivals, found by their places

    def stage(self, arrived: Arrived) -> None:
        times = np.empty(arrived.count, np.uint64)
        for tuples in arrived.sides.values():
            times[tuples.places] = tuples.batch.times[tuples.begin : tuples.end]
        self._times.append(Columns({"time": times}))

    def gone(self, side: Side, rows: TrackedRows, complete: int, reached: int) -> int:
        del side  # time is the same to both
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
        """The last times at which rows are in the window."""
        return shifted(times, self._lifespan)[0]


class _ByRank(Departures):
    """The tuple that is ``size`` tuples of its own side behind a row pushes it out."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._places = {side: SideLog() for side in Side}  # of each side's tuples
        self._arrivals = 0

    def stage(self, arrived: Arrived) -> None:
        for side, tuples in arrived.sides.items():
            self._places[side].append(Columns({"place": tuples.places + self._arrivals}))
        self._arrivals += arrived.count

    def gone(self, side: Side, rows: TrackedRows, complete: int, reached: int) -> int:
        del reached  # time does not matter
        return int(np.searchsorted(self._pushing(side, rows), complete, side="right"))

    def places(self, side: Side, rows: TrackedRows, count: int) -> Int64s:
        found = np.full(count, self._arrivals, np.int64)
        known = self._pushing(side, rows)[:count]
        found[: len(known)] = known
        return found

    def forget(self, complete: int) -> None:
        del complete  # the rows that are there still say what is needed

    def _pushing(self, side: Side, rows: TrackedRows) -> Int64s:
        """Places of the tuples that push the first rows out, as far as they have been sent."""
        log = self._places[side]
        begin = rows.first + self._size  # over such a window every row is a tuple
        if begin >= log.count:
            return np.zeros(0, np.int64)
        log.forget(begin)
        return log.part("place", begin, log.count)

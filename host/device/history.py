# SPDX-License-Identifier: Apache-2.0
"""The software device's memory of one side: the tuples that a later probe can still meet."""

from typing import Any

import numpy as np
import numpy.typing as npt

from host.reference.exact import UInt64s
from host.reference.predicate import Keys
from host.reference.window import CountWindow, Window, window_starts

__all__ = ["History"]

Int64s = npt.NDArray[np.int64]


class History:
    """The tuples of one side since its window began, without those that have expired.

    Parameters
    ----------
    window : CountWindow or TimeWindow
        The side's window.
    capacity : int, optional
        Number of tuples that the cores hold; older tuples are lost, whatever the window is. By
        default a window has no such limit: where cores can be masked, tuples that a masked core
        would have stored take no room, so older ones of another core are still there.

    Attributes
    ----------
    count : int
        Number of tuples since the window began, which is the ordinal of the next one.
    base : int
        Ordinal of the oldest stored tuple.
    """

    def __init__(self, window: Window, capacity: int | None = None) -> None:
        self.window = window
        self.capacity = capacity
        self.count = 0
        self.base = 0
        self._columns: dict[str, npt.NDArray[Any]] = {}
        self._begin = 0  # range of the stored tuples in the columns
        self._end = 0

    @property
    def keys(self) -> Keys:
        """Key fields of the stored tuples, oldest first."""
        columns = {name: column for name, column in self._columns.items() if name != "timestamp"}
        return {name: column[self._begin : self._end] for name, column in columns.items()}

    @property
    def time(self) -> UInt64s:
        """Timestamps of the stored tuples."""
        return self._columns["timestamp"][self._begin : self._end]

    def append(self, keys: Keys, time: UInt64s) -> None:
        """Store tuples."""
        added = {**keys, "timestamp": time}
        size = len(time)
        if not self._columns:
            self._columns = {name: column[:0].copy() for name, column in added.items()}
        if self._end + size > len(self._columns["timestamp"]):
            self._make_room(size)
        for name, column in added.items():
            self._columns[name][self._end : self._end + size] = column
        self._end += size
        self.count += size

    def starts(self, before: Int64s, now: UInt64s) -> Int64s:
        """Return the ordinal of the oldest tuple that each of several observing tuples meets.

        Parameters
        ----------
        before : array of int64
            Ordinal of the first tuple that arrives after each observer, at most ``count``.
        now : array of uint64
            Timestamp of each observer.
        """
        local = window_starts(self.window, before - self.base, now, self.time) + self.base
        return local if self.capacity is None else np.maximum(local, before - self.capacity)

    def oldest_beside(self, own: Int64s, now: UInt64s) -> Int64s:
        """Return the ordinal of the oldest tuple that is in the window beside each own tuple.

        Parameters
        ----------
        own : array of int64
            Ordinals of the side's own tuples.
        now : array of uint64
            Their timestamps.
        """
        if isinstance(self.window, CountWindow):
            return np.maximum(own + 1 - self.window.size, 0)
        return window_starts(self.window, own - self.base, now, self.time) + self.base

    def forget(self, now: UInt64s) -> None:
        """Forget the tuples that no tuple with a timestamp of ``now`` or later can meet."""
        if self.count:
            oldest = int(self.starts(np.array([self.count]), now)[0])
            self._begin += oldest - self.base
            self.base = oldest

    def _make_room(self, size: int) -> None:
        kept = self._end - self._begin
        length = max(1024, 2 * (kept + size))
        for name, column in self._columns.items():
            grown = np.empty(length, column.dtype)
            grown[:kept] = column[self._begin : self._end]
            self._columns[name] = grown
        self._begin, self._end = 0, kept

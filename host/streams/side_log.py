# SPDX-License-Identifier: Apache-2.0
"""What the host remembers of one side's tuples that were sent to the accelerator."""

from typing import Any

import numpy as np
import numpy.typing as npt

from host.runtime import Columns

__all__ = ["SideLog"]

Array = npt.NDArray[Any]
Int64s = npt.NDArray[np.int64]


class SideLog:
    """Columns of tuples, found by the tuples' numbers within their side.

    Old tuples are forgotten by :meth:`forget`, so memory follows the window, not the stream.

    Attributes
    ----------
    count : int
        Tuples since the beginning; the next one gets this number.
    """

    def __init__(self) -> None:
        self.count = 0
        self._columns: dict[str, Array] = {}
        self._first = 0  # number of the tuple at index 0 of the columns
        self._kept = 0  # number of the oldest tuple that is still needed

    def append(self, columns: Columns) -> None:
        """Add tuples; all calls have the same columns."""
        size = columns.num_rows
        used = self.count - self._first
        if not self._columns:
            self._columns = {name: array[:0] for name, array in columns.arrays.items()}
        length = min(len(array) for array in self._columns.values())
        if used + size > length:
            self._make_room(size)
            used = self.count - self._first
        for name, array in columns.arrays.items():
            self._columns[name][used : used + size] = array
        self.count += size

    def read(self, column: str, numbers: Int64s) -> Array:
        """Values of ``column`` for tuples that have not been forgotten."""
        if not self._columns:
            return np.zeros(0, np.int64)
        return self._columns[column][numbers - self._first]

    def at(self, column: str, number: int) -> Any:
        """One value, as a Python number."""
        return self._columns[column][number - self._first].item()

    def has(self, column: str) -> bool:
        """Whether tuples have that column; false before the first one."""
        return column in self._columns

    def forget(self, before: int) -> None:
        """Let go of tuples with lower numbers; their room is used when more is needed."""
        self._kept = max(self._kept, min(before, self.count))

    def _make_room(self, size: int) -> None:
        start, stop = self._kept - self._first, self.count - self._first
        length = max(1 << 12, 2 * (stop - start + size))
        for name, array in self._columns.items():
            grown = np.empty(length, array.dtype)
            grown[: stop - start] = array[start:stop]
            self._columns[name] = grown
        self._first = self._kept

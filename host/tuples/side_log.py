# SPDX-License-Identifier: Apache-2.0
"""The host's record of one side's tuples that were sent to the accelerator."""

from typing import Any

import numpy as np
import numpy.typing as npt

from host.runtime import Columns

__all__ = ["SideLog"]

Array = npt.NDArray[Any]
Int64s = npt.NDArray[np.int64]


class SideLog:
    """Columns of tuples, indexed by the tuples' numbers within their side.

    Old tuples are released by :meth:`forget`, so memory depends on the window, not on the stream.

    Attributes
    ----------
    count : int
        Number of tuples since the beginning, which is the number of the next one.
    kept : int
        Number of the oldest tuple that is still needed.
    """

    def __init__(self) -> None:
        self.count = 0
        self._columns: dict[str, Array] = {}
        self._first = 0  # number of the tuple at index 0 of the columns
        self.kept = 0

    def append(self, columns: Columns) -> None:
        """Add tuples. Existing columns must be given again.

        In a new column, earlier tuples get True if the column is boolean, and their numbers
        otherwise.
        """
        size = columns.num_rows
        used = self.count - self._first
        for name, array in columns.arrays.items():
            if name not in self._columns:
                length = max((len(other) for other in self._columns.values()), default=0)
                numbers = np.arange(self._first, self._first + length)
                is_flag = array.dtype == np.bool_
                self._columns[name] = (
                    np.ones(length, np.bool_) if is_flag else numbers.astype(array.dtype)
                )
        length = min(len(array) for array in self._columns.values())
        if used + size > length:
            self._make_room(size)
            used = self.count - self._first
        for name, array in columns.arrays.items():
            self._columns[name][used : used + size] = array
        self.count += size

    def read(self, column: str, numbers: Int64s) -> Array:
        """Return the values of ``column`` for tuples that have not been forgotten."""
        if not self._columns:
            return np.zeros(0, np.int64)
        return self._columns[column][numbers - self._first]

    def part(self, column: str, begin: int, end: int) -> Array:
        """Return ``column`` for adjacent tuples, as a view that the next append may change."""
        return self._columns[column][begin - self._first : end - self._first]

    def at(self, column: str, number: int) -> Any:
        """Return one value as a Python number."""
        return self._columns[column][number - self._first].item()

    def has(self, column: str) -> bool:
        """Return whether tuples have that column; False before the first tuple."""
        return column in self._columns

    def forget(self, before: int) -> None:
        """Release tuples with lower numbers; their room is reused when more is needed."""
        self.kept = max(self.kept, min(before, self.count))

    def _make_room(self, size: int) -> None:
        start, stop = self.kept - self._first, self.count - self._first
        length = max(1 << 12, 2 * (stop - start + size))
        for name, array in self._columns.items():
            grown = np.empty(length, array.dtype)
            grown[: stop - start] = array[start:stop]
            self._columns[name] = grown
        self._first = self.kept

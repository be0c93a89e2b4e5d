# SPDX-License-Identifier: Apache-2.0
"""Values of a key field that are computed only where they are needed."""

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["FieldValues"]

Array = npt.NDArray[Any]
UInt64s = npt.NDArray[np.uint64]

_MASK = (1 << 64) - 1


class FieldValues:
    """One key field of a batch's rows: ``(value * factor - minus) // divisor - place``.

    The values stay in an Arrow buffer, and :meth:`block` computes the field of some of them.

    Parameters
    ----------
    values : array of integers
        Values of any width.
    factor, minus, divisor : int
        How a value becomes a distance from the origin.
    place : int
        How far the smallest value of the field is below zero.
    """

    __slots__ = ("_divisor", "_factor", "_minus", "_place", "values")

    def __init__(
        self, values: Array, factor: int = 1, minus: int = 0, divisor: int = 1, place: int = 0
    ) -> None:
        self.values = values
        self._factor, self._divisor = factor, divisor
        if divisor == 1:
            minus, place = minus + place, 0
        self._minus, self._place = np.uint64(minus & _MASK), np.uint64(place & _MASK)

    def __len__(self) -> int:
        return len(self.values)

    def block(self, rows: slice) -> UInt64s:
        """Return the field of some rows, modulo 2**64, in a new array."""
        block: UInt64s = self.values[rows].astype(np.uint64)
        if self._factor != 1:
            block *= np.uint64(self._factor)
        if self._minus:
            block -= self._minus
        if self._divisor != 1:
            block //= np.uint64(self._divisor)
        if self._place:
            block -= self._place
        return block

    def of_rows(self, rows: npt.NDArray[np.int64]) -> "FieldValues":
        """Return the field of only the given rows, copied."""
        taken = FieldValues(self.values[rows], self._factor, 0, self._divisor)
        taken._minus, taken._place = self._minus, self._place
        return taken

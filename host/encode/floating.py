# SPDX-License-Identifier: Apache-2.0
"""Base of the encoders whose origin the first values of a stream determine."""

from collections.abc import Sequence
from typing import Any

import numpy.typing as npt
import pyarrow as pa

from host.encode.fields import FieldEncoder, TermTypes
from host.encode.kinds import integer_view, validity

__all__ = ["FloatingEncoder", "present"]

Array = npt.NDArray[Any]


class FloatingEncoder(FieldEncoder):
    """Encoder of integers as distances from an origin, with the first values in the middle.

    Parameters
    ----------
    term : TermTypes
        The term that the field stands for.
    factors : tuple of int
        Number of ticks in a unit of the left and of the right column.
    room : int
        Largest distance that the field holds, in ticks.
    minimum : int, optional
        Origin in ticks, if it is known.
    offsets : tuple of int
        Ticks that are added to the values of the left and of the right column.
    """

    def __init__(
        self,
        term: TermTypes,
        factors: tuple[int, int],
        room: int,
        *,
        minimum: int | None = None,
        offsets: tuple[int, int] = (0, 0),
    ) -> None:
        self._term = term
        self._factors = factors
        self._room = room
        self._minimum = minimum
        self._offsets = offsets

    def settle(self, batches: Sequence[tuple[int, pa.RecordBatch]]) -> None:
        if self._minimum is not None:
            return
        first: int | None = None
        extremes: list[int] = []
        for side, batch in batches:
            values = present(self._term.columns[side].read(batch))
            if len(values):
                factor, offset = self._factors[side], self._offsets[side]
                extremes += [int(end) * factor + offset for end in (values.min(), values.max())]
                first = int(values[0]) * factor + offset if first is None else first
        if first is not None:
            low, high = min(extremes), max(extremes)
            fits = high - low <= self._room
            self._minimum = (low + high if fits else 2 * first) // 2 - self._room // 2

    def _read(self, side: int, batch: pa.RecordBatch) -> tuple[pa.Array, Array]:
        """Return a column and its values; if the origin is not known, they determine it."""
        array = self._term.columns[side].read(batch)
        self.settle([(side, batch)])
        return array, integer_view(array)

    def _origin(self, side: int) -> int:
        """Return the number of ticks that is subtracted from the values of a side."""
        return (self._minimum or 0) - self._offsets[side]

    def _limits(self, side: int) -> tuple[int, int]:
        """Return the least and the greatest value of a side within the field's range."""
        origin, factor = self._origin(side), self._factors[side]
        return -(-origin // factor), (origin + self._room) // factor

    def _all_within(self, side: int, array: pa.Array) -> bool:
        """Return whether all values that are not null are within the field's range."""
        values = present(array)
        least, most = self._limits(side)
        return not len(values) or (least <= int(values.min()) and int(values.max()) <= most)


def present(array: pa.Array) -> Array:
    """Return the values that are not null, as a view if no value is null."""
    valid, view = validity(array), integer_view(array)
    return view if valid is None else view[valid]

# SPDX-License-Identifier: Apache-2.0
"""The column of time of an aggregation: its values, its windows and their boundaries."""

from collections.abc import Sequence
from math import gcd

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from host.encode.kinds import ORDERED, Kind, column_type, integer_view, row_at, shown, validity
from host.errors import (
    KeyRangeError,
    NullOrderError,
    UnsupportedTypeError,
    UsageError,
)
from host.query.aggregate_query import AggregateQuery, Span
from host.query.durations import Duration

__all__ = ["TimeColumn"]

Int64s = npt.NDArray[np.int64]


class TimeColumn:
    """A column of time, in its own unit.

    Parameters
    ----------
    schema : pa.Schema
    query : AggregateQuery

    Attributes
    ----------
    window, advance, pane : int
        Lengths in units of the column; a pane is the greatest common divisor of the others.
    type : pa.DataType
        Type of the boundaries of windows: that of the column, but int64 for all integers.

    Raises
    ------
    UsageError
        If there is no such column, it is no column of time, or the windows do not suit it.
    """

    def __init__(self, schema: pa.Schema, query: AggregateQuery) -> None:
        found = column_type(schema, query.time, "input")
        if not found.kind.is_order or found.kind in (Kind.BOOLEAN, Kind.TIME):
            raise UnsupportedTypeError(found.column, found.dtype, ORDERED)
        self.name = found.column
        self._column = found
        self.type = pa.int64() if found.kind is Kind.INTEGER else found.dtype
        assert query.advance is not None
        self.window = self._units("window", query.window)
        self.advance = self._units("advance", query.advance)
        self.pane = gcd(self.window, self.advance)

    def read(self, batch: pa.RecordBatch, first_row: int) -> Int64s:
        """Return the times of a batch, whose first row has this number in the whole input.

        Raises
        ------
        NullOrderError, KeyRangeError
            If a time is null, or a window that it is in has a boundary that the type cannot hold.
        """
        column = self._column.read(batch)
        valid = validity(column)
        if valid is not None:
            at = int(np.argmin(valid))
            raise NullOrderError(self.name, first_row + at, row_at(batch, at))
        times = integer_view(column)
        low, high = (int(times.min()), int(times.max())) if len(times) else (0, 0)
        reach = max(self.window, self.advance)
        edge = 1 << (self.type.bit_width - 1)
        least, most = reach - edge, edge - 1 - reach
        if not least < low <= high < most:
            raise KeyRangeError(
                self.name, low if low <= least else high, least + 1, most - 1,
                remedy="use shorter windows or a coarser unit of time",
                of=f"times whose windows begin and end within type {self.type}",
            )  # fmt: skip
        return times.astype(np.int64, copy=False)

    def boundaries(self, windows: Int64s) -> tuple[pa.Array, pa.Array]:
        """Return the left and the right boundaries of windows by their numbers."""
        starts = windows * self.advance
        return self.values(starts), self.values(starts + self.window)

    def values_of(self, times: Sequence[int]) -> list[object]:
        """Return times, in the column's units, as Python values."""
        return [shown(value) for value in self.values(np.array(times, np.int64))]

    def units(self, value: object) -> int:
        """Return a time that is given in the column's type, in its units.

        Raises
        ------
        UsageError
            If it is no value of the column's type.
        """
        try:
            array = pa.array([value], self.type)
            plain = pa.int32() if self.type.bit_width == 32 else pa.int64()
            return int(array.cast(plain)[0].as_py())
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            raise UsageError(
                f"A time of column {self.name!r} is of type {self.type}, not {value!r}."
            ) from error

    def values(self, times: Int64s) -> pa.Array:
        """Return times, in the column's units, in its type."""
        array = pa.array(times)
        if self._column.kind is Kind.INTEGER:
            return array
        if self.type.bit_width == 32:
            array = array.cast(pa.int32())
        return array.cast(self.type)

    def _units(self, what: str, span: Span) -> int:
        if isinstance(span, Duration) != self._column.kind.is_temporal:
            needed = (
                "a duration, such as 5min" if self._column.kind.is_temporal else "a whole number"
            )
            raise UsageError(
                f"The {what} over column {self.name!r} of type {self.type} must be {needed}, not "
                f"{span}."
            )
        if not isinstance(span, Duration):
            return span
        units, rest = divmod(span.nanoseconds, self._column.tick)
        if rest:
            raise UsageError(
                f"The {what} of {span} is no whole number of the units of column {self.name!r} "
                f"({self.type}, {Duration(self._column.tick)}); choose a multiple of that."
            )
        return units

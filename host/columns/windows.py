# SPDX-License-Identifier: Apache-2.0
"""Windows over a column of time: those of an aggregation, and those that a pair shares."""

from collections.abc import Sequence
from dataclasses import replace
from math import gcd

import numpy as np
import pyarrow as pa

from host.arrays import Int64s
from host.columns.kinds import (
    ORDERED,
    Kind,
    column_type,
    integer_view,
    of_units,
    row_at,
    shown,
    units_of,
    validity,
)
from host.errors import AcceleratorLimitError, OrderError, UnsupportedTypeError, UsageError
from host.query.quantities import Duration
from host.query.queries import Query
from host.query.words import Span

__all__ = [
    "PairWindows",
    "TimeColumn",
    "Windows",
]


# A column of time: its values, its windows and their boundaries.

#: Types that windows can be over, for messages.
_WINDOWED = ORDERED.replace(" bool,", "").replace(" time,", "")


class Windows:
    """Windows ``[n * advance, n * advance + window)`` over a time, and the panes they consist of.

    Parameters
    ----------
    name : str
        What errors call the time.
    window, advance : int

    Attributes
    ----------
    pane : int
        Length of a pane, the greatest common divisor of the others.
    """

    def __init__(self, name: str, window: int, advance: int) -> None:
        self.name, self.window, self.advance = name, window, advance
        self.pane = gcd(window, advance)

    def values_of(self, times: Sequence[int]) -> list[object]:
        """Return times as errors show them."""
        return list(times)

    def last_ended(self, watermark: int) -> int:
        """Return the number of the last window that ends at or before a time."""
        return (watermark - self.window) // self.advance


class TimeColumn(Windows):
    """A column of time, in its own unit, and the windows over it.

    Parameters
    ----------
    schema : pa.Schema
    name : str
        The column.
    window, advance : int or Duration
        Lengths; as attributes, they are in units of the column.

    Attributes
    ----------
    column : ColumnType
        The column; errors call it by its name alone.
    type : pa.DataType
        Type of the boundaries of windows: that of the column, but int64 for all integers.

    Raises
    ------
    UsageError
        If there is no such column, it is no column of time, or the windows do not suit it.
    """

    def __init__(self, schema: pa.Schema, name: str, window: Span, advance: Span) -> None:
        found = column_type(schema, name, "input")
        if not found.kind.is_order or found.kind in (Kind.BOOLEAN, Kind.TIME):
            raise UnsupportedTypeError(found.column, found.dtype, _WINDOWED)
        self.name, self.column = name, replace(found, name=name)
        self.type = pa.int64() if found.kind is Kind.INTEGER else found.dtype
        super().__init__(name, self._units("window", window), self._units("advance", advance))
        edge = 1 << (self.type.bit_width - 1)
        self._least, self._most = self.window - edge + 1, edge - 2 - self.window
        if self._least > self._most:
            raise UsageError(
                f"A window of {window} is longer than type {self.type} of column {name!r} can say; "
                f"choose a shorter one, or a coarser unit of time."
            )

    def read(self, batch: pa.RecordBatch, first_row: int) -> Int64s:
        """Return the times of a batch, whose first row has this number in the whole input.

        Raises
        ------
        OrderError, AcceleratorLimitError
            If a time is null, or a window that it is in has a boundary that the type cannot hold.
        """
        column = self.column.read(batch)
        valid = validity(column)
        if valid is not None:
            at = int(np.argmin(valid))
            raise OrderError.null(self.name, first_row + at, row_at(batch, at))
        times = integer_view(column)
        low, high = (int(times.min()), int(times.max())) if len(times) else (0, 0)
        least, most = self._least, self._most
        if not least <= low <= high <= most:
            raise AcceleratorLimitError.out_of_range(
                self.name, low if low < least else high, least, most,
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
        return units_of(value, repr(self.name), self.type)

    def values(self, times: Int64s) -> pa.Array:
        """Return times, in the column's units, in its type."""
        return of_units(pa.array(times), self.type)

    def _units(self, what: str, span: Span) -> int:
        if isinstance(span, Duration) != self.column.kind.is_temporal:
            needed = (
                "a duration, such as 5min" if self.column.kind.is_temporal else "a whole number"
            )
            raise UsageError(
                f"The {what} over column {self.name!r} of type {self.type} must be {needed}, not "
                f"{span}."
            )
        if not isinstance(span, Duration):
            return span
        units, rest = divmod(span.nanoseconds, self.column.tick)
        if rest:
            raise UsageError(
                f"The {what} of {span} is no whole number of the units of column {self.name!r} "
                f"({self.type}, {Duration(self.column.tick)}); choose a multiple of that."
            )
        return units


# The windows that both rows of a pair are in.


class PairWindows:
    """The windows of a join that asks for pairs per window.

    Parameters
    ----------
    query : Query
        The join, with ``per_window``.
    left, right : pa.Schema
        Columns of the inputs.

    Attributes
    ----------
    type : pa.DataType
        Type of the boundaries, as of those of an aggregation of the left rows.
    most : int
        Largest number of windows that a pair can share.

    Raises
    ------
    UsageError
        If the windows do not suit the columns of time, or these differ in their units.
    """

    def __init__(self, query: Query, left: pa.Schema, right: pa.Schema) -> None:
        assert query.advance is not None
        self._sides = [
            TimeColumn(schema, name, query.width, query.advance)
            for schema, name in zip((left, right), query.time, strict=True)
        ]
        first, second = self._sides
        if first.type != second.type:
            raise UsageError(
                f"Windows have boundaries of one type, but column {first.name!r} is of type "
                f"{first.type} and column {second.name!r} of type {second.type}; cast one of them "
                f"for per_window."
            )
        self.type = first.type
        self.most = -(-first.window // first.advance)
        self._places = (
            left.get_field_index(first.name),
            len(left) + right.get_field_index(second.name),
        )

    def repeated(self, pairs: pa.RecordBatch) -> tuple[Int64s, list[pa.Array]]:
        """Return which pair each row of the result is, and the boundaries of its window.

        Parameters
        ----------
        pairs : pa.RecordBatch
            The left columns, then the right ones, of pairs that share a window.
        """
        time = self._sides[0]
        times = [
            side.read(pairs.select([place]).rename_columns([side.name]), 0)
            for side, place in zip(self._sides, self._places, strict=True)
        ]
        last = np.minimum(*times) // time.advance
        first = (np.maximum(*times) - time.window) // time.advance + 1
        counts = last - first + 1
        index = np.repeat(np.arange(len(counts)), counts)
        windows = np.arange(len(index)) - np.repeat(np.cumsum(counts) - counts - first, counts)
        return index, list(time.boundaries(windows))

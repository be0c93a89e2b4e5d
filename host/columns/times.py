# SPDX-License-Identifier: Apache-2.0
"""Encode the order columns as timestamps, and the window in their units."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pyarrow as pa

from host.arrays import Array, UInt64s
from host.columns.kinds import (
    ORDERED,
    ColumnType,
    Ranges,
    bound_in_ticks,
    common_tick,
    integer_view,
    outside,
    row_at,
    shown,
    span_of,
    units_of,
)
from host.errors import AcceleratorLimitError, OrderError, UnsupportedTypeError
from host.installation import command
from host.protocol.manifest import Manifest
from host.query.queries import Query
from host.reference.window import CountWindow, TimeWindow, Window

__all__ = [
    "OrderCheck",
    "TimeEncoder",
    "TimePlan",
    "plan_times",
    "require_temporal",
]


_MASK = (1 << 64) - 1


@dataclass(frozen=True)
class TimePlan:
    """Plan of how both order columns become timestamps.

    Parameters
    ----------
    columns : tuple of ColumnType
        Types of the left and of the right order column.
    factors : tuple of int
        Number of ticks in a unit of either column.
    divisor : int
        Number of ticks in a unit of the timestamps.
    bits : int
        Width of the timestamps in bits.
    origin : int or None
        Timestamp zero, in ticks; None if the smallest of the first values is used.
    """

    columns: tuple[ColumnType, ColumnType]
    factors: tuple[int, int]
    divisor: int
    bits: int
    origin: int | None

    def start(self) -> "TimeEncoder":
        """Return an encoder of the times for one execution."""
        return TimeEncoder(self)

    def ticks(self, value: object) -> int:
        """Return a value of the left order column in ticks.

        Raises
        ------
        UsageError
            If the column cannot hold the value.
        """
        column = self.columns[0]
        return units_of(value, column.name, column.dtype) * self.factors[0]


class TimeEncoder:
    """Encoder of the times of both sides in one execution.

    Parameters
    ----------
    plan : TimePlan
        Plan of the encoding.
    """

    def __init__(self, plan: TimePlan) -> None:
        self._plan = plan
        self._origin = plan.origin

    def settle(self, firsts: Sequence[tuple[int, Array]]) -> None:
        """Learn the origin from the first values of the sides; later calls have no effect."""
        starts = [int(times[0]) * self._plan.factors[side] for side, times in firsts if len(times)]
        if self._origin is None and starts:
            self._origin = min(starts)

    def floor(self, ticks: int) -> int:
        """Return the greatest timestamp that is not later than a time; it may be below zero."""
        return (ticks - (self._origin or 0)) // self._plan.divisor

    def encode(self, side: int, values: Array, first: int) -> UInt64s:
        """Return timestamps of ascending ``values``, which begin at row ``first`` of their side.

        Raises
        ------
        AcceleratorLimitError
            If a time is too late, or not a whole number of steps from the origin.
        OrderError
            If a time is before the origin, and so before the first row of both sides.
        """
        plan, origin = self._plan, self._origin or 0
        factor = plan.factors[side]
        if len(values) and plan.origin is None:
            self._require_fit(side, values, first)
        times: UInt64s = values.astype(np.uint64)
        if factor != 1:
            times *= np.uint64(factor)
        if origin:
            times -= np.uint64(origin & _MASK)
        if plan.divisor != 1:
            units = times // np.uint64(plan.divisor)
            if plan.origin is None and (units * np.uint64(plan.divisor) != times).any():
                at = int(np.argmax(units * np.uint64(plan.divisor) != times))
                self._refuse(side, int(values[at]), first + at)
            times = units
        return times

    def _require_fit(self, side: int, values: Array, first: int) -> None:
        plan, name = self._plan, self._plan.columns[side].name
        least, most = self._limits(side)
        if int(values[0]) < least:
            raise OrderError.disorder(name, first, least, int(values[0]))
        if int(values[-1]) > most:
            at = int(np.argmax(outside(values, least, most)))
            ticks = int(values[at]) * plan.factors[side] - (self._origin or 0)
            raise AcceleratorLimitError.out_of_range(
                name, int(values[at]), least, most,
                remedy=_remedy((ticks // plan.divisor).bit_length()), row=first + at,
            )  # fmt: skip

    def _limits(self, side: int) -> tuple[int, int]:
        """Return the least and the greatest time of a side that has a timestamp."""
        plan, origin = self._plan, self._origin or 0
        top = origin + ((1 << plan.bits) - 1) * plan.divisor
        return -(-origin // plan.factors[side]), top // plan.factors[side]

    def _refuse(self, side: int, value: int, row: int) -> None:
        raise AcceleratorLimitError.out_of_range(
            self._plan.columns[side].name,
            f"{value}, no whole number of steps from the first time",
            *self._limits(side),
            remedy="give the range of the column its true step",
            row=row,
        )


def require_temporal(column: ColumnType) -> None:
    """Raise unless the column can give an order of arrival.

    Raises
    ------
    UnsupportedTypeError
        If the column's kind gives no order of arrival.
    """
    if not column.kind.is_order:
        raise UnsupportedTypeError(column.name, column.dtype, ORDERED)


class OrderCheck:
    """Check that the times of batches are there, and never decrease.

    Parameters
    ----------
    column : ColumnType
        The column of time.
    first : int
        Number of the first row.
    is_sorted : bool
        Whether times must not decrease; otherwise they must only be there.
    """

    def __init__(self, column: ColumnType, first: int = 0, *, is_sorted: bool = True) -> None:
        self._column, self._is_sorted = column, is_sorted
        self._rows = first
        self._last: tuple[int, object] | None = None  # last time: integer, Python value

    def see(self, batch: pa.RecordBatch) -> None:
        """Look at the next rows.

        Raises
        ------
        OrderError
            The errors name the row.
        """
        array, name, rows = self._column.read(batch), self._column.name, self._rows
        if array.null_count:
            at = int(np.argmin(array.is_valid().to_numpy(zero_copy_only=False)))
            raise OrderError.null(name, rows + at, row_at(batch, at))
        values = integer_view(array)
        if not len(values) or not self._is_sorted:
            self._rows += len(values)
            return
        if self._last is not None and int(values[0]) < self._last[0]:
            raise OrderError.disorder(name, rows, self._last[1], shown(array[0]))
        falls = values[1:] < values[:-1]
        if falls.any():
            at = int(np.argmax(falls))
            raise OrderError.disorder(name, rows + at + 1, shown(array[at]), shown(array[at + 1]))
        self._last = int(values[-1]), shown(array[len(array) - 1])
        self._rows += len(values)


def plan_times(
    columns: tuple[ColumnType, ColumnType],
    query: Query,
    manifest: Manifest,
    ranges: tuple[Ranges, Ranges],
    *,
    seen: bool = False,
) -> tuple[TimePlan, Window]:
    """Plan the timestamps, and the window.

    Parameters
    ----------
    columns : tuple of ColumnType
        Types of the left and of the right order column.
    query : Query
        The join.
    manifest : Manifest
        Of the accelerator.
    ranges : tuple of mapping
        Ranges of columns.
    seen : bool
        Whether the ranges are those of all values. Otherwise the first row is the origin.

    Raises
    ------
    AcceleratorLimitError
        If the times are seen, and do not fit; or if the window is one of time, and the accelerator
        has no timestamps.
    """
    tick, factors = common_tick(*columns)
    bits = _timestamp_bits(query, manifest)
    top, span = (1 << bits) - 1, span_of(columns, factors, ranges)
    divisor = span.step if span.high - span.low > top else 1
    needed = ((span.high - span.low) // divisor).bit_length()
    if seen and needed > bits:
        highs = [of[column.column][1] for column, of in zip(columns, ranges, strict=True)]
        latest = highs[0] is not None and highs[0] * factors[0] == span.high
        raise AcceleratorLimitError.out_of_range(
            columns[0 if latest else 1].name,
            span.high,
            span.low,
            span.low + top * divisor,
            remedy=_remedy(needed),
        )
    plan = TimePlan(columns, factors, divisor, bits, span.low if seen else None)
    return plan, _window(query, columns[0], tick, divisor, top)


def _timestamp_bits(query: Query, manifest: Manifest) -> int:
    """Return how wide timestamps may be: those of a window of rows never leave the host."""
    if not query.is_timed:
        return 64
    if not manifest.timestamp_bits:
        raise AcceleratorLimitError(
            "The accelerator has no timestamps, and the query has a window of time",
            "use a window of rows, or an accelerator with --timestamp-bits",
        )
    return manifest.timestamp_bits


def _window(query: Query, column: ColumnType, tick: int, divisor: int, top: int) -> Window:
    """Return the window in units of ``divisor`` ticks, limited to the range of timestamps."""
    if query.rows is not None:
        return CountWindow(query.rows)
    ticks = bound_in_ticks(query.width, column, tick, "The window")
    return TimeWindow(min(int(Fraction(ticks or 0) // divisor), top))


def _remedy(bits: int) -> str:
    if bits > 64:
        return "the times lie too far apart, 64 bits are the most"
    return (
        f"cast it to a coarser unit, or build a bundle with {bits} bits of timestamp: "
        f"`{command(f'sim build --preset demo --timestamp-bits {bits} --output DIR')}`"
    )

# SPDX-License-Identifier: Apache-2.0
"""The order columns as whole numbers, which ranges of time are cut by."""

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import (
    BooleanType,
    DataType,
    DateType,
    DayTimeIntervalType,
    LongType,
    TimestampNTZType,
    TimestampType,
)

from host.query.quantities import Duration, as_duration
from host.query.queries import JoinQuery
from host.reference.window import TimeWindow

__all__ = ["LEAST", "can_be_cut", "gauge_width", "order_number", "window_width"]

LEAST = -(1 << 63)
"""Not above any order number."""

_UNIT: dict[type[DataType], int] = {
    DateType: 86_400_000_000_000,
    TimestampType: 1_000,
    TimestampNTZType: 1_000,
    DayTimeIntervalType: 1_000,
}
"""Nanoseconds between two order numbers that follow each other."""


def can_be_cut(kind: DataType) -> bool:
    """Tell whether order columns of this common type can be cut into ranges."""
    return isinstance(kind, (LongType, BooleanType, DateType, TimestampType, TimestampNTZType))


def order_number(order: Column, kind: DataType) -> Column:
    """Return a column of 64-bit integers that stand as far apart as the times do.

    Parameters
    ----------
    order : Column
        Of the common type of both order columns.
    kind : DataType
        That type; one that :func:`can_be_cut`.
    """
    if isinstance(kind, DateType):
        return F.unix_date(order).cast("long")
    if isinstance(kind, TimestampType):
        return F.unix_micros(order)
    if isinstance(kind, TimestampNTZType):
        # By way of the interval, as a cast to an instant would depend on the session's time zone.
        seconds = (order - F.expr("timestamp_ntz'1970-01-01'")).cast("decimal(38,6)")
        return (seconds * 1_000_000).cast("long")
    return order.cast("long")


def gauge_width(query: JoinQuery, kind: DataType) -> int | None:
    """Return the width of a window as a difference of the numbers that tasks read.

    None for a window of rows, and for order columns that tasks do not read as numbers.
    """
    is_number = isinstance(kind, (LongType, BooleanType, *_UNIT))
    return window_width(query, kind) if query.is_timed and is_number else None


def window_width(query: JoinQuery, kind: DataType) -> int:
    """Return the width of a time-based window as a difference of order numbers."""
    width = query.window
    if isinstance(width, TimeWindow):
        return int(width.lifespan)
    length = width if isinstance(width, Duration) else as_duration(width)  # type: ignore[arg-type]
    return length.nanoseconds // _UNIT[type(kind)]

# SPDX-License-Identifier: Apache-2.0
"""Ranges of a column's values that are known before the values arrive."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from math import gcd
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from host.encode.kinds import ColumnType

__all__ = ["ColumnRange", "Ranges", "Span", "outside", "span_of"]

Array = npt.NDArray[Any]


class ColumnRange(NamedTuple):
    """All values lie between ``low`` and ``high``, a whole number of steps from ``low``.

    Attributes
    ----------
    low, high : int, date, datetime, …
        Limits as integers in the column's unit, or as Python values of its type.
    step : int
        Step in the column's unit.
    """

    low: Any
    high: Any
    step: int = 1


#: Ranges of some columns of one table, as ``ColumnRange`` or as ``(low, high)``.
Ranges: TypeAlias = Mapping[str, Sequence[Any]]


class Span(NamedTuple):
    """Range of the values of a pair of columns, in ticks.

    Attributes
    ----------
    low, high : int
        Smallest and largest value.
    step : int
        A divisor of the difference of any two values.
    known : bool
        Whether a range was given for both columns. If not, it is the range of their types.
    """

    low: int
    high: int
    step: int
    known: bool


def span_of(
    columns: tuple[ColumnType, ColumnType],
    factors: tuple[int, int],
    ranges: tuple[Ranges, Ranges],
) -> Span:
    """Return the range of the values of both columns together."""
    parts = []
    for column, factor, given in zip(columns, factors, ranges, strict=True):
        entry = given.get(column.column)
        if entry is None:
            low, high = column.limits
            step = 1
        else:
            low, high, step = ColumnRange(*entry)
            low, high = _ticks(low, column), _ticks(high, column)
        parts.append(Span(low * factor, high * factor, step * factor, entry is not None))
    step = gcd(parts[0].step, parts[1].step, parts[0].low - parts[1].low)
    return Span(
        min(part.low for part in parts),
        max(part.high for part in parts),
        step if all(part.known for part in parts) else 1,
        all(part.known for part in parts),
    )


def outside(values: Array, low: int, high: int) -> npt.NDArray[np.bool_]:
    """Return which ``values``, integers of any type, are not between two integers."""
    info = np.iinfo(values.dtype)
    if low > info.max or high < info.min:
        return np.ones(len(values), np.bool_)
    return (values < max(low, int(info.min))) | (values > min(high, int(info.max)))


def _ticks(value: Any, column: ColumnType) -> int:
    """Return a value of the column's type as an integer in the column's unit."""
    if isinstance(value, (int, np.integer)):
        return int(value)
    if isinstance(value, Decimal):
        return int(Fraction(value) * 10**column.dtype.scale)
    return int(pa.scalar(value, column.dtype).value)

# SPDX-License-Identifier: Apache-2.0
"""The common unit of two columns, and bounds of their differences in it."""

from fractions import Fraction
from math import gcd

from host.columns.kinds import DAY, DECIMAL_DIGITS, ColumnType, Kind
from host.errors import UsageError
from host.query.quantities import Duration
from host.query.words import Bound

__all__ = [
    "bound_in_ticks",
    "coded_difference",
    "common_tick",
    "require_same_kind",
]


def require_same_kind(left: ColumnType, right: ColumnType) -> None:
    """Raise unless the values of both columns can be compared."""
    if left.kind is not right.kind:
        raise UsageError(
            f"Column {left.name!r} ({left.dtype}: {left.kind.value}) cannot be compared with "
            f"column {right.name!r} ({right.dtype}: {right.kind.value}); cast one of them."
        )


def common_tick(left: ColumnType, right: ColumnType) -> tuple[int, tuple[int, int]]:
    """Return the common unit of both columns, and how many of it a unit of each column has."""
    tick = gcd(left.tick, right.tick)
    return tick, (left.tick // tick, right.tick // tick)


def coded_difference(column: ColumnType, what: str) -> UsageError:
    """Return the error for a difference of values without differences, such as text."""
    return UsageError(f"{what}: {column.kind.plural} can be compared for equality only.")


def bound_in_ticks(bound: Bound, column: ColumnType, tick: int, what: str) -> Fraction | int | None:
    """Return ``bound`` in ticks of the columns.

    Raises
    ------
    UsageError
        If a number bounds temporal columns, a duration bounds other columns, or a bound of dates
        is not a whole number of days.
    """
    if bound is None:
        return None
    if isinstance(bound, Duration):
        if not column.kind.is_temporal and bound.nanoseconds:
            raise UsageError(
                f"{what} {bound} is a duration, but column {column.name!r} has type "
                f"{column.dtype}; write a plain number."
            )
        if column.kind is Kind.DATE and bound.nanoseconds % DAY:
            raise UsageError(
                f"{what} {bound} is not a whole number of days, but column {column.name!r} has "
                f"type {column.dtype}, and dates lie whole days apart; write whole days, like 1d, "
                f"or cast the column to a timestamp."
            )
        return Fraction(bound.nanoseconds, tick)
    if column.kind.is_temporal and bound:
        raise UsageError(
            f"{what} {bound} is a plain number, but column {column.name!r} has type "
            f"{column.dtype}; write a duration, like {_example(column)}."
        )
    if column.kind.is_coded and column.kind is not Kind.FLOAT and bound:
        raise coded_difference(column, f"{what} {bound}")
    assert isinstance(bound, (int, Fraction))
    return Fraction(bound) * 10**DECIMAL_DIGITS / tick if column.kind is Kind.DECIMAL else bound


def _example(column: ColumnType) -> str:
    """Return an example of a duration for the column, for messages."""
    return "1d" if column.kind is Kind.DATE else "30s or 180min"

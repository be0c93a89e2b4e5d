# SPDX-License-Identifier: Apache-2.0
"""Convert two columns to one unit and one origin, keeping all differences."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import gcd

import numpy as np
import numpy.typing as npt

from host.columns.kinds import DAY, DECIMAL_DIGITS, Column, ColumnType, Kind
from host.errors import UsageError
from host.query.quantities import Duration
from host.query.words import Bound

__all__ = [
    "Scale",
    "bound_in_ticks",
    "coded_difference",
    "common_tick",
    "require_same_kind",
    "scale_of",
]

UInt64s = npt.NDArray[np.uint64]

_MASK = (1 << 64) - 1


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


@dataclass(frozen=True)
class Scale:
    """How values of a pair of columns become distances from one origin.

    Parameters
    ----------
    tick : int
        Size of a tick: in nanoseconds for temporal columns, in ``10 ** -38`` for decimals, else
        one.
    factors : tuple of int
        Number of ticks in a unit of the left and of the right column.
    minimum, span : int
        Origin, and largest distance from it, in ticks.
    divisor : int
        Number of ticks in a unit of the distances, which divides all of them.
    """

    tick: int
    factors: tuple[int, int]
    minimum: int
    span: int
    divisor: int = 1

    @property
    def top(self) -> int:
        """Largest distance, in units."""
        return self.span // self.divisor

    def common_step(self, columns: Sequence[Column]) -> int:
        """Return the greatest common divisor of all distances of both ``columns``, at least 1."""
        return max(
            1, _common_divisor([self.distances(column, side) for side, column in _full(columns)])
        )

    def reduced(self, columns: Sequence[Column]) -> "Scale":
        """Return the scale divided by the greatest common divisor of all distances."""
        return replace(self, divisor=self.divisor * self.common_step(columns))

    def distances(self, column: Column, side: int) -> UInt64s:
        """Return the distances of all values of ``column``, in units; they are exact in 64 bits."""
        if column.is_empty:
            return np.zeros(len(column.data), np.uint64)
        result = column.integers.view(np.uint64)
        if self.factors[side] != 1:
            result = result * np.uint64(self.factors[side])
        result = result - np.uint64(self.minimum & _MASK)
        return result // np.uint64(self.divisor) if self.divisor != 1 else result


def scale_of(columns: Sequence[Column]) -> Scale | None:
    """Return the common unit and origin of two columns of one kind that is not coded.

    Returns
    -------
    Scale or None
        None if values are 2**64 ticks or more apart.
    """
    tick, factors = common_tick(columns[0].type, columns[1].type)
    extremes = [
        (int(column.integers.min()) * factors[side], int(column.integers.max()) * factors[side])
        for side, column in _full(columns)
    ]
    if not extremes:
        return Scale(tick, factors, 0, 0)
    minimum = min(low for low, _ in extremes)
    span = max(high for _, high in extremes) - minimum
    return None if span > _MASK else Scale(tick, factors, minimum, span)


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


def _full(columns: Sequence[Column]) -> list[tuple[int, Column]]:
    """Return the columns that have a value, with their sides."""
    return [(side, column) for side, column in enumerate(columns) if not column.is_empty]


def _common_divisor(arrays: list[UInt64s]) -> int:
    """Return the greatest common divisor of all values; a sample suffices if it has divisor 1."""
    for sample in (256, None):
        common = 0
        for array in arrays:
            common = gcd(common, int(np.gcd.reduce(array[:sample], initial=0)))
        if common == 1:
            break
    return common

# SPDX-License-Identifier: Apache-2.0
"""Two columns brought to one unit and one origin, without losing a difference."""

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor, gcd

import numpy as np
import numpy.typing as npt

from host.durations import Duration
from host.encode.kinds import Column, Kind
from host.errors import UsageError
from host.query import Bound

__all__ = ["Scaled", "bound_in_ticks", "require_same_kind", "scale"]

UInt64s = npt.NDArray[np.uint64]

_MASK = (1 << 64) - 1


def require_same_kind(left: Column, right: Column) -> None:
    """Raise unless the values of both columns can be compared."""
    if left.kind is not right.kind:
        raise UsageError(
            f"Column {left.name!r} ({left.data.type}: {left.kind.value}) cannot be compared with "
            f"column {right.name!r} ({right.data.type}: {right.kind.value}); cast one of them."
        )


@dataclass(frozen=True)
class Scaled:
    """A pair of columns as distances from their common minimum.

    Parameters
    ----------
    left, right : array of uint64
        Distances in units of ``divisor`` ticks.
    minimum, span : int
        Least value, and greatest distance, in ticks.
    tick : int
        Nanoseconds of a tick if the columns are temporal, else one.
    divisor : int
        Ticks of one unit of ``left`` and ``right``; divides every distance.
    greatest : str
        Column that holds the greatest value, for messages.
    """

    left: UInt64s
    right: UInt64s
    minimum: int
    span: int
    tick: int
    divisor: int
    greatest: str

    @property
    def top(self) -> int:
        """Greatest distance in ``left`` and ``right``."""
        return self.span // self.divisor

    def reduced(self) -> "Scaled":
        """Divide by the greatest common divisor of all distances."""
        common = _common_divisor([self.left, self.right])
        if common <= 1:
            return self
        unit = np.uint64(common)
        return Scaled(
            self.left // unit,
            self.right // unit,
            self.minimum,
            self.span,
            self.tick,
            self.divisor * common,
            self.greatest,
        )

    def low(self, ticks: Fraction | int | None) -> int | None:
        """Least difference of ``left`` and ``right`` that is at least so many ``ticks``."""
        return None if ticks is None else ceil(Fraction(ticks) / self.divisor)

    def high(self, ticks: Fraction | int | None) -> int | None:
        """Greatest difference of ``left`` and ``right`` that is at most so many ``ticks``."""
        return None if ticks is None else floor(Fraction(ticks) / self.divisor)


def scale(left: Column, right: Column) -> Scaled | None:
    """Bring two columns of one kind, not text, to one unit and origin.

    Returns
    -------
    Scaled or None
        None if the values lie 2**64 units or more apart.
    """
    tick = gcd(left.tick, right.tick)
    columns = [(column, column.tick // tick) for column in (left, right)]
    extremes = [
        (int(column.integers.min()) * factor, int(column.integers.max()) * factor, column.name)
        for column, factor in columns
        if not column.is_empty
    ]
    if not extremes:
        zeros = [np.zeros(len(column.data), np.uint64) for column, _ in columns]
        return Scaled(zeros[0], zeros[1], 0, 0, tick, 1, left.name)
    minimum = min(low for low, _, _ in extremes)
    maximum, greatest = max((high, name) for _, high, name in extremes)
    if maximum - minimum > _MASK:
        return None
    distances = [_distances(column, factor, minimum) for column, factor in columns]
    return Scaled(distances[0], distances[1], minimum, maximum - minimum, tick, 1, greatest)


def bound_in_ticks(bound: Bound, column: Column, tick: int, what: str) -> Fraction | int | None:
    """Return ``bound`` in ticks of the columns.

    Raises
    ------
    UsageError
        If a number bounds temporal columns, or a duration others.
    """
    # Imported names would be cyclic in meaning: only its shape matters here.
    if bound is None:
        return None
    if isinstance(bound, Duration):
        if not column.kind.is_temporal and bound.nanoseconds:
            raise UsageError(
                f"{what} {bound} is a duration, but column {column.name!r} has type "
                f"{column.data.type}; write a plain number."
            )
        return Fraction(bound.nanoseconds, tick)
    if column.kind.is_temporal and bound:
        raise UsageError(
            f"{what} {bound} is a plain number, but column {column.name!r} has type "
            f"{column.data.type}; write a duration, like 30s or 180min."
        )
    if column.kind is Kind.TEXT and bound:
        raise UsageError(f"{what} {bound}: strings can be compared for equality only.")
    assert isinstance(bound, (int, Fraction))
    return bound


def _distances(column: Column, factor: int, minimum: int) -> UInt64s:
    """Distances from ``minimum`` in ticks; exact, because they are known to fit 64 bits."""
    if column.is_empty:
        return np.zeros(len(column.data), np.uint64)
    values = column.integers.view(np.uint64)
    least = int(column.integers.min())
    result = values - np.uint64(least & _MASK)
    if factor != 1:
        result *= np.uint64(factor)
    offset = least * factor - minimum
    if offset:
        result += np.uint64(offset)
    return result


def _common_divisor(arrays: list[UInt64s]) -> int:
    """Greatest common divisor of all values; a few values settle it when it is one."""
    for sample in (256, None):
        common = 0
        for array in arrays:
            common = gcd(common, int(np.gcd.reduce(array[:sample], initial=0)))
        if common == 1:
            break
    return common

# SPDX-License-Identifier: Apache-2.0
"""The comparisons of a query as Spark evaluates them: exact, and without overflow."""

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import reduce
import math
from typing import Any, TypeAlias

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import (
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DayTimeIntervalType,
    DecimalType,
    IntegerType,
    ShortType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from host.columns.fields import TermTypes
from host.columns.kinds import Kind, column_type
from host.columns.scale import bound_in_ticks, common_tick
from host.query.queries import Term

__all__ = ["MOST_LONG", "Difference", "Limit", "difference_of"]

Limit: TypeAlias = int | float | Decimal | None
"""A bound in the unit of the numbers that are compared; None if that end is open."""

MOST_LONG = (1 << 63) - 1
"""The greatest whole number of 64 bits."""

_NARROW = (BooleanType, ByteType, ShortType, IntegerType, DateType)
"""Types whose differences fit 64 bits."""

_FARTHEST = {True: 1 << 33, False: 1 << 65}
"""No two whole numbers are so far apart: of narrow types, and of those of 64 bits."""

_MOST_DIGITS = 10**38 - 1
"""The greatest decimal of Spark, without its point."""


@dataclass(frozen=True)
class Difference:
    """One term over two columns: ``low <= left - right <= high``, or an equality.

    The two columns become numbers of one unit: whole numbers, dates (in days) and times (in
    microseconds) become ``bigint``, floating-point numbers ``double``, decimals stay what they are.

    Parameters
    ----------
    types : TermTypes
        The term, and what its columns hold.
    kinds : (DataType, DataType)
        The columns' types in Spark.
    low, high : int, float, Decimal or None
        The bounds in the common unit; those of whole numbers rounded inwards.
    """

    types: TermTypes
    kinds: tuple[DataType, DataType]
    low: Limit
    high: Limit

    @property
    def is_equality(self) -> bool:
        """Whether the two values must be equal."""
        return self.types.term.is_equality

    @property
    def is_whole(self) -> bool:
        """Whether the numbers are whole numbers of 64 bits."""
        return self.types.left.kind not in (Kind.FLOAT, Kind.DECIMAL)

    @property
    def farthest(self) -> int:
        """A distance that no two of the numbers have, if they are whole."""
        return _farthest(self.kinds)

    def number(self, column: Column, side: int) -> Column:
        """Return a column of one side as the number that is compared."""
        kind = self.kinds[side]
        if isinstance(kind, DecimalType):
            return column
        if self.types.left.kind is Kind.FLOAT:
            return column.cast("double")
        if self.types.left.kind is Kind.TIME:
            return (column.cast("decimal(14,9)") * 1_000_000_000).cast("bigint")
        return _WHOLE.get(type(kind), _long)(column)

    def holds(self, left: Column, right: Column) -> Column:
        """Return the condition that a pair fulfils; null if a value is, which leaves it out."""
        if self.is_equality:
            return left == right
        bounds = [limit for limit in (self.low, self.high) if limit is not None]
        if not bounds:
            return left.isNotNull() & right.isNotNull()
        difference, number = self._subtracted(self.number(left, 0), self.number(right, 1))
        conditions = []
        if self.low is not None:
            conditions.append(difference >= F.lit(number(self.low)))
        if self.high is not None:
            conditions.append(difference <= F.lit(number(self.high)))
        return reduce(lambda one, other: one & other, conditions)

    def _subtracted(self, left: Column, right: Column) -> tuple[Column, Callable[[Any], Any]]:
        """Return the difference, and the function of a bound to what it is compared with."""
        if not self.is_whole or all(isinstance(kind, _NARROW) for kind in self.kinds):
            return left - right, lambda limit: limit
        if all(
            limit is not None and abs(int(limit)) <= MOST_LONG for limit in (self.low, self.high)
        ):
            # A difference that overflows is null: it is outside of any such bounds.
            return F.try_subtract(left, right), lambda limit: limit
        return left.cast("decimal(20,0)") - right.cast("decimal(20,0)"), Decimal


def difference_of(
    term: Term, schemas: tuple[StructType, StructType], arrow: tuple[pa.Schema, pa.Schema]
) -> Difference:
    """Return how Spark evaluates ``term`` over inputs of these schemas.

    Raises
    ------
    UsageError
        If the columns or the bounds cannot be compared.
    """
    names = term.left, term.right
    kinds = schemas[0][names[0]].dataType, schemas[1][names[1]].dataType
    types = TermTypes(
        term, column_type(arrow[0], names[0], "left"), column_type(arrow[1], names[1], "right")
    )
    tick = common_tick(types.left, types.right)[0]
    limits = []
    for bound, inwards in ((term.low, math.ceil), (term.high, math.floor)):
        ticks = bound_in_ticks(bound, types.left, tick, f"In '{term}', bound")
        limits.append(None if ticks is None else _limit(Fraction(ticks), types, kinds, inwards))
    return Difference(types, kinds, *limits)


def _limit(
    ticks: Fraction,
    types: TermTypes,
    kinds: tuple[DataType, DataType],
    inwards: Callable[[Fraction], int],
) -> Limit:
    """A bound in ticks as the number that differences are compared with."""
    if types.left.kind is Kind.FLOAT:
        try:
            return float(ticks)
        except OverflowError:
            return math.inf if ticks > 0 else -math.inf
    whole = inwards(ticks)
    if types.left.kind is not Kind.DECIMAL:
        farthest = _farthest(kinds)
        return max(-farthest, min(whole, farthest))
    scale = max(kind.scale for kind in kinds if isinstance(kind, DecimalType))
    return Decimal(max(-_MOST_DIGITS, min(whole, _MOST_DIGITS))).scaleb(-scale)


def _long(number: Column) -> Column:
    return number.cast("bigint")


def _farthest(kinds: tuple[DataType, DataType]) -> int:
    """A distance that no two whole numbers of these types have."""
    return _FARTHEST[all(isinstance(kind, _NARROW) for kind in kinds)]


def _microseconds(interval: Column) -> Column:
    return F.call_function("div", interval, F.expr("interval '0.000001' second"))


# Times without a zone are subtracted from one another: their difference is an interval of exact
# length, whatever the session's zone, whereas `timestampdiff` counts its changes of the clock.
_WHOLE: dict[type[DataType], Callable[[Column], Column]] = {
    DateType: lambda date: F.unix_date(date).cast("bigint"),
    TimestampType: F.unix_micros,
    TimestampNTZType: lambda time: _microseconds(time - F.lit("1970-01-01").cast("timestamp_ntz")),
    DayTimeIntervalType: _microseconds,
}

# SPDX-License-Identifier: Apache-2.0
"""The same question as Spark's own join: where no accelerator can serve, and to verify one."""

from decimal import Decimal
from fractions import Fraction
from functools import reduce
import math
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    TimestampNTZType,
    TimestampType,
)

from host import CountWindow, UsageError
from host.durations import Duration
from host.query import Bound, JoinQuery, Term
from spark_offload.columns import output_schema

__all__ = ["own_join"]

_TEMPORAL = (DateType, TimestampType, TimestampNTZType)


def own_join(left: DataFrame, right: DataFrame, query: JoinQuery) -> DataFrame:
    """Return the answer to a join over a time-based window, joined by Spark, in no order.

    A pair within a window is a pair whose times differ by no more than its width, whatever came
    first; so conditions on the columns say all of it. Without an equality Spark compares every row
    with every row.

    Raises
    ------
    UsageError
        If the window is count-based: which rows it holds is no condition on two rows.
    """
    if isinstance(query.window, CountWindow):
        raise UsageError(
            f"The last {query.window.size} rows of a side are no condition on two rows, so Spark "
            f"cannot join them by itself; give a window by time (within=...)."
        )
    width: Any = getattr(query.window, "lifespan", query.window)
    window = Term(*query.order, -width, width)
    terms = [_condition(term, left, right) for term in (window, *query.terms)]
    names = output_schema(left.schema, right.schema, query.suffix, query.how).names
    l, r = left.alias("l"), right.alias("r")
    joined = l.join(r, reduce(lambda one, other: one & other, terms), query.how.value)
    columns = [F.col(f"l.`{name}`") for name in left.columns]
    if query.how.has_pairs:
        columns += [F.col(f"r.`{name}`") for name in right.columns]
    return joined.select(*(column.alias(name) for column, name in zip(columns, names, strict=True)))


def _condition(term: Term, left: DataFrame, right: DataFrame) -> Column:
    """A term as a condition; null if a value is, so that the pair is left out."""
    kinds = left.schema[term.left].dataType, right.schema[term.right].dataType
    l, r = F.col(f"l.`{term.left}`"), F.col(f"r.`{term.right}`")
    if term.is_equality:
        return l == r
    if isinstance(kinds[0], _TEMPORAL):
        difference = _microseconds(l, kinds[0]) - _microseconds(r, kinds[1])
        unit = Fraction(1, 1000)
    else:
        difference, unit = _number(l, kinds[0]) - _number(r, kinds[1]), Fraction(1)
    real = isinstance(kinds[0], (FloatType, DoubleType))
    conditions = []
    for bound, least in ((term.low, True), (term.high, False)):
        if bound is not None:
            limit = F.lit(_real(bound) if real else _limit(bound, unit, least, kinds))
            conditions.append(difference >= limit if least else difference <= limit)
    if not conditions:
        return l.isNotNull() & r.isNotNull()
    return reduce(lambda one, other: one & other, conditions)


def _microseconds(column: Column, kind: DataType) -> Column:
    """A date or time as microseconds, those without a zone as if they were in UTC."""
    if isinstance(kind, TimestampType):
        return F.unix_micros(column)
    # The difference from a fixed day is an interval of exact length, whatever the session's zone.
    origin = F.lit("1970-01-01").cast("date" if isinstance(kind, DateType) else "timestamp_ntz")
    if isinstance(kind, DateType):
        return F.datediff(column, origin).cast("bigint") * F.lit(86_400_000_000)
    return F.timestamp_diff("MICROSECOND", origin, column)


def _number(column: Column, kind: DataType) -> Column:
    """A number whose differences do not overflow."""
    if isinstance(kind, DecimalType):
        return column
    real = isinstance(kind, (FloatType, DoubleType))
    return column.cast("double" if real else "decimal(20,0)")


def _real(bound: Bound) -> float:
    if not isinstance(bound, (int, Fraction)):
        raise UsageError(f"Numbers are bounded by numbers, not by {bound}.")
    return float(bound)


def _limit(bound: Bound, unit: Fraction, least: bool, kinds: tuple[DataType, DataType]) -> Any:
    """A bound in the units of the difference; rounded inwards, where differences are whole."""
    if isinstance(bound, Duration):
        exact = bound.nanoseconds * unit
    else:
        assert isinstance(bound, (int, Fraction))
        exact = Fraction(bound)
    scale = max((kind.scale for kind in kinds if isinstance(kind, DecimalType)), default=0)
    whole = math.ceil(exact * 10**scale) if least else math.floor(exact * 10**scale)
    return Decimal(whole).scaleb(-scale) if scale else whole

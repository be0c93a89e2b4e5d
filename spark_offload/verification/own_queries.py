# SPDX-License-Identifier: Apache-2.0
"""The same questions as Spark's own queries: joins, as-of joins and aggregations, exact."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import reduce
import math
import operator
from typing import Any, TypeAlias

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.types import (
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    IntegerType,
    IntegralType,
    ShortType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from host import CountWindow, UsageError
from host.columns.conditions import BoundCondition, Part
from host.columns.fields import TermTypes
from host.columns.kinds import DAY, Kind, bound_in_ticks, column_type, common_tick
from host.errors import AcceleratorLimitError
from host.query.quantities import Duration
from host.query.queries import BOUNDARIES, AggregateQuery, AsofQuery, Query, Term
from host.query.words import Span
from host.reference.types import Direction, JoinType
from spark_offload.partitioning.columns import (
    arrow_schema,
    common_type,
    joined_schema,
    output_schema,
    partition_key,
)
from spark_offload.partitioning.tagged import order_number

__all__ = [
    "Cells",
    "Difference",
    "aggregated",
    "cells_of",
    "difference_of",
    "in_cells",
    "own_aggregate",
    "own_asof",
    "own_join",
    "own_windows",
    "repeated_for_cells",
]

# The comparisons of a query as Spark evaluates them: exact, and without overflow.

Limit: TypeAlias = int | float | Decimal | None
"""A bound in the unit of the numbers that are compared; None if that end is open."""

MOST_LONG = (1 << 63) - 1
"""The greatest whole number of 64 bits."""

_NARROW = (BooleanType, ByteType, ShortType, IntegerType, DateType)
"""Types whose differences fit 64 bits."""

_FARTHEST = {True: 1 << 33, False: 1 << 65}
"""No two whole numbers are so far apart: of narrow types, and of those of 64 bits."""

_DIGITS = 38
"""Most digits of Spark's decimals."""

_MOST_DIGITS = 10**_DIGITS - 1
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
        return order_number(column, kind)

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


def _farthest(kinds: tuple[DataType, DataType]) -> int:
    """A distance that no two whole numbers of these types have."""
    return _FARTHEST[all(isinstance(kind, _NARROW) for kind in kinds)]


# Any other condition of a query as Spark evaluates it: whole numbers of 64 bits, or of 38 digits.

_LONG, _WIDE = "bigint", "decimal(38,0)"
_COMPARED: dict[str, Callable[[Column, Column], Column]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt,
    ">=": operator.ge,
}  # fmt: skip
_COMPUTED: dict[str, Callable[[Column, Column], Column]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "%": F.pmod,
}  # fmt: skip


def condition_of(
    bound: BoundCondition, columns: Mapping[tuple[int, str], tuple[Column, DataType]]
) -> Column:
    """Return a condition as Spark evaluates it.

    Parameters
    ----------
    bound : BoundCondition
        The condition.
    columns : mapping
        The columns and their types, by side and name.

    Raises
    ------
    AcceleratorLimitError
        If a part can have more digits than Spark's numbers.
    """

    def truth(part: Part) -> Column:
        if part.operation in ("&", "|"):
            one, other = map(truth, part.operands)
            return one & other if part.operation == "&" else one | other
        if part.operation == "not":
            return ~truth(part.operands[0])
        if part.operation == "true":
            return column(part.operands[0])[0]
        kind = _kind_of(*part.operands) if part.operands[0].is_exact else None
        left, right = (value(one, kind) for one in part.operands)
        return _COMPARED[part.operation](left, right)

    def column(part: Part) -> tuple[Column, DataType]:
        assert part.column is not None
        side, found = part.column
        return columns[side, found.column]

    def value(part: Part, kind: str | None) -> Column:
        """Return the value of a part, an exact one as a number of a type of Spark."""
        if part.operation == "constant":
            if kind is None:
                return F.lit(part.value)
            return F.lit(Decimal(part.value)).cast(kind)
        own = None
        if part.is_exact:
            own = _kind_of(part, *part.operands)
        made = number(part, own) if part.column is not None else computed(part, own)
        if own is not None and part.factor != 1:
            made = made * F.lit(Decimal(part.factor)).cast(own)
        return made if own == kind else made.cast(str(kind))

    def number(part: Part, kind: str | None) -> Column:
        found, dtype = column(part)
        if kind is None:
            return found.cast("double") if part.kind is Kind.FLOAT else found
        if isinstance(dtype, DecimalType):
            if dtype.precision + dtype.scale + 2 > _DIGITS:
                raise _too_wide(bound, f"values of {dtype.simpleString()}")
            return (found * F.lit(10**dtype.scale)).cast(kind)
        if part.kind is Kind.TIME:
            return (found.cast("decimal(14,9)") * 1_000_000_000).cast(kind)
        return order_number(found, dtype).cast(kind)

    def computed(part: Part, kind: str | None) -> Column:
        values = [value(one, kind) for one in part.operands]
        if part.operation == "abs":
            return F.abs(values[0])
        if part.operation in ("min", "max"):
            if len(values) == 1:
                return values[0]
            known = reduce(operator.and_, (one.isNotNull() for one in values))
            extreme = F.least if part.operation == "min" else F.greatest
            return F.when(known, extreme(*values))
        return _COMPUTED[part.operation](*values)

    def _kind_of(*parts: Part) -> str:
        """Return the type that holds all values of exact parts."""
        least, most = min(one.range.low for one in parts), max(one.range.high for one in parts)
        if least >= -MOST_LONG and most <= MOST_LONG:
            return _LONG
        if max(-least, most) > _MOST_DIGITS:
            raise _too_wide(bound, "numbers")
        return _WIDE

    return truth(bound.root)


def _too_wide(bound: BoundCondition, what: str) -> AcceleratorLimitError:
    return AcceleratorLimitError(
        f"Spark's own join would need {what} of more than {_DIGITS} digits for '{bound.text}'",
        "cast its columns to a narrower type",
    )


# Bounded differences as an equality of grid cells, which Spark can hash or sort.
#
# A field's values are cut into cells. A row of one side lies in one cell; a row of the other side
# is repeated for every cell that its band reaches. Rows that match meet in exactly one cell, so
# an equality of cells, with the exact conditions beside it, gives every pair once.
#
# Cells are twice as wide as the band: then a band reaches at most two of them, and three of two
# on average. Wider cells hold more rows that do not match; narrower ones repeat more rows.

_FIELD_BITS = 32
"""Cells of one field that lie less than ``2 ** _FIELD_BITS`` apart never share a key."""

_LAST_CELL = float(1 << 50)
"""Cells of doubles are numbered up to this; doubles beyond it share the last cell."""

_GREATEST = 1e300
"""Doubles beyond this share the last cell too, NaN and infinity among them."""

_ROUNDING = 2.0**-50
"""Bounds the error of a few sums of doubles, relative to the greatest of them."""

_FINEST = 2.0**-30
"""Cells of doubles are not narrower than the bounds of the difference times this."""


@dataclass(frozen=True)
class Cells:
    """The cells of one field.

    Parameters
    ----------
    difference : Difference
        The term whose columns are cut into cells; bounded on both sides.
    width : int or float
        Of a cell, in the unit of the numbers that are compared.
    """

    difference: Difference
    width: int | float

    def of(self, column: Column, side: int) -> Column:
        """Return the cell that a row lies in; null if its value is."""
        return F.when(column.isNotNull(), self._cell(self.difference.number(column, side)))

    def reached(self, column: Column, side: int) -> tuple[Column, Column]:
        """Return the first and the last cell in which a row's partners can lie, or two nulls."""
        # `least` and `greatest` skip nulls, which would meet one another in one cell.
        first, last = self._reached(column, side)
        return F.when(column.isNotNull(), first), F.when(column.isNotNull(), last)

    def _reached(self, column: Column, side: int) -> tuple[Column, Column]:
        low, high = self._bounds
        nearest, farthest = (-high, -low) if side == 0 else (low, high)
        number = self.difference.number(column, side)
        if self.difference.is_whole:
            return (
                self._cell(_saturated(number, int(nearest))),
                self._cell(_saturated(number, int(farthest))),
            )
        value = _clamped(number.cast("double"), _GREATEST)
        # Doubles are rounded, and decimals where they become doubles.
        error = (F.abs(value) + max(abs(low), abs(high))) * F.lit(_ROUNDING)
        return self._cell(value + nearest - error), self._cell(value + farthest + error)

    @property
    def _bounds(self) -> tuple[int | float, int | float]:
        low, high = _numbers(self.difference)
        return low, max(low, high)  # bounds that exclude each other: any one cell will do

    def _cell(self, number: Column) -> Column:
        """Return the cell of a number: a function that never decreases, so that no match is lost.

        Numbers are divided towards zero. This makes the cell around zero twice as wide as the
        others, which does no harm.
        """
        if self.difference.is_whole:
            return F.call_function("div", number, F.lit(int(self.width)).cast("bigint"))
        value = _clamped(number.cast("double"), _GREATEST)
        return _clamped(value / F.lit(float(self.width)), _LAST_CELL).cast("bigint")


def cells_of(difference: Difference) -> Cells | None:
    """Return the cells of a term, or None if it cannot be cut.

    It cannot if it is an equality, which needs no cells, if it is open at one end, or if its bounds
    are so wide that they exclude next to nothing.
    """
    if difference.is_equality or difference.low is None or difference.high is None:
        return None
    low, high = _numbers(difference)
    farthest = max(abs(low), abs(high))
    if difference.is_whole:
        count = max(1, int(high) - int(low) + 1)
        return Cells(difference, 2 * count) if farthest < difference.farthest // 16 else None
    width = max(2.0 * (high - low), farthest * _FINEST, 1 / _GREATEST)
    return Cells(difference, width) if farthest < _GREATEST / _LAST_CELL**2 else None


def in_cells(
    frame: DataFrame, name: str, cells: Sequence[tuple[Cells, Column]], side: int
) -> DataFrame:
    """Return ``frame`` with the key of the cell that each row lies in, as column ``name``."""
    return frame.withColumn(name, _key([cell.of(column, side) for cell, column in cells]))


def repeated_for_cells(
    frame: DataFrame, name: str, cells: Sequence[tuple[Cells, Column]], side: int
) -> DataFrame:
    """Return every row once for each cell that it reaches, whose key is column ``name``.

    Rows with a null in one of the fields are left out.
    """
    columns = frame.columns
    fields = [f"{name}{at}" for at in range(len(cells))]
    for field, (cell, column) in zip(fields, cells, strict=True):
        frame = frame.withColumn(field, F.explode(F.sequence(*cell.reached(column, side))))
    return frame.select(*columns, _key([F.col(field) for field in fields]).alias(name))


def _key(cells: list[Column]) -> Column:
    """Mix the cells of all fields into one number.

    The cells that one row reaches differ by few in each field, so that their keys differ in the low
    or in the high bits: no pair of rows meets twice. Other cells that share a key only meet rows in
    vain.
    """
    return reduce(lambda mixed, cell: F.shiftleft(mixed, _FIELD_BITS).bitwiseXOR(cell), cells)


def _numbers(difference: Difference) -> tuple[int | float, int | float]:
    """Both bounds: whole numbers as they are, all others as doubles."""
    assert difference.low is not None
    assert difference.high is not None
    if difference.is_whole:
        return int(difference.low), int(difference.high)
    return float(difference.low), float(difference.high)


def _saturated(number: Column, distance: int) -> Column:
    """Return the sum; the least or the greatest number of 64 bits where it does not fit."""
    if distance >= 0:
        return F.least(number, F.lit(MOST_LONG - distance)) + F.lit(distance).cast("bigint")
    return F.greatest(number, F.lit(-MOST_LONG - 1 - distance)) + F.lit(distance).cast("bigint")


def _clamped(value: Column, most: float) -> Column:
    """Return doubles between ``-most`` and ``most``, which NaN becomes, as the greatest."""
    return F.least(F.greatest(value, F.lit(-most)), F.lit(most))


# The same question as Spark's own join: where no accelerator can serve, and to verify one.

_CELLS = "l_cell", "r_cell"
"""Columns with the keys of the cells, beside the numbered columns of the inputs."""


def own_join(left: DataFrame, right: DataFrame, query: Query) -> DataFrame:
    """Return the answer to a join over a time-based window, joined by Spark, in no order.

    A pair within a window is a pair whose times differ by no more than its width, whatever came
    first; so conditions on the columns say all of it. Spark joins by equalities. Bounded
    differences become one, of grid cells (:mod:`spark_offload.verification.own_queries`), so that
    Spark does not compare every row with every row.

    Of the bounded terms two are cut into cells, or one if there is an equality, by which Spark
    divides the rows already: each further field repeats half of the rows of one side once more.
    Nothing is known of the values, so the terms of the query come first, as they are given: whoever
    writes a band means it to exclude most rows. The window, which is bounded too, comes last.

    A side whose rows come alone is not the one that is repeated. In a full outer join the rows of
    both come alone, so it is a left outer join and, besides, the right rows that are in no pair;
    Spark reads both inputs twice for it.

    Raises
    ------
    UsageError
        If the window is count-based (which rows it holds is no condition on two rows), or the
        columns cannot be compared.
    """
    if isinstance(query.window, CountWindow):
        raise UsageError(
            f"The last {query.rows} rows of a side are no condition on two rows, so Spark "
            f"cannot join them by itself; give a window by time (within=...)."
        )
    joined = _joined(left, right, query)
    columns = [name for name in joined.columns if name not in _CELLS]
    schema = joined_schema(left.schema, right.schema, query)
    if not query.per_window:
        return joined.select(*columns).toDF(*schema.names)
    times = [
        order_number(F.col(f"{letter}{own.columns.index(name)}"), own.schema[name].dataType)
        for letter, own, name in zip("lr", (left, right), query.time, strict=True)
    ]
    windows = F.explode(_window_starts(times, query, left.schema[query.time[0]].dataType))
    rows = joined.select(*columns, windows.alias("window"))
    starts = (F.col("window"), F.col("window") + _units(query.width, schema[-1].dataType))
    kind = schema[-1].dataType
    return rows.select(*columns, *(_as_time(one, kind) for one in starts)).toDF(*schema.names)


def _units(span: Span | None, kind: DataType) -> int:
    """Return a length in the units of order numbers.

    Raises
    ------
    UsageError
        If it has no such length.
    """
    if isinstance(kind, IntegralType):
        if not isinstance(span, int):
            raise UsageError(f"A window over integers must be a whole number, not {span}.")
        return span
    size = DAY if isinstance(kind, DateType) else 1_000
    if not isinstance(span, Duration) or span.nanoseconds % size:
        raise UsageError(f"A window of {span} does not suit the column of time.")
    return span.nanoseconds // size


def _window_starts(times: list[Column], query: Query, kind: DataType) -> Column:
    """Return the beginnings of the windows that have both times, as an array of order numbers."""
    assert query.advance is not None
    size, advance = (F.lit(_units(span, kind)) for span in (query.width, query.advance))
    last, beyond = F.least(*times), F.greatest(*times) - size
    first = beyond - F.pmod(beyond, advance) + advance
    return F.sequence(first, last - F.pmod(last, advance), advance)


def _as_time(number: Column, kind: DataType) -> Column:
    """Return an order number as a value of its type."""
    if isinstance(kind, DateType):
        return F.date_from_unix_date(number.cast("int"))
    if isinstance(kind, IntegralType):
        return number
    if isinstance(kind, TimestampNTZType):
        seconds = (number.cast("decimal(20,0)") / 1_000_000).cast("decimal(18,6)")
        since = F.make_dt_interval(secs=seconds)
        return F.expr("timestamp_ntz'1970-01-01'") + since
    return F.timestamp_micros(number)


def _joined(left: DataFrame, right: DataFrame, query: Query) -> DataFrame:
    """Return the rows of a join with columns ``l0``, ``l1``, … and ``r0``, ``r1``, …, and cells."""
    schemas = left.schema, right.schema
    arrow = arrow_schema(left.schema, "left"), arrow_schema(right.schema, "right")
    called = [
        {name: f"{letter}{at}" for at, name in enumerate(schema.names)}
        for letter, schema in zip("lr", schemas, strict=True)
    ]
    frames = left.toDF(*called[0].values()), right.toDF(*called[1].values())
    compared = [
        (
            difference_of(term, schemas, arrow),
            (F.col(called[0][term.left]), F.col(called[1][term.right])),
        )
        for term in (*query.terms, Term(*query.time, -query.width, query.width))
    ]
    conditions = [difference.holds(*columns) for difference, columns in compared]
    if query.rest is not None:
        columns_of = {
            (side, name): (F.col(place), schemas[side][name].dataType)
            for side in (0, 1)
            for name, place in called[side].items()
        }
        conditions.append(condition_of(BoundCondition.of(query.rest, *arrow), columns_of))
    found = ((cells_of(difference), columns) for difference, columns in compared)
    cells = [(cell, columns) for cell, columns in found if cell is not None]
    cells = cells[: 1 if any(difference.is_equality for difference, _ in compared) else 2]
    if cells:
        conditions.append(F.col(_CELLS[0]) == F.col(_CELLS[1]))
    condition = reduce(operator.and_, conditions)

    def placed(side: int, repeated: int) -> DataFrame:
        """Return a side with the keys of its cells, one of the two repeated for them."""
        own = [(cell, columns[side]) for cell, columns in cells]
        if not own:
            return frames[side]
        place = repeated_for_cells if side == repeated else in_cells
        return place(frames[side], _CELLS[side], own, side)

    def joined(how: JoinType) -> DataFrame:
        # The side that is repeated must not be one whose rows come alone. An inner join repeats the
        # left side, as Spark rather keeps the right one in memory.
        repeated = 0 if how in (JoinType.INNER, JoinType.RIGHT) else 1
        return placed(0, repeated).join(placed(1, repeated), condition, how.value)

    if query.how is not JoinType.FULL:
        return joined(query.how)
    alone = placed(1, 0).join(placed(0, 0), condition, "left_anti")
    return joined(JoinType.LEFT).unionByName(alone, allowMissingColumns=True)


# The as-of join as Spark's own windows: where the host cannot serve, and to verify it.
#
# Rows of both sides are put under one another. Over the rows of a key in the order of time, the
# last right row so far is the partner of a left row that looks back; in the reverse order it is
# the one of a left row that looks ahead. That is what an expert of Spark writes by hand.

_ROWS = "left_row", "right_row"
"""Columns that hold the rows of either side whole; null in the rows of the other side."""


def own_asof(left: DataFrame, right: DataFrame, query: AsofQuery) -> DataFrame:
    """Return the answer to an as-of join, joined by Spark, in no order.

    Raises
    ------
    UsageError
        If the columns or the tolerance cannot be compared.
    """
    arrow = arrow_schema(left.schema, "left"), arrow_schema(right.schema, "right")
    width = query.within
    distance = difference_of(Term(*query.time, None, width), (left.schema, right.schema), arrow)
    rows = _side(left, right, query, distance, 0).unionByName(
        _side(right, left, query, distance, 1), allowMissingColumns=True
    )
    found = []
    if query.direction.looks_back:
        found.append(_last_right(query, ahead=False).alias("earlier"))
    if query.direction.looks_ahead:
        found.append(_last_right(query, ahead=True).alias("later"))
    rows = rows.select("*", *found).where("side = 0")
    partner = F.col("earlier") if query.direction.looks_back else F.col("later")
    if query.direction is Direction.NEAREST:
        earlier, later = (_distance(name, distance) for name in ("earlier", "later"))
        partner = F.when(earlier <= later, F.col("earlier")).otherwise(
            F.coalesce(F.when(earlier > later, F.col("later")), F.col("earlier"), F.col("later"))
        )
    rows = rows.withColumn("partner", partner)
    if distance.high is not None:
        near = _distance("partner", distance) <= F.lit(distance.high)
        rows = rows.withColumn("partner", F.when(near, F.col("partner")))
    if query.how is JoinType.INNER:
        rows = rows.where(F.col("partner").isNotNull())
    columns = [F.col(_ROWS[0])[f"c{at}"] for at in range(len(left.columns))]
    columns += [F.col(f"partner.{_ROWS[1]}")[f"c{at}"] for at in range(len(right.columns))]
    schema = output_schema(left.schema, right.schema, query.suffix, query.how)
    return rows.select(
        *(column.alias(name) for column, name in zip(columns, schema.names, strict=True))
    )


def _side(
    frame: DataFrame, other: DataFrame, query: AsofQuery, distance: Difference, side: int
) -> DataFrame:
    """Return the rows of one side with their times, keys and numbers; no name is the user's."""
    names = {name: f"c{at}" for at, name in enumerate(frame.columns)}
    rows = frame.toDF(*names.values())
    keys = []
    for at, pair in enumerate(query.on):
        kinds = frame.schema[pair[side]].dataType, other.schema[pair[1 - side]].dataType
        kind = common_type(*(kinds if side == 0 else kinds[::-1]))
        keys.append(partition_key(F.col(names[pair[side]]), kind).alias(f"k{at}"))
    rows = rows.select(
        F.lit(side).alias("side"),
        distance.number(F.col(names[query.time[side]]), side).alias("time"),
        F.monotonically_increasing_id().alias("number"),
        *keys,
        F.struct(*names.values()).alias(_ROWS[side]),
    )
    if side == 1 and keys:
        # A null equals nothing, but a window would put nulls together.
        known = [F.col(f"k{at}").isNotNull() for at in range(len(keys))]
        rows = rows.where(reduce(lambda one, next_: one & next_, known))
    return rows


def _last_right(query: AsofQuery, *, ahead: bool) -> Column:
    """Return the last right row before a row in time, or in a time that runs backwards."""
    # Of rows of one time, the right ones come first if they are to be found.
    turn = F.col("side").desc() if query.allow_exact_matches else F.col("side").asc()
    order = [F.col("time"), F.col("number")]
    time, number = (column.desc() if ahead else column.asc() for column in order)
    keys = [F.col(f"k{at}") for at in range(len(query.on))] or [F.lit(0)]
    window = (
        Window.partitionBy(*keys)
        .orderBy(time, turn, number)
        .rowsBetween(Window.unboundedPreceding, Window.currentRow)
    )
    right = F.struct("time", _ROWS[1])
    return F.last(F.when(F.col("side") == 1, right), ignorenulls=True).over(window)


def _distance(partner: str, distance: Difference) -> Column:
    """Return how far a partner is away in time; null if there is none."""
    # As wide decimals, differences of 64-bit numbers do not overflow.
    times = F.col("time"), F.col(f"{partner}.time")
    own, other = (time.cast("decimal(20,0)") for time in times) if distance.is_whole else times
    return F.abs(own - other)


# The aggregation as Spark's own ``groupBy(window(...))``: where the host cannot, and to verify.

_WINDOW = "window_of_the_row"


def own_aggregate(frame: DataFrame, query: AggregateQuery) -> DataFrame:
    """Return the answer to an aggregation, computed by Spark, in no order.

    Raises
    ------
    UsageError
        If the windows do not suit the column of time.
    """
    # Numbers for names: none of the user's needs quoting, or is another one to Spark.
    places = {name: f"c{at}" for at, name in enumerate(frame.columns)}
    values = {
        name: aggregated(
            one.function, F.lit(1) if one.column is None else F.col(places[one.column])
        )
        for name, one in query.aggregates.items()
    }
    return own_windows(frame.toDF(*places.values()), query, values, places)


def own_windows(
    frame: DataFrame,
    query: AggregateQuery,
    values: Mapping[str, Column],
    places: Mapping[str, str] | None = None,
) -> DataFrame:
    """Return values of the windows and keys of a query, computed by Spark, in no order.

    Parameters
    ----------
    frame : DataFrame
        The rows; those without a time are left out.
    query : AggregateQuery
        Says the column of time, the windows and the keys.
    values : mapping of str to Column
        What Spark computes of the rows of a window and key, by the name of its column.
    places : mapping of str to str, optional
        What the frame calls the columns that the query names; by default, the same.

    Raises
    ------
    UsageError
        If the windows do not suit the column of time.
    """
    called = places or {name: name for name in frame.columns}
    time, kind = F.col(called[query.time]), frame.schema[called[query.time]].dataType
    if not isinstance(kind, (TimestampType, TimestampNTZType, DateType, IntegralType)):
        raise UsageError(
            f"Column {query.time!r} of type {kind.simpleString()} is no column of time; cast it to "
            f"a timestamp, a date or an integer."
        )
    rows = frame.where(time.isNotNull())
    at = F.col(_WINDOW)
    size, advance = (_units(span, kind) for span in (query.window, query.advance))
    if isinstance(kind, (DateType, IntegralType)):
        window = _starts(order_number(time, kind), size, advance)
        bounds = [_as_time(one, kind) for one in (at, at + F.lit(size))]
    else:
        window = F.window(time, f"{size} microseconds", f"{advance} microseconds")
        bounds = [at["start"], at["end"]]
    keys = {f"k{number}": F.col(called[name]) for number, name in enumerate(query.on)}
    results = {f"v{number}": value for number, value in enumerate(values.values())}
    # A row has several windows, which a grouping cannot make by itself out of an array.
    windowed = rows.select("*", window.alias(_WINDOW))
    grouped = windowed.groupBy(at, *(key.alias(name) for name, key in keys.items())).agg(
        *(value.alias(name) for name, value in results.items())
    )
    return grouped.select(*bounds, *keys, *results).toDF(*BOUNDARIES, *query.on, *values)


def _starts(time: Column, size: int, advance: int) -> Column:
    """Return the left boundary of each window that a time is in, one row for each."""
    latest = time - F.pmod(time, F.lit(advance))
    places = F.sequence(F.lit(0).cast("long"), F.lit((size - 1) // advance).cast("long"))
    starts = F.transform(places, lambda place: latest - place * F.lit(advance))
    return F.explode(F.filter(starts, lambda start: start + F.lit(size) > time))


def aggregated(function: str, column: Column) -> Column:
    """Return what Spark computes for an aggregate; a mean is a double whatever its column is."""
    if function == "mean":
        return F.mean(column).cast("double")
    return {"count": F.count, "sum": F.sum, "min": F.min, "max": F.max}[function](column)

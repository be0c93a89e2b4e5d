# SPDX-License-Identifier: Apache-2.0
"""As-of joins and aggregations as Spark's own windows."""

from collections.abc import Mapping
from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.types import DateType, IntegralType, TimestampNTZType, TimestampType

from host import UsageError
from host.columns.kinds import DAY
from host.query.quantities import Duration
from host.query.queries import BOUNDARIES, AggregateQuery, AsofQuery, Term
from host.query.words import Span
from host.reference.types import Direction, JoinType
from spark_offload.partitioning.columns import (
    arrow_schema,
    common_type,
    output_schema,
    partition_key,
)
from spark_offload.verification.own_join import Difference, difference_of

__all__ = [
    "aggregated",
    "own_aggregate",
    "own_asof",
    "own_windows",
]

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
    assert query.advance is not None
    called = places or {name: name for name in frame.columns}
    time, kind = F.col(called[query.time]), frame.schema[called[query.time]].dataType
    rows = frame.where(time.isNotNull())
    at = F.col(_WINDOW)
    if isinstance(kind, (TimestampType, TimestampNTZType)):
        spans = (f"{_units(span, 1_000)} microseconds" for span in (query.window, query.advance))
        window: Column = F.window(time, *spans)
        bounds = [at["start"], at["end"]]
    elif isinstance(kind, DateType):
        size, advance = (_units(span, DAY) for span in (query.window, query.advance))
        window = _starts(F.unix_date(time).cast("long"), size, advance)
        bounds = [F.date_from_unix_date(day.cast("int")) for day in (at, at + F.lit(size))]
    elif isinstance(kind, IntegralType):
        size, advance = _number(query.window), _number(query.advance)
        window = _starts(time.cast("long"), size, advance)
        bounds = [at, at + F.lit(size)]
    else:
        raise UsageError(
            f"Column {query.time!r} of type {kind.simpleString()} is no column of time; cast it to "
            f"a timestamp, a date or an integer."
        )
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


def _units(span: Span, size: int) -> int:
    """Return a duration in units of so many nanoseconds."""
    if not isinstance(span, Duration) or span.nanoseconds % size:
        raise UsageError(f"A window of {span} does not suit the column of time.")
    return span.nanoseconds // size


def _number(span: Span) -> int:
    if isinstance(span, Duration):
        raise UsageError(f"A window over integers must be a whole number, not {span}.")
    return span

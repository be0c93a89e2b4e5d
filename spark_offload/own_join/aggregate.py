# SPDX-License-Identifier: Apache-2.0
"""The aggregation as Spark's own ``groupBy(window(...))``: where the host cannot, and to verify."""

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DateType, IntegralType, TimestampNTZType, TimestampType

from host import UsageError
from host.columns.kinds import DAY
from host.query.quantities import Duration
from host.query.queries import BOUNDARIES, AggregateQuery, Span

__all__ = ["aggregated", "own_aggregate", "own_windows"]

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
    keys = {f"k{number}": F.col(called[name]) for number, name in enumerate(query.keys)}
    results = {f"v{number}": value for number, value in enumerate(values.values())}
    # A row has several windows, which a grouping cannot make by itself out of an array.
    windowed = rows.select("*", window.alias(_WINDOW))
    grouped = windowed.groupBy(at, *(key.alias(name) for name, key in keys.items())).agg(
        *(value.alias(name) for name, value in results.items())
    )
    return grouped.select(*bounds, *keys, *results).toDF(*BOUNDARIES, *query.keys, *values)


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

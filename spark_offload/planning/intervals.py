# SPDX-License-Identifier: Apache-2.0
"""Columns of a frame that hold intervals: how long the longest one is, and what is refused."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from host import UsageError
from host.columns.kinds import DAY, Kind
from host.query.quantities import Duration
from host.query.queries import Term
from spark_offload.failures.translation import raised
from spark_offload.layout.columns import arrow_schema, told_apart
from spark_offload.own_join.differences import Difference, difference_of

__all__ = ["checked_intervals", "longest_of"]

_UNITS = {
    Kind.DATE: DAY,
    Kind.TIMESTAMP: 1_000,
    Kind.INSTANT: 1_000,
    Kind.DURATION: 1_000,
    Kind.TIME: 1,
}
"""Nanoseconds in a unit of the numbers that temporal columns are compared as."""


def longest_of(
    frames: tuple[DataFrame, DataFrame], intervals: tuple[tuple[str, str], tuple[str, str]]
) -> int | Duration:
    """Return the length of the longest interval of both frames, which Spark reads for that.

    Intervals without a start or an end, or that end before they start, do not count.
    """
    lengths = []
    for frame, names in zip(frames, intervals, strict=True):
        difference = _length(frame, names, None)
        rows, columns = _columns(frame, names)
        length = F.try_subtract(*(difference.number(column, 0) for column in columns))
        lengths.append(rows.agg(F.coalesce(F.max(length), F.lit(0)).alias("length")))
    row = lengths[0].crossJoin(lengths[1].withColumnRenamed("length", "other")).first()
    assert row is not None
    longest = max(0, int(row["length"]), int(row["other"]))
    unit = _UNITS.get(difference.types.left.kind)
    return longest if unit is None else Duration(longest * unit)


def checked_intervals(
    frame: DataFrame, names: tuple[str, str], longest: int | Duration, side: str
) -> DataFrame:
    """Return a frame that fails on an interval that ends before it starts, or is longer.

    Intervals without a start or an end pass.

    Parameters
    ----------
    frame : DataFrame
        The rows.
    names : (str, str)
        Columns with the start and the end.
    longest : int or Duration
        Largest length.
    side : str
        ``"left"`` or ``"right"``, for the message.

    Raises
    ------
    UsageError
        If the two columns have no difference, or no such one.
    """
    start, end = names
    rows, (ends, begins) = _columns(frame, names)
    holds = _length(frame, names, longest).holds(ends, begins)
    fails = raised(
        UsageError,
        f"An interval of the {side} input has {start}=",
        begins,
        f" and {end}=",
        ends,
        f"; it must not end before it starts, nor be longer than {longest}: leave the row out, or "
        f"give a larger longest.",
    ).cast("boolean")
    missing = begins.isNull() | ends.isNull()
    checked = rows.where(F.when(missing | F.coalesce(holds, F.lit(False)), True).otherwise(fails))
    return checked if rows is frame else checked.toDF(*frame.columns)


def _length(frame: DataFrame, names: tuple[str, str], longest: int | Duration | None) -> Difference:
    """Return the length of an interval as a difference that lies between zero and the longest."""
    start, end = names
    arrow = arrow_schema(frame.schema, "left")
    return difference_of(Term(end, start, 0, longest), (frame.schema, frame.schema), (arrow, arrow))


def _columns(frame: DataFrame, names: tuple[str, str]) -> tuple[DataFrame, tuple[Column, Column]]:
    """Return a frame in which Spark finds the end and the start of an interval, and these two."""
    rows, places = told_apart(frame)
    return rows, (F.col(places[names[1]]), F.col(places[names[0]]))

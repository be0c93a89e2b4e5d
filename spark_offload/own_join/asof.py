# SPDX-License-Identifier: Apache-2.0
"""The as-of join as Spark's own windows: where the host cannot serve, and to verify it.

Rows of both sides are put under one another. Over the rows of a key in the order of time, the last
right row so far is the partner of a left row that looks back; in the reverse order it is the one of
a left row that looks ahead. That is what an expert of Spark writes by hand.
"""

from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from host.query.queries import AsofQuery, Term
from host.reference.asof import Direction
from host.reference.types import JoinType
from spark_offload.layout.columns import arrow_schema, output_schema
from spark_offload.layout.key_types import common_type, partition_key
from spark_offload.own_join.differences import Difference, difference_of

__all__ = ["own_asof"]

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
    width = query.tolerance
    distance = difference_of(Term(*query.on, None, width), (left.schema, right.schema), arrow)
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
    for at, pair in enumerate(query.by):
        kinds = frame.schema[pair[side]].dataType, other.schema[pair[1 - side]].dataType
        kind = common_type(*(kinds if side == 0 else kinds[::-1]))
        keys.append(partition_key(F.col(names[pair[side]]), kind).alias(f"k{at}"))
    rows = rows.select(
        F.lit(side).alias("side"),
        distance.number(F.col(names[query.on[side]]), side).alias("time"),
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
    keys = [F.col(f"k{at}") for at in range(len(query.by))] or [F.lit(0)]
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

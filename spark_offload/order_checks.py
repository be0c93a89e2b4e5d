# SPDX-License-Identifier: Apache-2.0
"""The order columns of whole inputs, checked by Spark jobs where no device sees their rows pass.

A device raises if a row has no place in time, or goes back in time although its input was declared
sorted. Spark's own join knows neither rule, and the partitions of a join by key see disorder among
their own rows only. So the checks run beside the join, as frames without rows that fail if they
have to, and the answer is the union of both. Conditions inside the join would not do: Spark skips
them with the rows that it need not read, such as those that stand opposite to an empty input.
"""

from collections.abc import Iterator, Sequence
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from host.query import JoinQuery
from spark_offload.cluster import cluster_of
from spark_offload.shipping import ship_packages
from spark_offload.side_check import SideCheck

__all__ = ["order_checked"]


def order_checked(
    answer: DataFrame, left: DataFrame, right: DataFrame, query: JoinQuery
) -> DataFrame:
    """Return ``answer``, which fails if the order columns of its inputs will not do.

    The checks are the first partitions of the frame, so that reading a few rows runs them too.
    There is none of an input that cannot break a rule, by what Spark knows of it.

    Parameters
    ----------
    answer : DataFrame
        The join of the inputs.
    left, right : DataFrame
        The inputs. Each is read once more for nulls, which Parquet's statistics can spare, and
        once more, its order column alone, if it was declared sorted.
    query : JoinQuery
        Names the order columns, and says whether the inputs were declared sorted.
    """
    checks = []
    for frame, side, order in zip((left, right), ("left", "right"), query.order, strict=True):
        if frame.schema[order].nullable:
            checks.append(_check(_null_row(frame, order), side, order, frame.columns, answer))
        if query.sorted:
            checks.append(_check(_suspects(frame, order), side, order, None, answer))
    if checks:
        ship_packages(cluster_of(left.sparkSession))
    return reduce(DataFrame.unionAll, [*checks, answer])


def _numbered(frame: DataFrame, order: str) -> tuple[DataFrame, list[str]]:
    """Return the rows with their numbers and order values in front, and the other columns' names.

    The columns are called by their places: no name of the user's can clash or need quoting.
    """
    places = [f"c{index}" for index in range(len(frame.columns))]
    numbered = frame.toDF(*places).select(
        F.monotonically_increasing_id().alias("row"),
        F.col(places[frame.columns.index(order)]).alias("order"),
        *places,
    )
    return numbered, places


def _null_row(frame: DataFrame, order: str) -> DataFrame:
    """Return the first row without a place in time, whole, for the message shows it."""
    rows, _ = _numbered(frame, order)
    return rows.where(F.col("order").isNull()).orderBy("row").limit(1)


def _suspects(frame: DataFrame, order: str) -> DataFrame:
    """Return few rows, sorted by time, whose numbers fall if any row goes back in time."""
    rows, places = _numbered(frame, order)
    rows = rows.drop(*places).where(F.col("order").isNotNull())
    suspects = rows.mapInArrow(splitjoin_order_suspects, rows.schema).repartition(1)
    return suspects.sortWithinPartitions("order", "row")


def _check(
    rows: DataFrame, side: str, order: str, columns: Sequence[str] | None, answer: DataFrame
) -> DataFrame:
    """Return a frame of no rows that fails if one of ``rows`` will not do.

    ``columns`` names the columns of the input if ``rows`` are to have a place in time; otherwise
    they are to be in order.
    """
    is_sorted, shown, first = columns is None, tuple(columns or ()), len(("row", "order"))

    def splitjoin_order_check(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        check = SideCheck(side, order, is_sorted, shown, first)
        for batch in batches:
            check.see(batch, pa.array([True] * batch.num_rows))
        yield from ()

    return rows.mapInArrow(splitjoin_order_check, answer.schema)


def splitjoin_order_suspects(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Leave as few rows as tell whether all of them are in order; Spark shows this in plans.

    These are the first and the last row of every batch, which say whether batches follow one
    another, and inside a batch the first row that is less than the one before.
    """
    for batch in batches:
        if not batch.num_rows:
            continue
        order = batch.column("order")
        fall = pc.index(pc.less(order[1:], order[:-1]), True).as_py()
        places = {0, batch.num_rows - 1}
        places |= {fall, fall + 1} if fall >= 0 else set()
        yield batch.take(pa.array(sorted(places)))

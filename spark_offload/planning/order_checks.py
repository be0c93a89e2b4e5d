# SPDX-License-Identifier: Apache-2.0
"""The order columns of whole inputs, checked by Spark jobs where no device sees their rows pass.

A device raises if a row has no place in time, or goes back in time although its input was declared
sorted. Spark's own join knows neither rule, and the partitions of a join by key see disorder among
their own rows only. So the checks run beside the join, as frames without rows that fail if they
have to, and the answer is the union of both. Conditions inside the join would not do: Spark skips
them with the rows that it need not read, such as those that stand opposite to an empty input.
"""

from collections.abc import Callable, Iterator
from functools import partial, reduce

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from host.query.queries import JoinQuery
from spark_offload.cluster import cluster_of
from spark_offload.cluster.shipping import ship_packages
from spark_offload.tasks.side_check import SideCheck
from spark_offload.tasks.task import in_utc

__all__ = ["checked_by_rules", "checked_for_disorder", "checked_for_nulls"]


def checked_by_rules(
    answer: DataFrame, left: DataFrame, right: DataFrame, query: JoinQuery
) -> DataFrame:
    """Return ``answer``, an answer of Spark itself, which fails where a task of this kit would.

    Takes what :func:`checked_for_nulls` and :func:`checked_for_disorder` take.
    """
    if query.sorted:
        answer = checked_for_disorder(answer, left, right, query)
    # Nulls are told first, as by a task.
    return checked_for_nulls(answer, left, right, query)


def checked_for_nulls(
    answer: DataFrame, left: DataFrame, right: DataFrame, query: JoinQuery
) -> DataFrame:
    """Return ``answer``, which fails if a row of an input has no place in time.

    The checks are the first partitions of the frame, so that reading a few rows runs them too. An
    input whose order column cannot hold nulls, by what Spark knows of it, is not checked.

    Parameters
    ----------
    answer : DataFrame
        The join of the inputs.
    left, right : DataFrame
        The inputs. Each is read once more, except for the parts that have no null by Parquet's
        statistics.
    query : JoinQuery
        Names the order columns.
    """
    checks = []
    for frame, side, order in _inputs(left, right, query):
        if frame.schema[order].nullable:
            null_row = _null_row(frame, order)
            first = null_row.columns.index("c0")
            check = partial(SideCheck, side, order, False, frame.columns, first)
            checks.append(_check(null_row, check, answer))
    return _behind(checks, answer)


def checked_for_disorder(
    answer: DataFrame, left: DataFrame, right: DataFrame, query: JoinQuery
) -> DataFrame:
    """Return ``answer``, which fails if a row of an input goes back in time.

    As with :func:`checked_for_nulls` the checks come first. Rows without a place in time are left
    out.

    Parameters
    ----------
    answer : DataFrame
        The join of the inputs.
    left, right : DataFrame
        The inputs. The order column of each is read once more.
    query : JoinQuery
        Names the order columns, and tells whether each partition of an input is sorted by itself.
    """
    checks = [
        _check(
            _suspects(frame, order),
            partial(SideCheck, side, order, True, (), 0, per_partition=query.per_partition),
            answer,
        )
        for frame, side, order in _inputs(left, right, query)
    ]
    return _behind(checks, answer)


def _inputs(
    left: DataFrame, right: DataFrame, query: JoinQuery
) -> Iterator[tuple[DataFrame, str, str]]:
    """Yield each input with the name of its side and its order column."""
    yield from zip((left, right), ("left", "right"), query.order, strict=True)


def _null_row(frame: DataFrame, order: str) -> DataFrame:
    """Return the first row without a place in time, whole, because the message shows it.

    Rows are numbered behind the filter: in front of it the number, which depends on where Spark
    reads a row, would keep Spark from handing the filter to the reader of the files.
    """
    # Columns are called by their places: no name of the user's can clash or need quoting.
    places = [f"c{index}" for index in range(len(frame.columns))]
    time = F.col(places[frame.columns.index(order)])
    nulls = frame.toDF(*places).where(time.isNull())
    numbered = nulls.select(F.monotonically_increasing_id().alias("row"), time.alias("order"), "*")
    return numbered.orderBy("row").limit(1)


def _suspects(frame: DataFrame, order: str) -> DataFrame:
    """Return few rows, sorted by time, whose numbers fall if any row goes back in time."""
    places = [f"c{index}" for index in range(len(frame.columns))]
    rows = frame.toDF(*places).select(
        F.monotonically_increasing_id().alias("row"),
        F.col(places[frame.columns.index(order)]).alias("order"),
    )
    rows = rows.where(F.col("order").isNotNull())
    suspects = rows.mapInArrow(splitjoin_order_suspects, rows.schema).repartition(1)
    return suspects.sortWithinPartitions("order", "row")


def _check(rows: DataFrame, make_check: Callable[[], SideCheck], answer: DataFrame) -> DataFrame:
    """Return a frame without rows, like ``answer``, which fails if ``rows`` break the rule."""

    def splitjoin_order_check(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        check = make_check()
        for batch in in_utc(batches):
            check.see(batch, pa.array([True] * batch.num_rows))
        yield from ()

    return rows.mapInArrow(splitjoin_order_check, answer.schema)


def _behind(checks: list[DataFrame], answer: DataFrame) -> DataFrame:
    """Return ``answer`` behind its checks."""
    if checks:
        ship_packages(cluster_of(answer.sparkSession))
    return reduce(DataFrame.unionAll, [*checks, answer])


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

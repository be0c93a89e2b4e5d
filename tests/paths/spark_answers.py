# SPDX-License-Identifier: Apache-2.0
"""Answers and errors of joins in Spark, in as few jobs as will do.

A job of Spark costs far more than the join of a few rows. So the answers to many joins are united
into one frame of pickled rows, and collected together.
"""

from functools import reduce
import pickle

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
import pytest

from host import UsageError
from spark_offload import asof_join, overlap_join, stream_join, task_error
from spark_offload.verification.own_queries import own_asof
from tests.paths.arguments import asof_arguments, overlap_arguments, spark_arguments
from tests.paths.oracle import compare, row_of
from tests.spark_offload.spark_tables import frame_of_table

__all__ = [
    "asof_joined",
    "asof_joined_from_files",
    "joined",
    "joined_from_files",
    "overlapped",
    "overlapped_from_files",
    "own_asof_joined",
    "packed",
    "refusal",
    "wrong_answers",
]


def frames(spark, case, order):
    """Return the inputs of a case, whose columns of time are declared whole if they are."""
    return [
        frame_of_table(spark, declared_whole(table, name), f"the {side} input")
        for side, table, name in zip(("left", "right"), (case.left, case.right), order, strict=True)
    ]


def declared_whole(table, order):
    """Return ``table`` with ``order`` as a column without nulls, for which there is no check."""
    if table.column_names.count(order) != 1 or table.column(order).null_count:
        return table
    at = table.column_names.index(order)
    schema = table.schema.set(at, table.schema.field(at).with_nullable(False))
    return table.cast(schema)


def joined(spark, case, **options):
    """Return the answer to a case as a frame."""
    query = case.query
    return stream_join(*frames(spark, case, query.time), **(spark_arguments(query) | options))


def stored(spark, case, folder):
    """Return the inputs of a case as Parquet files of few rows a row group, two for one input."""
    found = []
    for side, table, parts in zip(("left", "right"), (case.left, case.right), (1, 2), strict=True):
        # What Spark makes of the types is what it reads from its own files.
        rows = frame_of_table(spark, table, f"the {side} input").toArrow()
        (folder / side).mkdir(parents=True)
        share = -(-rows.num_rows // parts)
        for number in range(parts):
            path = folder / side / f"{number}.parquet"
            pq.write_table(rows.slice(number * share, share), path, row_group_size=3)
        found.append(spark.read.parquet(str(folder / side)))
    return found


def joined_from_files(spark, case, folder, **options):
    """Return the answer to a case whose inputs are files that tasks read, as a frame."""
    asked = spark_arguments(case.query) | options
    return stream_join(*stored(spark, case, folder), **asked, partition_by="files")


def asof_joined(spark, case, **options):
    """Return the answer to an as-of join as a frame."""
    query = case.query
    return asof_join(*frames(spark, case, query.time), **(asof_arguments(query) | options))


def asof_joined_from_files(spark, case, folder):
    """Return the answer to an as-of join of files as a frame."""
    return asof_join(*stored(spark, case, folder), **asof_arguments(case.query))


def own_asof_joined(spark, case):
    """Return the answer to an as-of join by Spark itself."""
    return own_asof(*frames(spark, case, case.query.time), case.query)


def overlapped(spark, overlap, **options):
    """Return the answer to a join of intervals, asked for as such, as a frame."""
    order = [begin for begin, _ in overlap.intervals]
    rows = frames(spark, overlap.case, order)
    return overlap_join(*rows, **(overlap_arguments(overlap) | options))


def overlapped_from_files(spark, overlap, folder):
    """Return the same of files that tasks read."""
    asked = overlap_arguments(overlap) | {"device": "software:", "partitions": 2}
    return overlap_join(*stored(spark, overlap.case, folder), **asked, partition_by="files")


def packed(frame, number):
    """Return the rows of ``frame`` as texts, numbered by their join; all such frames are alike."""

    def splitjoin_pack(batches):
        for batch in batches:
            rows = [pickle.dumps(tuple(row.values())) for row in batch.to_pylist()]
            numbers = pa.array([number] * len(rows), pa.int32())
            yield pa.record_batch([numbers, pa.array(rows, pa.binary())], ["number", "row"])

    # Positions as names, because rows become dictionaries.
    places = [f"c{index}" for index in range(len(frame.columns))]
    return frame.toDF(*places).mapInArrow(splitjoin_pack, "number int, row binary")


def collected(frames):
    """Return the rows of every frame, by one action."""
    parts = [packed(frame, number) for number, frame in enumerate(frames)]
    rows = [[] for _ in parts]
    for row in reduce(DataFrame.unionAll, parts).collect():
        rows[row.number].append(row_of(pickle.loads(row.row)))
    return rows


def wrong_answers(cases, answers, *, ordered, judge=compare):
    """Return what is wrong with the answers to ``cases``, as ``judge`` says of each."""
    texts = [
        judge(case, frame.columns, rows, ordered=ordered)
        for case, frame, rows in zip(cases, answers, collected(answers), strict=True)
    ]
    return [text for text in texts if text]


def refusal(action):
    """Return the error of this kit that an action of Spark ends with."""
    with pytest.raises((UsageError, PySparkException)) as caught:
        action()
    error = caught.value
    return task_error(error) if isinstance(error, PySparkException) else error

# SPDX-License-Identifier: Apache-2.0
"""Streams of Spark have the answer of a plain loop: all micro-batches together."""

from dataclasses import replace
from datetime import UTC, datetime
import os
import pickle

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from host import UsageError
from spark_offload import asof_join, overlap_join, stream_join
from spark_offload.partitioning.columns import quoted
from tests.paths.arguments import asof_arguments, overlap_arguments, spark_arguments
from tests.paths.asof_cases import random_asof_case
from tests.paths.asof_oracle import compare_asof
from tests.paths.oracle import compare, row_of
from tests.paths.overlap_cases import random_overlap
from tests.paths.random_cases import random_case
from tests.paths.spark_answers import packed, refusal
from tests.spark_offload.spark_tables import frame_of_table

pytest.importorskip("google.protobuf", reason="Spark's state store is spoken to by protobuf")

FULL_OUTER = 2058
"""Seed of a full outer join with an equality and odd names."""


class Streams:
    """The inputs of a case as streams of files: their rows, and two that let time pass.

    Parameters
    ----------
    spark, folder
        The session, and an empty folder.
    tables : tuple of pa.Table
        The left and the right rows.
    order : tuple of str
        Their columns of time.
    """

    def __init__(self, spark, folder, tables, order):
        self._spark = spark
        self._folder = folder
        self._tables = tables
        self._order = order

    def rows(self, join, **arguments):
        """Join over micro-batches; return names and rows, without those that end the streams."""
        sides = [
            self._stream(side, table, name)
            for side, table, name in zip(("left", "right"), self._tables, self._order, strict=True)
        ]
        answer = join(*sides, **arguments)
        name = f"answer_{abs(hash(self._folder))}"
        writer = packed(answer, 0).writeStream.format("memory").queryName(name)
        writer = writer.option("checkpointLocation", str(self._folder / "checkpoint"))
        writer.trigger(availableNow=True).start().awaitTermination()
        rows = [row_of(pickle.loads(row.row)) for row in self._spark.table(name).collect()]
        return answer.columns, [row for row in rows if "'end'" not in row]

    def _stream(self, side, table, order):
        folder = self._folder / side
        folder.mkdir(parents=True)
        text = table.column_names[-1]
        half = table.num_rows // 2
        table = table.sort_by(order)
        ends = [
            pa.Table.from_pylist(
                [{order: datetime(2100, 1, day, tzinfo=UTC), text: "end"}], table.schema
            )
            for day in (1, 2)
        ]
        for number, part in enumerate((table[:half], table[half:], *ends)):
            path = folder / f"{number}.parquet"
            pq.write_table(part, path)
            os.utime(path, (1_600_000_000 + number,) * 2)  # Spark takes files by their age.
        schema = frame_of_table(self._spark, table, side).schema
        reader = self._spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
        return reader.parquet(str(folder)).withWatermark(quoted(order), "1 minute")


@pytest.mark.parametrize(
    "seeds",
    [[FULL_OUTER], pytest.param(range(2000, 2010), marks=pytest.mark.long)],
    ids=("some", "many"),
)
def test_streams_have_the_answer(spark, tmp_path, seeds):
    wrong = []
    for seed in seeds:
        case = random_case(seed, streams=True)
        wrong.append(compare(case, *joined(spark, tmp_path / str(seed), case), ordered=False))
    assert [text for text in wrong if text] == []


@pytest.mark.long
@pytest.mark.parametrize(
    "seeds", [[2], pytest.param(range(3, 9), marks=pytest.mark.long)], ids=("some", "many")
)
def test_overlaps_of_streams_have_the_answer(spark, tmp_path, seeds):
    wrong = []
    for seed in seeds:
        overlap = random_overlap(seed, streams=True)
        case = overlap.case
        streams = Streams(spark, tmp_path / str(seed), (case.left, case.right), case.query.time)
        arguments = {**overlap_arguments(overlap), "device": "software:"}
        wrong.append(compare(case, *streams.rows(overlap_join, **arguments), ordered=False))
    assert [text for text in wrong if text] == []


@pytest.mark.long  # by default, tests/spark_offload/test_asof_streaming.py compares with a batch
@pytest.mark.parametrize("seed", range(5))
def test_asof_joins_of_streams_have_the_answer(spark, tmp_path, seed):
    case = random_asof_case(seed, streams=True)
    streams = Streams(spark, tmp_path, (case.left, case.right), case.query.on)
    answer = streams.rows(asof_join, **asof_arguments(case.query))
    assert compare_asof(case, *answer, ordered=False) == ""


def joined(spark, folder, case):
    """Return names and rows of the answer to a case."""
    streams = Streams(spark, folder, (case.left, case.right), case.query.time)
    return streams.rows(stream_join, device="software:", **spark_arguments(case.query))


def test_a_stream_with_a_null_time_is_refused(spark, tmp_path):
    case = random_case(FULL_OUTER, streams=True)
    times = pa.array([None, *case.left.column(0).to_pylist()[1:]], case.left.schema.field(0).type)
    name = case.left.column_names[0]
    case = replace(case, left=case.left.set_column(0, name, times))
    error = refusal(lambda: joined(spark, tmp_path, case))
    assert isinstance(error, UsageError)
    assert f"Order column {'left.' + name!r} is null in the row with" in str(error)

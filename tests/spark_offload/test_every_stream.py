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
from spark_offload import stream_join
from spark_offload.cli.spark_tables import frame_of_table
from spark_offload.layout.columns import quoted
from tests.paths.arguments import spark_arguments
from tests.paths.oracle import compare, row_of
from tests.paths.random_cases import random_case
from tests.paths.spark_answers import packed, refusal

pytest.importorskip("google.protobuf", reason="Spark's state store is spoken to by protobuf")

FULL_OUTER = 2058
"""Seed of a full outer join with an equality and odd names."""


class Streams:
    """The inputs of a case as streams of files: their rows, and two that let time pass."""

    def __init__(self, spark, folder, case):
        self._spark = spark
        self._folder = folder
        self._case = case

    def rows(self):
        """Run the join over micro-batches; return its rows without those that end the streams."""
        query = self._case.query
        sides = [
            self._stream(side, table, order)
            for side, table, order in zip(
                ("left", "right"), (self._case.left, self._case.right), query.order, strict=True
            )
        ]
        answer = stream_join(*sides, device="software:", **spark_arguments(query))
        name = f"answer_{abs(hash(self._folder))}"
        writer = packed(answer, 0).writeStream.format("memory").queryName(name)
        writer = writer.option("checkpointLocation", str(self._folder / "checkpoint"))
        writer.trigger(availableNow=True).start().awaitTermination()
        rows = [row_of(pickle.loads(row.row)) for row in self._spark.table(name).collect()]
        return answer.columns, [row for row in rows if "'end'" not in row]

    def _stream(self, side, table, order):
        folder = self._folder / side
        folder.mkdir()
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
        folder = tmp_path / str(seed)
        folder.mkdir()
        names, rows = Streams(spark, folder, case).rows()
        wrong.append(compare(case, names, rows, ordered=False))
    assert [text for text in wrong if text] == []


def test_a_stream_with_a_null_time_is_refused(spark, tmp_path):
    case = random_case(FULL_OUTER, streams=True)
    times = pa.array([None, *case.left.column(0).to_pylist()[1:]], case.left.schema.field(0).type)
    name = case.left.column_names[0]
    case = replace(case, left=case.left.set_column(0, name, times))
    error = refusal(Streams(spark, tmp_path, case).rows)
    assert isinstance(error, UsageError)
    assert f"Order column {'left.' + name!r} is null in the row with" in str(error)

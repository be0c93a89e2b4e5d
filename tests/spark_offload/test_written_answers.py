# SPDX-License-Identifier: Apache-2.0
"""Spark reads what the host's commands write."""

from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from host.__main__ import main

ROWS = 2_000
BEGIN = datetime(2026, 11, 29, tzinfo=UTC)


@pytest.mark.long
def test_split_numbers_are_the_same_rows_in_spark(spark, tmp_path):
    times = [BEGIN + timedelta(seconds=at) for at in range(ROWS)]
    moments = pa.array(times, pa.timestamp("us", "UTC"))
    numbers = pa.array(range(ROWS))
    left = {
        "t": moments,
        "k": pa.array([None if at % 9 == 0 else at % 7 for at in range(ROWS)], pa.int32()),
        "x": numbers,
        "f": numbers.cast(pa.float64()),
        "s": numbers.cast(pa.string()),
    }
    right = {"rt": moments, "rk": pa.array([at % 5 for at in range(ROWS)], pa.int32())}
    paths = [str(tmp_path / f"{name}.parquet") for name in ("left", "right", "answer")]
    for columns, path in zip((left, right), paths, strict=False):
        pq.write_table(pa.table(columns), path)
    words = ["--left", paths[0], "--right", paths[1], "--on", "k:rk", "--time", "t:rt"]
    assert not main(["join", *words, "--within", "5s", "--how", "left", "--output", paths[2]])
    group = pq.ParquetFile(paths[2]).metadata.row_group(0)
    encodings = {
        group.column(at).path_in_schema: group.column(at).encodings
        for at in range(group.num_columns)
    }
    split = {name for name, used in encodings.items() if "BYTE_STREAM_SPLIT" in used}
    assert split >= {"t", "k", "x", "rk"}
    answer = pq.read_table(paths[2])
    read = spark.read.parquet(paths[2])
    assert dict(read.dtypes) == {
        "t": "timestamp",
        "k": "int",
        "x": "bigint",
        "f": "double",
        "s": "string",
        "rt": "timestamp",
        "rk": "int",
    }
    assert answer.num_rows > ROWS
    order = [(name, "ascending") for name in ("x", "rt", "rk")]
    found = read.toArrow().cast(answer.schema)
    assert found.sort_by(order).equals(answer.sort_by(order))

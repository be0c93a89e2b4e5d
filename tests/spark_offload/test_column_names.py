# SPDX-License-Identifier: Apache-2.0
"""Names of columns that Spark's own syntax would take apart, through every public function."""

from collections import Counter

import pytest

from spark_offload import (
    asof_join,
    join_aggregate,
    overlap_join,
    stream_aggregate,
    stream_join,
    verify,
)
from spark_offload.verification.comparison import all_of_stream
from tests.spark_offload.stream_folders import rows_of

#: A dot, a backtick, a space with a quote, letters beyond ASCII with a colon.
TIME, KEY, VALUE, END = "t.at", "k`y", 'a "value"', "für: ende"
ROWS = [(1, "a", 5, 4), (2, "b", 6, 2), (3, "a", None, 9), (12, None, 8, 13), (13, "b", 9, 14)]
LATER = (10**6, "z", 0, 10**6)
"""A row of streams only, behind which the watermark has passed all others."""


def batch(spark):
    return spark.createDataFrame(ROWS, "t int, k string, v int, e int").toDF(TIME, KEY, VALUE, END)


def sources(spark, folder):
    """The same rows with timestamps, as a batch and as a stream."""
    frame = spark.createDataFrame([*ROWS, LATER], "t int, k string, v int, e int").selectExpr(
        "timestamp_seconds(t) as t", "k", "v", "timestamp_seconds(e) as e"
    )
    frame.coalesce(1).write.parquet(str(folder))
    for reader in (spark.read, spark.readStream):
        named = reader.schema(frame.schema).parquet(str(folder)).toDF(TIME, KEY, VALUE, END)
        yield named.withWatermark(f"`{TIME}`", "1 second") if named.isStreaming else named


def joined(left, right, **changes):
    asked = {"on": KEY, "band": {(VALUE, VALUE): (-9, 9)}, "time": TIME, "device": "software:"}
    return stream_join(left, right, **asked, **changes)


BATCH = {
    "stream_join": lambda f: joined(f, f, within=20, how="left"),
    "asof_join": lambda f: asof_join(f, f, time=TIME, on=KEY, allow_exact_matches=False),
    "overlap_join": lambda f: overlap_join(
        f, f, left_interval=(TIME, END), on=KEY, device="software:"
    ),
    "join_aggregate": lambda f: join_aggregate(
        f, f, on=KEY, time=TIME, within=20, device="software:",
        aggregates={"`n.n`": "count", "sum.`v": ("sum", VALUE)},
    ),
    "stream_aggregate": lambda f: stream_aggregate(
        f, time=TIME, window=10, on=[KEY, END],
        aggregates={"`n.n`": "count", "sum.`v": ("sum", VALUE), "mean": ("mean", VALUE)},
    ),
    "stream_aggregate without keys": lambda f: stream_aggregate(
        f, time=TIME, window=10, advance=5, aggregates={"x.y": ("max", VALUE)}
    ),
    "stream_aggregate by Spark": lambda f: stream_aggregate(
        f.withColumn("d", f[f"`{VALUE}`"].cast("decimal(10,2)")).withColumnRenamed("d", "d.`x"),
        time=TIME, window=10, on=KEY, aggregates={"x.y": ("sum", "d.`x")},
    ),
}  # fmt: skip

STREAMS = {
    "stream_join": lambda f, g: joined(f, g, within="20s", how="left"),
    "asof_join": lambda f, g: asof_join(f, g, time=TIME, on=KEY, within="5s"),
    "overlap_join": lambda f, g: overlap_join(
        f, g, left_interval=(TIME, END), on=KEY, longest="10s", device="software:"
    ),
    "stream_aggregate": lambda f, _: stream_aggregate(
        f, time=TIME, window="10s", on=[KEY],
        aggregates={"`n.n`": "count", "sum.`v": ("sum", VALUE), "mean": ("mean", VALUE)},
    ),
}  # fmt: skip


@pytest.mark.few(1)
@pytest.mark.parametrize("name", BATCH)
def test_batch_frames_have_the_answer_of_spark_and_the_names(spark, name):
    answer = BATCH[name](batch(spark))
    assert answer.count() > 0
    assert verify(answer).agrees, str(verify(answer))
    assert KEY in answer.columns or "x.y" in answer.columns


@pytest.mark.few(1)
@pytest.mark.parametrize("name", STREAMS)
def test_streams_have_the_rows_of_a_batch(spark, tmp_path, name):
    (left, one), (right, other) = (sources(spark, tmp_path / side) for side in ("left", "right"))
    expected = STREAMS[name](left, right)
    with all_of_stream(STREAMS[name](one, other)) as streamed:
        assert streamed.columns == expected.columns
        late = rows_of(expected) - rows_of(streamed)
        assert rows_of(streamed) - rows_of(expected) == Counter()
        assert all("1970, 1, 12" in row for row in late)

# SPDX-License-Identifier: Apache-2.0
"""As-of joins of streams in Spark: files are the micro-batches, the batch join is the oracle."""

import random

import pytest

from host import UsageError
from spark_offload import asof_join, explain, metrics, plan_asof_join, stream_metrics
from tests.spark_offload.stream_folders import at, random_batch, row, rows_of

pytest.importorskip("google.protobuf", reason="Spark's state store is spoken to by protobuf")

ASKED = {"time": "t", "on": "k", "direction": "nearest", "within": "2 seconds", "partitions": 2}


def test_micro_batches_together_are_the_batch_answer(folders):
    rng = random.Random(9)
    folders.drop(random_batch(rng, 0), random_batch(rng, 0))
    folders.drop([row(10_000)], [row(10_000)])  # these let time pass for all others
    joined = asof_join(folders.stream("left"), folders.stream("right"), **ASKED)
    oracle = asof_join(folders.batch("left"), folders.batch("right"), **ASKED)
    assert joined.schema == oracle.schema
    query = folders.run(joined)
    expected = rows_of(oracle.where(f"t < timestamp'{at(9_000):%Y-%m-%d %H:%M:%S}'"))
    assert rows_of(folders.answer()) == expected
    assert expected.total() == 25
    measured = stream_metrics(query)
    assert sum(batch.results for batch in measured) == 25
    kept = sum(batch.stored - batch.expired for batch in measured)
    assert kept == 2, "of all rows those stay that time has not passed"
    with pytest.raises(UsageError, match="read spark_offload.stream_metrics"):
        metrics(joined)


def test_the_explanation_says_what_is_kept(folders):
    streams = folders.stream("left"), folders.stream("right")
    said = explain(asof_join(*streams, time="t", on="k"))
    assert "the newest right row of each key is kept for ever" in said.window
    assert "by a hash of the equal columns k" in said.partitioning
    assert "4,000 ms behind left 't'" in said.watermark


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"direction": "forward", "within": None}, "direction='forward' needs within=…"),
        ({"sorted": True}, "sorted=True cannot be kept by streams"),
        ({"within": 5}, "The distance 5 is a plain number"),
        ({"partitions": 0}, "partitions must be a whole number of at least 1"),
    ],
)
def test_what_streams_cannot_do_is_named_before_a_query_starts(folders, given, said):
    streams = folders.stream("left"), folders.stream("right")
    with pytest.raises(UsageError, match=said):
        plan_asof_join(*streams, **{**ASKED, **given})


def test_inputs_must_both_be_streams_with_watermarks(folders):
    stream = folders.stream("left")
    with pytest.raises(UsageError, match="The left input is a streaming DataFrame and the right"):
        plan_asof_join(stream, folders.batch("right"), **ASKED)
    with pytest.raises(UsageError, match="The streaming right input has no watermark"):
        plan_asof_join(stream, folders.stream("right", None), **ASKED)

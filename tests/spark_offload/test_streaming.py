# SPDX-License-Identifier: Apache-2.0
"""Streaming joins in Spark: files are the micro-batches, the batch join is the oracle."""

from collections import Counter
from datetime import timedelta
import json
import random
import re

from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import functions as F
import pytest

from host import Ordering, UsageError
from host.errors import MissingToolError
from spark_offload import (
    explain,
    metrics,
    plan_join,
    stream_join,
    stream_metrics,
    task_error,
)
from spark_offload.cluster.session import PROVIDER, ROCKSDB
from spark_offload.stream.task import SHUFFLE_PARTITIONS
from tests.spark_offload.stream_folders import random_batch, row, rows_of

pytest.importorskip("google.protobuf", reason="Spark's state store is spoken to by protobuf")


def test_micro_batches_together_are_the_batch_answer(folders):
    rng = random.Random(7)
    for number in range(5):
        folders.drop(random_batch(rng, number), random_batch(rng, number))
    asked = {"on": "k", "band": {"x": (-1, 2)}, "time": "t", "within": "5s", "partitions": 2}
    joined = folders.join(**asked)
    oracle = folders.oracle(**asked)
    assert joined.schema == oracle.schema
    query = folders.run(joined)
    expected = rows_of(oracle)
    assert rows_of(folders.answer()) == expected
    assert expected

    measured = stream_metrics(query)
    assert sum(batch.results for batch in measured) == expected.total()
    assert sum(batch.late_rows for batch in measured) == 0
    assert 100 < sum(batch.rows for batch in measured) < 180, "rows with nulls do not travel"
    # Ten seconds a batch, kept for nine: bounded.
    kept, most = 0, 0
    for batch in measured:
        kept += batch.stored - batch.expired
        most = max(most, kept)
    assert most < 0.7 * sum(batch.stored for batch in measured)
    assert {batch.join for batch in measured} == {plan_of_name(joined)}
    assert all(batch.seconds > 0 for batch in measured if batch.rows)


@pytest.mark.long
def test_rows_without_a_match_come_when_the_watermark_has_passed(folders):
    rng = random.Random(8)
    for number in range(2):
        folders.drop(random_batch(rng, number), random_batch(rng, number))
    for seconds in (10_000, 10_001):  # these match each other, and let time pass for all others
        folders.drop([row(seconds)], [row(seconds)])
    asked = {"on": "k", "band": {"x": (-1, 2)}, "time": "t", "within": "5s", "partitions": 2}
    joined = folders.join(how="full", **asked)
    oracle = folders.oracle(how="full", **asked)
    assert joined.schema == oracle.schema
    assert explain(joined).join.startswith("full outer")
    query = folders.run(joined)
    expected = rows_of(oracle)
    assert rows_of(folders.answer()) == expected
    assert sum("t=None" in text or "t_right=None" in text for text in expected) > 20
    assert sum(batch.results for batch in stream_metrics(query)) == expected.total()


def plan_of_name(frame):
    return explain(frame).metrics.split("'")[1]


@pytest.mark.long
def test_a_band_without_an_equality_and_a_failure_after_the_sink_has_written(folders, tmp_path):
    rng = random.Random(8)
    for number in range(3):
        folders.drop(random_batch(rng, number, 20), random_batch(rng, number, 20))
    asked = {"band": {"x": (-1, 0)}, "time": "t", "within": timedelta(seconds=2)}
    out = tmp_path / "by-batch"
    out.mkdir()
    seen = []

    def sink(frame, batch):
        seen.append(batch)
        (out / str(batch)).write_text(json.dumps([str(row) for row in frame.collect()]))
        if seen == [0, 1]:
            raise ValueError("on purpose")

    def start():
        writer = folders.join(**asked).writeStream.foreachBatch(sink)
        writer = writer.option("checkpointLocation", folders.checkpoint)
        return writer.trigger(availableNow=True).start()

    with pytest.raises(StreamingQueryException, match="on purpose"):
        start().awaitTermination()
    start().awaitTermination()
    assert seen.count(1) == 2
    found = Counter(text for path in out.iterdir() for text in json.loads(path.read_text()))
    assert found == rows_of(folders.oracle(**asked))


def test_killed_within_and_between_micro_batches_and_started_again(folders, tmp_path):
    rng = random.Random(9)
    flag = tmp_path / "failed"

    def fail_once(batches):
        for batch in batches:
            yield batch
            # In one task of the micro-batch, the other of which may have written its state.
            if not flag.exists() and "b" in batch.column("k").to_pylist():
                flag.touch()
                raise ValueError("on purpose")

    asked = {"on": "k", "time": "t", "within": "3s", "partitions": 2}

    def start(**changes):
        joined = folders.join(**{**asked, **changes})
        return folders.run(joined.mapInArrow(fail_once, joined.schema))

    flag.touch()
    folders.drop(random_batch(rng, 0), random_batch(rng, 0))
    start()  # stopped between two micro-batches
    flag.unlink()
    folders.drop(random_batch(rng, 1), random_batch(rng, 1))
    folders.drop(random_batch(rng, 2), random_batch(rng, 2))
    with pytest.raises(StreamingQueryException, match="on purpose"):
        start()
    start()
    assert rows_of(folders.answer()) == rows_of(folders.oracle(**asked))

    # Another question to the same checkpoint would not find its rows.
    folders.drop(random_batch(rng, 3), random_batch(rng, 3))
    with pytest.raises(StreamingQueryException) as caught:
        start(partitions=3)
    error = task_error(caught.value)
    assert isinstance(error, UsageError)
    assert "begun with partitions = 2, but now it is 3" in str(error)


def test_late_rows_are_dropped_and_counted(folders):
    folders.drop([row(100)], [row(100)])
    folders.drop([row(110)], [row(110)])
    # The watermark is now at 106: 103 is late on both sides, 107 is not.
    folders.drop([row(103), row(107, number=1)], [row(103), row(105), row(107, number=2)])
    query = folders.run(folders.join(on="k", time="t", within="4s"))
    late = [(batch.left_late, batch.right_late) for batch in stream_metrics(query) if batch.rows]
    assert late == [(0, 0), (0, 0), (1, 2)]
    found = {
        (pair["t"].second % 60, pair["t_right"].second % 60) for pair in folders.answer().collect()
    }
    in_time = (100, 110, 107)
    assert found == {(l % 60, r % 60) for l in in_time for r in in_time if abs(l - r) <= 4}


def test_the_plan_tells_where_it_runs_and_what_is_kept(folders, capsys):
    plan = plan_join(
        folders.stream("left", "1 minute"),
        folders.stream("right"),
        on="k",
        time="t",
        within="30s",
        device="software:",
        partitions=1,
    )
    explanation = plan.explain()
    text = capsys.readouterr().out
    assert explanation.partitions == 1
    for words in (
        "RocksDB",
        "60,000 ms behind left 't', 4,000 ms behind right 't'",
        "2 partitions (spark.sql.shuffle.partitions; ",
        "of which 1 hold rows",
        "by a hash of the equal columns k; the number as asked for",
        "stream_metrics(query)",
        "30s",
    ):
        assert words in text
    with pytest.raises(UsageError, match="stream_metrics"):
        metrics(plan.dataframe())
    plan.dataframe().explain()
    assert "splitjoin_pack_left" in capsys.readouterr().out


GOOD = {"time": "t", "within": "5s", "device": "software:"}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"within": None, "rows": 5}, ["rows=", "within="]),
        ({"sorted": True}, ["sorted cannot be kept", "leave it out"]),
        ({"ordering": Ordering.relaxed(4)}, ["relaxed(4)", "leave it out", "none"]),
        ({"time": "x"}, ["'x'", "bigint", "timestamp"]),
        ({"time": ("t", "when")}, ["'when'", "right"]),
        ({"within": 5}, ["duration"]),
        ({"on": "nome"}, ["'nome'", "left"]),
        ({"on": "k", "partitions": 0}, ["partitions", "0"]),
        ({"on": "k", "partitions": 5000}, ["partitions", "5,000"]),
        ({"device": "fpga:7"}, ["fpga"]),
    ],
)
def test_what_cannot_be_right_for_streams_is_refused(folders, change, words):
    with pytest.raises(UsageError) as caught:
        stream_join(folders.stream("left"), folders.stream("right"), **{**GOOD, **change})
    missing = [word for word in words if word not in str(caught.value)]
    assert not missing, str(caught.value)


def test_streams_may_say_that_their_pairs_come_in_no_order(folders):
    inputs = folders.stream("left"), folders.stream("right")
    assert stream_join(*inputs, **GOOD, ordering=Ordering.none()).isStreaming


def test_a_missing_watermark_is_refused_with_the_line_that_helps(folders):
    with pytest.raises(UsageError, match=r"right\.withWatermark\('t', '10 seconds'\)"):
        stream_join(folders.stream("left"), folders.stream("right", None), **GOOD)


def test_a_watermark_on_another_column_is_refused(folders):
    left = folders.stream("left", None).selectExpr("*", "t as u").withWatermark("u", "1 second")
    with pytest.raises(UsageError, match="watermark of the left input is on 'u'.*'t'"):
        stream_join(left, folders.stream("right"), **GOOD)


@pytest.mark.parametrize("sides", [("left", "right"), ("right", "left")])
def test_one_stream_and_one_batch_are_refused(folders, sides):
    folders.drop([row(1)], [row(1)])
    frames = {sides[0]: folders.stream(sides[0]), sides[1]: folders.batch(sides[1])}
    with pytest.raises(UsageError, match=f"{sides[0]} input is a streaming.*{sides[1]} one is not"):
        stream_join(frames["left"], frames["right"], **GOOD)


def test_an_input_that_comes_behind_the_watermark_is_refused(folders):
    stream = folders.stream("left")
    grouped = stream.groupBy(F.window("t", "1 second"), "x").count()
    grouped = grouped.select(F.window_time("window").alias("t"), "x")
    with pytest.raises(UsageError, match=r"right input.*\(Aggregate\).*write that stream"):
        stream_join(stream, grouped, **GOOD)
    paired = folders.join(on="k", time="t", within="1s")
    with pytest.raises(UsageError, match="left input.*TransformWithState"):
        stream_join(paired, stream, **GOOD)
    once = stream.dropDuplicatesWithinWatermark(["x"])
    assert explain(stream_join(once, stream, **GOOD)).partitions == 1


def test_measurements_of_single_tuples_are_refused(folders):
    with pytest.raises(UsageError, match="stream_metrics"):
        plan_join(folders.stream("left"), folders.stream("right"), **GOOD, trace=True)


def test_a_state_store_that_cannot_do_is_refused(spark, folders):
    before = spark.conf.get(PROVIDER, None)
    try:
        spark.conf.set(PROVIDER, ROCKSDB.replace("RocksDB", "HDFSBacked"))
        # The error is the line that helps.
        line = re.escape(f"spark.conf.set({PROVIDER!r}, {ROCKSDB!r})")
        with pytest.raises(UsageError, match=f"HDFSBacked.*{line}"):
            folders.join(time="t", within="5s")
        spark.conf.set(PROVIDER, ROCKSDB)
        assert explain(folders.join(time="t", within="5s")).state.startswith("RocksDB; ")
    finally:
        spark.conf.set(PROVIDER, before)


def test_planning_changes_no_option_of_the_session(spark, folders):
    def options():
        return dict(spark.conf.getAll)

    before = options()
    frame = folders.join(on="k", time="t", within="5s")
    explain(frame)
    assert options() == before


@pytest.mark.long
def test_a_query_goes_on_elsewhere_with_its_groups_and_its_names(spark, folders):
    rng = random.Random(10)
    asked = {"on": "k", "band": {"x": (-1, 2)}, "time": "t", "within": "5s"}
    before = spark.conf.get(SHUFFLE_PARTITIONS)
    names = set()
    try:
        for number, partitions in enumerate(("3", "5")):
            spark.conf.set(SHUFFLE_PARTITIONS, partitions)
            folders.drop(random_batch(rng, number), random_batch(rng, number))
            joined = folders.join(**asked)
            assert explain(joined).partitions == int(partitions)
            query = folders.run(joined)
            names |= {batch.join for batch in stream_metrics(query)}
    finally:
        spark.conf.set(SHUFFLE_PARTITIONS, before)
    expected = rows_of(folders.oracle(**asked))
    assert expected
    assert rows_of(folders.answer()) == expected
    assert names == {plan_of_name(joined)}


def test_joins_have_names_of_their_own(folders):
    def name(left="left", **change):
        asked = {"on": "k", "time": "t", "within": "5s", "device": "software:", **change}
        joined = stream_join(folders.stream(left), folders.stream("right"), **asked)
        return plan_of_name(joined)

    assert name() == name()
    others = [{"within": "6s"}, {"how": "full"}, {"left": "right"}, {"band": {"x": (0, 1)}}]
    names = {name(), *(name(**change) for change in others)}
    assert len(names) == 1 + len(others)


def test_a_missing_protobuf_is_named(folders, monkeypatch):
    monkeypatch.setattr("spark_offload.stream.task.find_spec", lambda name: None)
    with pytest.raises(MissingToolError, match="protobuf.*pip install"):
        folders.join(time="t", within="5s")


def test_an_output_mode_without_sense_is_refused_by_spark(folders):
    folders.drop([row(1)], [row(1)])
    with pytest.raises(PySparkException):
        folders.join(time="t", within="5s").writeStream.format("memory").outputMode(
            "complete"
        ).queryName("complete").start()

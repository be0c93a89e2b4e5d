# SPDX-License-Identifier: Apache-2.0
"""Aggregates of streams in Spark: its own groupBy(window(...)) of the same files is the oracle."""

import random

from pyspark.errors import StreamingQueryException
from pyspark.sql import functions as F
import pytest

from host import FailureError, UsageError
from host.errors import UnsupportedTypeError
from spark_offload import (
    explain,
    metrics,
    plan_aggregate,
    stream_aggregate,
    stream_aggregate_metrics,
    stream_metrics,
    task_error,
    verify,
)
from spark_offload.stream import aggregate_plan
from spark_offload.verification.comparison import all_of_stream
from tests.spark_offload.stream_folders import random_batch, row, rows_of

VALUES = {
    "n": "count", "xs": "count:x", "total": "sum:y", "low": "min:x", "high": "max:y",
    "mean": "mean:y", "light": "min:w",
}  # fmt: skip
ASKED = {
    "time": "t",
    "window": "8s",
    "advance": "3 seconds",
    "on": ["a key"],
    "aggregates": VALUES,
}


def rows_with_values(frame):
    """Columns of all kinds: y is small, w has NaN, a name needs quotes."""
    return frame.selectExpr(
        "t",
        "k as `a key`",
        "x",
        "cast(x % 7 as int) as y",
        "if(x % 3 = 0, double('nan'), 0.5) as w",
    )


def stream(folders):
    return rows_with_values(folders.stream("left"))


def by_spark(frame):
    """The same question as a user of Spark writes it."""
    grouped = frame.groupBy(F.window("t", "8 seconds", "3 seconds"), "a key").agg(
        F.count("*").alias("n"), F.count("x").alias("xs"), F.sum("y").alias("total"),
        F.min("x").alias("low"), F.max("y").alias("high"), F.mean("y").alias("mean"),
        F.min("w").alias("light"),
    )  # fmt: skip
    return grouped.select(
        F.col("window.start").alias("window_start"),
        F.col("window.end").alias("window_end"),
        "a key",
        *VALUES,
    )


def dropped(query):
    """What Spark tells of panes or rows that came too late for a window."""
    return sum(
        operator.numRowsDroppedByWatermark
        for progress in query.recentProgress
        for operator in progress.stateOperators
    )


def test_micro_batches_have_the_answer_of_spark_late_rows_and_nulls_too(folders):
    rng = random.Random(5)
    folders.drop([*random_batch(rng, 0), *random_batch(rng, 1), {**row(0), "t": None}], [])
    # Some windows of these rows have ended, and others have not.
    folders.drop([row(seconds, number=seconds) for seconds in (3, 13, 14, 15, 40)], [])
    folders.drop([row(20), row(31), row(38)], [])
    folders.drop([row(20), row(33), row(1000)], [])
    answer = stream_aggregate(stream(folders), **ASKED)
    query = folders.run(answer)
    with all_of_stream(by_spark(stream(folders))) as expected:
        wanted = rows_of(expected)
        assert rows_of(folders.answer()) == wanted
    assert answer.schema.names == ["window_start", "window_end", "a key", *VALUES]
    assert wanted.total() > 40
    assert dropped(query) >= 3, "rows came too late for some of their windows"
    assert wanted != rows_of(by_spark(rows_with_values(folders.batch("left"))))
    measured = stream_aggregate_metrics(query)
    assert [batch.rows for batch in measured if batch.rows] == [50, 5, 3, 3]
    assert sum(batch.results for batch in measured) == wanted.total()
    assert {batch.aggregation for batch in measured} == {name_of(answer)}
    assert all(0 < batch.panes <= batch.rows and batch.seconds > 0 for batch in measured[:4])
    assert stream_metrics(query) == (), "there is no join"
    with pytest.raises(UsageError, match="read spark_offload.stream_aggregate_metrics"):
        metrics(answer)


@pytest.mark.long
def test_sums_and_means_are_exact_however_large_the_parts_are(folders):
    most = (1 << 63) - 1
    asked = {"time": "t", "window": "8s", "on": ["k"]}
    for number, names in ((most, "aa"), (-most + 6, "a"), (-most, "a"), (7, "b"), (1, "b")):
        folders.drop([{**row(1), "x": number, "k": name} for name in names], [])
    folders.drop([row(100)], [])
    answer = stream_aggregate(
        folders.stream("left"), **asked, aggregates={"s": "sum:x", "m": "mean:x"}
    )
    assert answer.schema["m"].dataType.simpleString() == "double"
    folders.run(answer)
    rows = {found.k: (found.s, found.m) for found in folders.answer().collect()}
    assert rows == {"a": (6, 1.5), "b": (8, 4.0)}
    folders.drop([{**row(101), "x": most, "k": "b"}] * 2, [])
    folders.drop([row(200)], [])
    with pytest.raises(StreamingQueryException) as caught:
        folders.run(answer)
    said = str(task_error(caught.value))
    assert said.startswith(f"Column 's' holds {2 * most}, which is no integer of 64 bits; sum")


def name_of(frame):
    return explain(frame).metrics.split("'")[1]


@pytest.mark.long
def test_killed_and_started_again_no_result_is_lost_or_comes_twice(folders, tmp_path):
    rng = random.Random(6)
    flag = tmp_path / "failed"

    def fail_once(batches):
        for batch in batches:
            yield batch
            if not flag.exists() and batch.num_rows:
                flag.touch()
                raise ValueError("on purpose")

    def start(**changes):
        answer = stream_aggregate(stream(folders), **{**ASKED, **changes})
        return folders.run(answer.mapInArrow(fail_once, answer.schema))

    flag.touch()
    folders.drop(random_batch(rng, 0), [])
    start()  # stopped between two micro-batches
    flag.unlink()
    folders.drop(random_batch(rng, 1), [])
    folders.drop(random_batch(rng, 2), [])
    with pytest.raises(StreamingQueryException, match="on purpose"):
        start()  # killed in the middle of one, while results leave
    folders.drop([row(1000)], [])
    start()
    wanted = rows_of(
        by_spark(rows_with_values(folders.batch("left"))).where(
            "window_end < '2020-01-01 00:15:00'"
        )
    )
    assert rows_of(folders.answer()) == wanted
    assert wanted.total() > 30

    # Another question to the same checkpoint would mix windows of two lengths.
    folders.drop([row(2000)], [])
    with pytest.raises(StreamingQueryException, match=r"window = 8s.*window = 9s"):
        start(window="9s")


@pytest.mark.long
def test_verify_runs_both_over_what_the_sources_hold(folders, monkeypatch):
    rng = random.Random(7)
    for number in range(3):
        folders.drop(random_batch(rng, number), [])
    folders.drop([row(5), row(1000)], [])
    found = verify(stream_aggregate(stream(folders), **ASKED))
    assert found.agrees
    assert found.rows > 30
    plan = plan_aggregate(stream(folders), **ASKED)
    whole = aggregate_plan.own_windows
    monkeypatch.setattr(
        aggregate_plan, "own_windows", lambda *asked: whole(*asked).where("result0 > 1")
    )
    with pytest.raises(FailureError, match="are missing and 0 are in excess, by Spark"):
        verify(plan.dataframe())


def test_explain_tells_what_a_stream_does(folders):
    said = str(explain(stream_aggregate(stream(folders), **ASKED)))
    for text in (
        "none: panes on the host",
        "2: as Spark spreads windows and keys over its state (spark.sql.shuffle.partitions)",
        "mean = mean(y)",
        "4,000 ms behind 't'; the results of a window come when the watermark reaches its end",
        "stream_aggregate_metrics(query)",
    ):
        assert text in said


def test_spark_itself_answers_what_the_host_cannot(folders, caplog):
    frame = stream(folders)
    asked = {**ASKED, "aggregates": {"last": "max:a key"}, "on": ()}
    said = explain(stream_aggregate(frame, **asked))
    assert not said.offloaded
    assert "values of type string are not computed with on the host" in str(said)
    assert "The aggregation is done by Spark itself" in caplog.text
    with pytest.raises(UnsupportedTypeError):
        stream_aggregate(frame, **asked, strict=True)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"partitions": 3}, "partitions=3 is for batch frames; the windows of a stream lie in"),
        ({"time": "y"}, "Column 'y', by which rows of the streaming frame input arrive, is int"),
        ({"window": 5, "advance": None}, "must be a duration"),
        ({"on": ["what"]}, "There is no column 'what' in the frame input"),
    ],
)
def test_what_streams_cannot_do_is_named_before_a_query_starts(folders, change, said):
    with pytest.raises(UsageError, match=said):
        stream_aggregate(stream(folders), **{**ASKED, **change})


def test_a_stream_needs_a_watermark(folders):
    frame = rows_with_values(folders.stream("left", None))
    with pytest.raises(UsageError, match=r"frame\.withWatermark\('t', '10 seconds'\)"):
        stream_aggregate(frame, **ASKED)

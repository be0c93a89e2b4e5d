# SPDX-License-Identifier: Apache-2.0
"""A join gives the same rows in the same order, into however many ranges of time it is cut."""

from datetime import date, datetime, timedelta
from itertools import pairwise
import random

from pyspark.sql import functions as F
import pytest

from host.errors import FailureError, OrderError, UsageError
from spark_offload import explain, metrics, stream_join
from tests.spark_offload.oracle import join_rows
from tests.spark_offload.test_join import collected, frames, random_rows
from tests.spark_offload.test_usage import failure

LEFT, RIGHT = random_rows(11, 70, span=90), random_rows(12, 60, span=90)
WINDOWS = [{"within": 9}, {"rows": 5}]


def always(left, right):
    return True


def in_band(left, right):
    return -6 <= left["x"] - right["x"] <= 9


def in_partitions(spark, left, right, partitions, **query):
    inputs = frames(spark, left, right)
    joined = stream_join(*inputs, time="t", device="software:", partitions=partitions, **query)
    assert explain(joined).partitions == partitions
    return joined


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize(
    "partitions", [*(pytest.param(count, marks=pytest.mark.long) for count in (1, 2, 32)), 7]
)
def test_any_number_of_partitions_gives_the_same_answer(spark, window, partitions):
    joined = in_partitions(spark, LEFT, RIGHT, partitions, band={"x": (-6, 9)}, **window)
    expected = join_rows(LEFT, RIGHT, in_band, time="t", **window)
    assert collected(joined) == expected
    measured = metrics(joined)
    assert len(measured.tasks) == partitions
    assert measured.total("left_rows") == len(LEFT)
    assert measured.total("right_rows") == len(RIGHT)
    assert measured.total("results") == len(expected)
    assert (measured.total("halo_rows") > 0) == (partitions > 1)
    assert measured.tasks[0].halo_rows == 0
    if "rows" in window and partitions <= 7:
        for task in measured.tasks[2:]:
            assert task.halo_rows == 2 * window["rows"], "the last rows of either side, no more"


@pytest.mark.long
@pytest.mark.parametrize("window", [{"within": 0}, {"within": 200}, {"rows": 1}, {"rows": 300}])
def test_windows_may_be_wider_than_a_range(spark, window):
    joined = in_partitions(spark, LEFT, RIGHT, 5, **window)
    assert collected(joined) == join_rows(LEFT, RIGHT, always, time="t", **window)


@pytest.mark.long
@pytest.mark.parametrize("window", WINDOWS)
def test_an_equality_can_be_cut_into_ranges_of_time(spark, window):
    query = {"on": "k", "band": {"x": (-6, 9)}, "partition_by": "range"}
    nulls = [{"t": t, "k": None, "x": 1} for t in (10, 20, 80)]
    left = LEFT + nulls
    joined = in_partitions(spark, left, RIGHT, 4, **query, **window)
    assert collected(joined) == join_rows(
        left, RIGHT, lambda l, r: l["k"] == r["k"] and in_band(l, r), time="t", **window
    )
    assert "by ranges of the order columns" in explain(joined).partitioning


@pytest.mark.parametrize("window", [WINDOWS[0], pytest.param(WINDOWS[1], marks=pytest.mark.long)])
def test_skew_and_ties_are_no_harm(spark, window):
    rng = random.Random(13)
    times = [rng.choice([5, 5, 5, 6, 7, 40, 41, 900 + rng.randrange(3)]) for _ in range(120)]
    rows = [{"t": t, "k": 0, "x": number} for number, t in enumerate(times)]
    left, right = rows[:70], rows[70:]
    joined = in_partitions(spark, left, right, 7, band={"x": (-90, -20)}, **window)
    assert collected(joined) == join_rows(
        left, right, lambda l, r: -90 <= l["x"] - r["x"] <= -20, time="t", **window
    )
    assert "since rows of one time stay together" in explain(joined, count=True).partitioning


@pytest.mark.parametrize("window", [pytest.param(WINDOWS[0], marks=pytest.mark.long), WINDOWS[1]])
def test_all_rows_at_one_time_are_joined_by_one_task(spark, window):
    left = [{"t": 5, "k": 0, "x": number} for number in range(9)]
    joined = in_partitions(spark, left, left, 3, **window)
    assert collected(joined) == join_rows(left, left, always, time="t", **window)
    assert "2 of them empty" in explain(joined, count=True).partitioning


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("left", "right", "window"),
    [
        ([], RIGHT, WINDOWS[0]),
        pytest.param(LEFT, [], WINDOWS[1], marks=pytest.mark.long),
        ([], [], WINDOWS[1]),
    ],
)
def test_a_side_may_be_empty(spark, left, right, window):
    assert collected(in_partitions(spark, left, right, 2, **window)) == []


@pytest.mark.long
@pytest.mark.parametrize("window", WINDOWS)
def test_one_side_may_end_before_the_other_begins(spark, window):
    left = [{"t": t, "k": 0, "x": 0} for t in range(12)]
    right = [{"t": t, "k": 0, "x": 0} for t in range(15, 27)]
    joined = in_partitions(spark, left, right, 4, **window)
    assert collected(joined) == join_rows(left, right, always, time="t", **window)


@pytest.mark.long
@pytest.mark.parametrize(
    ("window", "values"),
    [
        ({"within": 3}, range(-(2**63), -(2**63) + 20)),
        ({"within": 2}, range(2**63 - 20, 2**63)),
        ({"within": 5}, range(-9, 11)),
        ({"rows": 2}, [*range(-(2**63), -(2**63) + 10), *range(2**63 - 10, 2**63)]),
    ],
)
def test_times_may_be_as_far_from_zero_as_they_can(spark, window, values):
    left = [{"t": t, "k": 0, "x": 0} for t in values]
    joined = in_partitions(spark, left, left, 3, **window)
    assert collected(joined) == join_rows(left, left, always, time="t", **window)
    assert all(task.results for task in metrics(joined).tasks), "the ranges hold rows"


@pytest.mark.few(1)
@pytest.mark.parametrize("kind", ["date", "timestamp", "timestamp_ntz"])
def test_times_of_every_kind_are_cut_exactly(spark, kind):
    start, step = {
        "date": (date(1969, 12, 20), timedelta(days=1)),
        "timestamp": (datetime(2001, 4, 1, 1), timedelta(minutes=15)),
        "timestamp_ntz": (datetime(1969, 12, 31, 23), timedelta(microseconds=1)),
    }[kind]
    zone = spark.conf.get("spark.sql.session.timeZone")
    # Clocks go forward in New York on the morning of the instants.
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        rows = spark.createDataFrame(
            [(start + number * step, number) for number in range(24)], f"t {kind}, n int"
        )
        joined = stream_join(
            rows, rows, time="t", within=2 * step, device="software:", partitions=4
        )
        pairs = [(row["n"], row["n_right"]) for row in joined.select("n", "n_right").collect()]
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)
    numbers = [{"t": number} for number in range(24)]
    assert pairs == join_rows(numbers, numbers, always, time="t", within=2)
    assert [task.left_rows for task in metrics(joined).tasks] == [6, 6, 6, 6]
    assert [task.halo_rows for task in metrics(joined).tasks] == [0, 4, 4, 4]


def test_random_queries_do_not_depend_on_the_partitions(spark):
    for seed in range(4):
        rng = random.Random(seed)
        span = rng.choice([3, 30, 3_000])
        left = random_rows(seed, rng.randrange(60), span=span)
        right = random_rows(seed + 100, 1 + rng.randrange(60), span=span)
        window = rng.choice([{"within": rng.randrange(span)}, {"rows": 1 + rng.randrange(30)}])
        joined = in_partitions(spark, left, right, rng.choice([2, 3, 7]), **window)
        assert collected(joined) == join_rows(left, right, always, time="t", **window), seed


@pytest.mark.long
@pytest.mark.parametrize("window", WINDOWS)
def test_an_input_may_come_in_another_order_when_it_is_read_again(spark, window):
    left, right = frames(spark, LEFT, RIGHT)
    joined = stream_join(
        left.orderBy(F.rand()),
        right.repartition(3),
        time="t",
        device="software:",
        partitions=4,
        **window,
    )
    counted = join_rows(LEFT, RIGHT, always, time="t", **window)
    if "within" in window:
        assert sorted(collected(joined)) == sorted(counted)
    else:  # which rows of one time are the last ones, nobody knows, but there are as many pairs
        assert joined.count() == len(counted)


def test_an_input_that_changes_is_named(spark, tmp_path):
    grown = tmp_path / "grown"
    marker = str(grown)

    def rows(batches):
        import os

        import pyarrow as pa

        for batch in batches:
            yield batch
            if os.path.exists(marker):
                yield pa.RecordBatch.from_arrays([pa.array([35])], schema=batch.schema)

    left = spark.range(60).coalesce(1).selectExpr("id as t").mapInArrow(rows, "t long")
    joined = stream_join(left, left, time="t", rows=30, device="software:", partitions=3)
    grown.touch()
    error = failure(joined)
    assert isinstance(error, FailureError)
    assert "input changed while it was joined" in str(error)
    assert "persist()" in str(error)


def test_partitions_by_time_follow_one_another(spark):
    joined = in_partitions(spark, LEFT, RIGHT, 6, within=9)
    parts = joined.rdd.glom().map(lambda rows: [max(row[0], row[3]) for row in rows]).collect()
    assert len(parts) == 6
    for earlier, later in pairwise(parts):
        assert max(earlier) < min(later)


def test_a_task_that_runs_again_gives_the_same_rows(spark):
    joined = in_partitions(spark, LEFT, RIGHT, 3, rows=4)
    parts = [joined.rdd.glom().collect() for _ in range(2)]
    assert parts[0] == parts[1]
    both = joined.union(joined)
    assert collected(both) == [tuple(row) for part in parts[0] + parts[1] for row in part]


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("side", "window"),
    [
        ("left", WINDOWS[0]),
        ("right", WINDOWS[1]),
        pytest.param("left", WINDOWS[1], marks=pytest.mark.long),
        pytest.param("right", WINDOWS[0], marks=pytest.mark.long),
    ],
)
def test_a_null_time_is_still_an_error(spark, window, side):
    rows = spark.createDataFrame([(t,) for t in [1, 2, None, *range(4, 40)]], "t int").coalesce(1)
    good = spark.createDataFrame([(t,) for t in range(40)], "t int")
    inputs = (rows, good) if side == "left" else (good, rows)
    error = failure(stream_join(*inputs, time="t", device="software:", partitions=4, **window))
    assert isinstance(error, UsageError)
    assert f"'{side}.t' is null in the row with t=null; " in str(error)


@pytest.mark.long
@pytest.mark.parametrize(
    "window", [{"rows": 1}, pytest.param({"within": 1}, marks=pytest.mark.long)]
)
def test_disorder_is_found_across_the_borders_of_ranges(spark, window):
    def joined(times):
        left = spark.createDataFrame([(t,) for t in times], "t int").coalesce(1)
        right = spark.createDataFrame([(500,)], "t int")
        return stream_join(
            left, right, time="t", sorted=True, device="software:", partitions=4, **window
        )

    rising = [10 * number for number in range(40)]
    good = joined(rising)
    assert good.count() == (0 if "within" in window else 1)
    border = metrics(good).tasks[0].left_rows
    for at in (border, border + 4):  # two neighbours change places: across a border, and elsewhere
        times = [*rising[: at - 1], rising[at], rising[at - 1], *rising[at + 1 :]]
        error = failure(joined(times))
        assert isinstance(error, OrderError)
        assert f"row {at}" in str(error)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"partitions": True}, ["partitions", "True"]),
        ({"partition_by": "hash"}, ["partition_by", "'hash'", "'key'"]),
        ({"partition_by": "key"}, ["partition_by='key'", "no equal column", "'range'"]),
        ({"partition_by": "key", "on": "k", "within": None, "rows": 3}, ["whatever their keys"]),
    ],
)
def test_a_wrong_wish_for_partitions_is_named(spark, change, words):
    inputs = frames(spark, LEFT, RIGHT)
    arguments = {"time": "t", "within": 5, "device": "software:", **change}
    with pytest.raises(UsageError) as caught:
        stream_join(*inputs, **arguments)
    assert not [word for word in words if word not in str(caught.value)], str(caught.value)


def test_times_of_day_cannot_be_cut(spark):
    rows = spark.sql("select make_dt_interval(0, id) as t from range(4)")
    arguments = {"time": "t", "within": "1h", "device": "software:"}
    assert stream_join(rows, rows, **arguments).count() == 10
    with pytest.raises(UsageError, match=r"interval.* cannot be cut into ranges.*partitions=1"):
        stream_join(rows, rows, partitions=2, **arguments)

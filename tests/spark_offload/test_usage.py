# SPDX-License-Identifier: Apache-2.0
"""What is wrong is said before anything runs, and names the thing to change."""

from collections import Counter
from dataclasses import replace
from datetime import date, timedelta

from pyspark.errors import PySparkException
import pytest

from host import FailureError, JoinError, UsageError
from host.errors import CapacityError, OrderError
from spark_offload import explain, metrics, plan_join, stream_join, task_error
from spark_offload.plan.accelerator import choose_device


@pytest.fixture(scope="module")
def rows(spark):
    return spark.createDataFrame(
        [(1, "a", 1.5, date(2001, 1, 1))], "t int, name string, price double, day date"
    )


GOOD = {"time": "t", "within": 5, "device": "software:"}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"time": "time"}, ["'time'", "left", "'price'"]),
        ({"sorted": "files"}, ["sorted", "'partitions'", "'files'"]),
        ({"time": ("t", "when")}, ["'when'", "right"]),
        ({"time": 5}, ["time", "5"]),
        ({"on": "Name"}, ["'Name'", "the left input", "write 'name'"]),
        (
            {"band": {"price": ("-0.5", "0.5")}},
            ["band ('price', 'price')", "low bound '-0.5'", "no unit", "without quotes"],
        ),
        ({"band": {"price": (-0.5, "x")}}, ["the high bound 'x' is not a duration"]),
        ({"within": "5"}, ["within '5' is not a duration", "like 5s"]),
        ({"time": "day", "within": "3h"}, ["window 3h", "not a whole number of days", "1d"]),
        ({"within": None}, ["exactly one of within", "not neither"]),
        ({"rows": 3}, ["within=5 and rows=3"]),
        ({"time": "name"}, ["'left.name'", "string"]),
        ({"time": ("t", "day")}, ["'left.t'", "'right.day'", "date"]),
        ({"on": "nome"}, ["'nome'", "left"]),
        ({"on": [("name", "nome")]}, ["'nome'", "right"]),
        ({"on": ("name", "t")}, ["[('name', 't')]", "['name', 't']"]),
        ({"on": [3]}, ["on", "3"]),
        ({"on": [("name", "t")]}, ["'left.name'", "'right.t'"]),
        ({"band": {"t": 5}}, ["band", "5"]),
        ({"band": [("t", "t", 1)]}, ["band", "('t', 't', 1)"]),
        ({"band": {"name": (0, 1)}}, ["name", "strings", "equality"]),
        ({"band": {"t": (timedelta(days=1), None)}}, ["'left.t'", "duration"]),
        ({"band": {"day": (1, 2)}}, ["'left.day'", "duration"]),
        ({"band": {"t": (float("nan"), 1)}}, ["nan", "finite"]),
        ({"within": None}, ["within", "rows"]),
        ({"rows": 5}, ["within", "rows"]),
        ({"within": -1}, ["within", "-1"]),
        ({"within": "5 parsecs"}, ["5 parsecs"]),
        ({"within": "5min"}, ["duration", "'left.t'"]),
        ({"within": None, "rows": 0}, ["rows", "0"]),
        ({"device": "fpga:7"}, ["fpga"]),
        ({"device": "sim:/nowhere"}, ["/nowhere"]),
        ({"device": 7}, ["device", "7"]),
        ({"partitions": 0}, ["partitions", "0"]),
    ],
)
def test_a_wrong_argument_is_named(rows, change, words):
    with pytest.raises(UsageError) as caught:
        stream_join(rows, rows, **{**GOOD, **change})
    missing = [word for word in words if word.lower() not in str(caught.value).lower()]
    assert not missing, str(caught.value)


@pytest.mark.parametrize(
    "asked",
    [
        lambda left, right: {"on": left.t == right.t},
        lambda left, right: {"on": ["t", left.t <= right.t]},
        lambda left, right: {"band": (left.t - right.t).between(-1, 1)},
        lambda left, right: {"band": [("t", "t", 0, 1), left.t < right.t]},
    ],
)
def test_a_condition_as_a_column_is_refused_with_the_form_that_is_taken(spark, asked):
    left, right = (spark.range(3).withColumnRenamed("id", "t") for _ in range(2))
    with pytest.raises(UsageError, match=r"(on|band) takes names of columns, not Column<.*band={"):
        stream_join(left, right, time="t", within=1, **asked(left, right))


def test_a_streaming_frame_is_refused(spark, rows):
    stream = spark.readStream.format("rate").load()
    with pytest.raises(UsageError, match="left input is a streaming DataFrame"):
        stream_join(stream, rows, time=("value", "t"), within=1, device="software:")


def test_something_else_than_a_frame_is_refused(rows):
    with pytest.raises(
        UsageError, match=r"right input must be a pyspark\.sql\.DataFrame, not a list"
    ):
        stream_join(rows, [], **GOOD)
    with pytest.raises(
        UsageError, match=r"not a pandas\.core\.frame\.DataFrame; spark\.createData"
    ):
        stream_join(rows.toPandas(), rows, **GOOD)
    with pytest.raises(UsageError, match=r"not a pyarrow\.lib\.Table"):
        stream_join(rows, rows.toArrow(), **GOOD)


def test_repeated_columns_are_refused(rows):
    with pytest.raises(UsageError, match="several columns called 't'"):
        stream_join(rows.selectExpr("t", "t"), rows, **GOOD)


def test_a_suffix_that_clashes_again_is_refused(spark, rows):
    left = spark.createDataFrame([(1, 2)], "t int, t_right int")
    with pytest.raises(UsageError, match="'t_right'"):
        stream_join(left, rows, **GOOD)


def test_a_count_window_beyond_the_capacity_is_refused(rows, software_bundle):
    with pytest.raises(CapacityError, match="100000.*python -m sim build"):
        stream_join(rows, rows, time="t", rows=100_000, device=software_bundle, strict=True)


def test_a_frame_of_other_origin_cannot_be_explained(rows):
    with pytest.raises(UsageError, match="stream_join"):
        explain(rows)


def failure(frame):
    with pytest.raises(PySparkException) as caught:
        frame.collect()
    return task_error(caught.value)


def test_a_null_in_the_order_column_is_named(spark, rows):
    left = spark.createDataFrame([(1,), (None,), (3,)], "when int").coalesce(1)
    error = failure(stream_join(left, rows, time=("when", "t"), within=5, device="software:"))
    assert isinstance(error, UsageError)
    assert isinstance(error, OrderError)
    assert "'left.when' is null in the row with when=null; " in str(error)
    assert "partition 0" in str(error)


def test_a_null_order_shows_its_row_whatever_partition_it_came_from(spark, rows):
    left = spark.createDataFrame(
        [(number, f"row {number} " * 20) for number in range(40)], "t int, text string"
    )
    left = left.selectExpr("nullif(t, 33) AS t", "text", "t + 1 AS more").repartition(4)
    error = failure(stream_join(rows, left, **GOOD))
    assert "'right.t' is null in the row with t=null, text='row 33 row" in str(error)
    assert "more=34; " in str(error)
    assert len(str(error)) < 300


def test_an_action_that_fails_shows_the_sentence_behind_few_lines(spark, rows):
    left = spark.createDataFrame([(None,)], "t int")
    with pytest.raises(PySparkException) as caught:
        stream_join(left, rows, **GOOD).count()
    lines = str(caught.value).strip().splitlines()
    assert "OrderError: Order column 'left.t' is null" in lines[-1]
    assert len(lines) <= 6
    assert "During handling" not in str(caught.value)


def test_a_null_order_is_named_even_where_the_key_is_null(spark, rows):
    left = spark.createDataFrame([(1, "a"), (None, None)], "t int, name string")
    error = failure(stream_join(left, rows, on="name", **GOOD))
    assert "'left.t' is null in the row with t=null, name=null" in str(error)


def test_going_back_in_time_is_an_error_if_declared_sorted(spark, rows):
    left = spark.createDataFrame([(1,), (3,), (2,), (4,)], "t int").coalesce(1)
    error = failure(stream_join(left, rows, sorted=True, **GOOD))
    assert isinstance(error, OrderError)
    assert "left.t" in str(error)
    assert "row 2" in str(error)
    assert stream_join(left.orderBy("t").coalesce(1), rows, sorted=True, **GOOD).count() == 4


@pytest.mark.few(1)
@pytest.mark.parametrize("how", [{"partitions": 3}, {"on": "t", "partitions": 2}])
def test_partitions_may_be_sources_that_are_sorted_by_themselves(spark, how):
    def frame(*times):
        """A frame of two partitions with as many rows."""
        return spark.range(0, len(times), 1, 2).selectExpr(f"array{times}[int(id)] as t")

    good, right = frame(1, 4, 9, 0, 4, 20), frame(2, 5, 4, 6)
    asked = {"time": "t", "within": 2, "device": "software:", **how}
    expected = sorted(map(tuple, stream_join(good, right, **asked).collect()))
    joined = stream_join(good, right, sorted="partitions", **asked)
    assert sorted(map(tuple, joined.collect())) == expected
    bad = frame(1, 4, 5, 9, 9, 5)
    error = failure(stream_join(bad, right, sorted="partitions", **asked))
    assert isinstance(error, OrderError)
    assert "row 2 of the input's partition 1 (the first is 0) has 5 after 9" in str(error)


def test_an_overflow_is_named_with_side_capacity_and_remedy(spark, software_bundle):
    left = spark.range(100).selectExpr("id as t")
    joined = stream_join(left, left, time="t", within=90, device=software_bundle, strict=True)
    error = failure(joined)
    assert isinstance(error, CapacityError)
    assert "capacity of 64" in str(error)
    assert "the 91 tuples needed: `python -m sim build" in str(error)


def test_where_the_window_outgrows_the_device_software_goes_on_and_says_so(
    spark, software_bundle, caplog
):
    left = spark.range(300).selectExpr("id as t", "id % 2 as k")
    asked = {"on": "k", "time": "t", "within": 190, "partitions": 2}
    joined = stream_join(left, left, device=software_bundle, **asked)
    expected = stream_join(left, left, device="software:", **asked)
    assert (
        "from what the device cannot hold, the task goes on in software" in explain(joined).window
    )
    assert "software" not in explain(expected).window
    assert Counter(joined.collect()) == Counter(expected.collect())
    measured = metrics(joined)
    outgrown = [task for task in measured.tasks if task.handed_over]
    assert outgrown
    assert measured.total("software_rows") > 0
    assert "row 64 of side" in str(measured)
    warnings = [record.message for record in caplog.records if "in software" in record.message]
    assert len(warnings) == 1, "once for a join, not for each task"
    partitions = [f"Partition {task.partition} went on in software" for task in outgrown]
    assert warnings[0].startswith(tuple(partitions))
    assert metrics(expected).remarks() == ()


def test_build_counts_the_windows_of_the_partitions(spark, software_bundle, monkeypatch):
    asked = []

    def choose(devices, query, session, *, needs=None, tuples=0, build=False):
        asked.append((tuples, build))
        return replace(choose_device(software_bundle, query, session), is_simulated=True)

    monkeypatch.setattr("spark_offload.plan.accelerator.choose_device", choose)
    left = spark.createDataFrame(
        [(time, "a") for time in range(200)] + [(7, "b")] * 150 + [(None, "c")], "t int, k string"
    )
    keys = {"time": "t", "within": 99, "strict": True, "partitions": 3}
    plan_join(left, left.where("t < 50"), on="k", build=True, **keys)
    # Of one partition: a and b may be in the same one, c has no time.
    assert asked[0] == (0, True)
    assert asked[1][0] in (150, 150 + 100)
    asked.clear()
    plan_join(left, left, on="k", **keys)
    assert asked == [(0, False)], "without it nothing is read"


def test_an_error_that_is_not_ours_stays_readable(spark):
    def fail(batches):
        yield from batches
        raise ZeroDivisionError("by zero")

    with pytest.raises(PySparkException) as caught:
        spark.range(1).mapInArrow(fail, "id long").collect()
    error = task_error(caught.value)
    assert isinstance(error, FailureError)
    assert isinstance(error, JoinError)
    assert str(error) == "A Spark task failed: ZeroDivisionError: by zero."


def test_nothing_is_read_before_an_action(spark, rows):
    left = spark.range(3).selectExpr("id as t", "assert_true(false) as boom")
    assert plan_join(left, rows, **GOOD).dataframe().columns[:2] == ["t", "boom"]

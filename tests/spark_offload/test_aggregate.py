# SPDX-License-Identifier: Apache-2.0
"""Aggregates of frames have the meaning of Spark's groupBy(window(...)), whoever computes them."""

from datetime import date, datetime, timedelta
from decimal import Decimal
import random

from pyspark.errors import PySparkException
from pyspark.sql import functions as F
from pyspark.sql.types import DayTimeIntervalType, LongType, StringType, StructField, StructType
import pytest

from host import FailureError, UsageError
from host.errors import UnsupportedTypeError
from host.query.quantities import Duration
from spark_offload import (
    explain,
    metrics,
    plan_aggregate,
    stream_aggregate,
    task_error,
    verify,
)
from spark_offload.task.operators import AggregateTask
from spark_offload.task.task import Task
from tests.host.operators.by_rows import expected_rows

START = datetime(2026, 11, 2)
VALUES = {
    "n": "count", "prices": "count:price", "total": ("sum", "price"), "low": "min:price",
    "high": "max:weight", "light": "min:weight", "mean": "mean:price", "heavy": "mean:weight",
}  # fmt: skip
SCHEMA = "at timestamp, day date, t int, item string, w double, price bigint, weight double"


def random_rows(seed, count):
    """Rows with many equal times, nulls everywhere, and floats that SQL treats as equal."""
    rng = random.Random(seed)

    def maybe(value):
        return None if rng.random() < 0.1 else value

    def row():
        second = rng.randrange(-40, 160)
        return (
            maybe(START + timedelta(seconds=second, microseconds=rng.randrange(3))),
            maybe(date(2026, 1, 1) + timedelta(days=second // 9)),
            maybe(second),
            maybe(rng.choice(["a", "b", ""])),
            maybe(rng.choice([0.0, -0.0, float("nan"), 2.5])),
            maybe(rng.randrange(-(1 << 40), 1 << 40)),
            maybe(rng.choice([0.5, -3.25, float("nan"), 7.0])),
        )

    return [row() for _ in range(count)]


ROWS = random_rows(3, 150)


@pytest.fixture(scope="module")
def frame(spark):
    return spark.createDataFrame(ROWS, SCHEMA).repartition(3).cache()


def as_set(rows):
    """Return rows without an order, NaN equal to NaN, floats rounded."""
    return sorted(
        tuple(
            "NaN" if value != value else f"{value:.6g}" if isinstance(value, float) else str(value)
            for value in row
        )
        for row in rows
    )


@pytest.mark.parametrize(
    ("keys", "window", "advance"),
    [(["item", "w"], "20s", "5 seconds"), ((), timedelta(seconds=30), None)],
)
def test_the_answer_is_that_of_spark(frame, keys, window, advance):
    """Nulls and all: written by hand here, as a user of Spark would."""
    spans = ["20 seconds", "5 seconds"] if keys else ["30 seconds", None]
    expected = (
        frame.groupBy(F.window("at", *spans), *keys)
        .agg(
            F.count("*"), F.count("price"), F.sum("price"), F.min("price"), F.max("weight"),
            F.min("weight"), F.mean("price"), F.mean("weight"),
        )
        .select("window.start", "window.end", "*")
        .drop("window")
    )  # fmt: skip
    answer = stream_aggregate(
        frame, time="at", window=window, advance=advance, on=keys, aggregates=VALUES
    )
    rows = answer.collect()
    assert as_set(rows) == as_set(expected.collect())
    measured = metrics(answer)
    with_time = sum(row[0] is not None for row in ROWS)
    assert measured.total("left_rows") == with_time
    assert measured.total("results") == len(rows)


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("time", "window", "advance"), [("t", 7, 3), ("day", "3d", Duration(86_400 * 10**9))]
)
def test_integers_and_dates_have_windows_too(frame, time, window, advance):
    answer = stream_aggregate(
        frame, time=time, window=window, advance=advance, on="item", aggregates=VALUES
    )
    found = verify(answer)
    assert found.rows > 0
    assert str(found).endswith("results agree with Spark's own aggregation.")
    if time == "t":
        names = [field.split()[0] for field in SCHEMA.split(", ")]
        rows = [dict(zip(names, row, strict=True)) for row in ROWS if row[2] is not None]
        parts = [given.split(":") if isinstance(given, str) else given for given in VALUES.values()]
        wanted = expected_rows(
            rows, time="t", window=window, advance=advance, keys=["item"],
            aggregates=[(part[0], part[1] if len(part) > 1 else None) for part in parts],
        )  # fmt: skip
        assert as_set(answer.collect()) == as_set(wanted)
        assert dict(answer.dtypes)["window_start"] == "bigint"
    else:
        assert dict(answer.dtypes)["window_end"] == "date"


def test_each_partition_comes_in_the_order_of_windows_and_keys(frame):
    answer = stream_aggregate(
        frame, time="t", window=9, advance=3, on=["item"], aggregates={"n": "count"}, partitions=2
    )
    parts = answer.select(F.spark_partition_id().alias("part"), "*").collect()
    for part in (0, 1):
        rows = [
            (row.window_start, row.item is None, row.item or "")
            for row in parts
            if row.part == part
        ]
        assert rows == sorted(rows)
        assert rows


def test_explain_says_how_it_is_run(frame, capsys):
    answer = stream_aggregate(
        frame, time="at", window="1min", on=["item"], aggregates={"n": "count"}, partitions=3
    )
    said = explain(answer)
    assert said.offloaded
    assert str(said) in capsys.readouterr().out
    for text in (
        "none: panes on the host",
        "3: by the keys item, of panes of all rows at hand",
        "n = count(*)",
        "1min of 'at', every 1min; null times are left out",
        "window_start, window_end, item, n",
    ):
        assert text in str(said)


def test_spark_itself_answers_what_the_host_cannot(spark, caplog):
    rows = [(START, Decimal("1.5"), "x"), (START, Decimal("2.25"), "y")]
    frame = spark.createDataFrame(rows, "at timestamp, d decimal(9,2), s string")
    given = {"time": "at", "window": "1h", "aggregates": {"d": "sum:d", "s": "max:s"}}
    answer = stream_aggregate(frame, **given)
    assert [(row.d, row.s) for row in answer.collect()] == [(Decimal("3.75"), "y")]
    assert "The aggregation is done by Spark itself" in caplog.text
    said = explain(answer)
    assert not said.offloaded
    assert "values of type decimal128(9, 2) are not computed with on the host" in str(said)
    assert verify(answer).agrees
    with pytest.raises(UnsupportedTypeError):
        plan_aggregate(frame, **given, strict=True)


@pytest.mark.long
def test_a_mean_is_a_double_of_the_exact_sum_however_large_it_is(spark):
    """Whoever computes it, as Spark's avg of integers is one; an error names the aggregate."""
    most = (1 << 63) - 1
    numbers = [most, most - 10, most, -most, 5]
    rows = [(START, number, Decimal(number)) for number in numbers]
    frame = spark.createDataFrame(rows, "at timestamp, x long, d decimal(20,0)").repartition(2)
    asked = {"time": "at", "window": "1h"}
    for name in ("x", "d"):
        answer = stream_aggregate(frame, **asked, aggregates={"m": f"mean:{name}", "n": "count"})
        assert dict(answer.dtypes) == {
            "window_start": "timestamp", "window_end": "timestamp", "m": "double", "n": "bigint"
        }  # fmt: skip
        assert [row.m for row in answer.collect()] == [sum(numbers) / 5]
        assert explain(answer).offloaded == (name == "x")
        assert verify(answer).agrees
    # The rows of one task may add up to more than those of all.
    above, below = ([(START, sign * most)] * 3 for sign in (1, -1))
    sides = [
        spark.createDataFrame(part, "at timestamp, x long").coalesce(1) for part in (above, below)
    ]
    added = stream_aggregate(sides[0].unionAll(sides[1]), **asked, aggregates={"s": "sum:x"})
    assert [row.s for row in added.collect()] == [0]
    answer = stream_aggregate(frame, **asked, aggregates={"too much": "sum:x"})
    with pytest.raises(PySparkException) as caught:
        answer.count()
    assert f"Column 'too much' holds {sum(numbers)}" in str(task_error(caught.value))


def test_a_wrong_answer_is_found_out(frame, monkeypatch):
    plan = plan_aggregate(frame, time="t", window=50, aggregates={"n": "count"})
    monkeypatch.setattr(AggregateTask, "function", without_the_first)
    with pytest.raises(FailureError, match=r"results 1 are missing and 0 are in excess, by Spark"):
        verify(plan.dataframe())
    assert not verify(plan.dataframe(), raises=False).agrees
    with pytest.raises(UsageError, match="an aggregation is compared as a whole"):
        verify(plan.dataframe(), share=0.5)


def without_the_first(task, name, report):
    plain = Task.function(task, name, report)
    return plain if task.whole is None else lambda batches: (one.slice(1) for one in plain(batches))


@pytest.mark.parametrize(
    ("changes", "kind", "message"),
    [
        ({"time": "when"}, UsageError, "There is no column 'when' in the given input"),
        ({"on": ["what"]}, UsageError, "There is no column 'what'"),
        ({"aggregates": {"n": "sum:what"}}, UsageError, "There is no column 'what'"),
        ({"aggregates": ["count"]}, UsageError, "aggregates must map names to aggregates"),
        ({"aggregates": {"n": "first:t"}}, UsageError, "one of count, sum, min, max, mean"),
        ({"window": None}, UsageError, "window must be given, such as window='5min'."),
        ({"window": "soon"}, UsageError, "window 'soon' is not a duration"),
        ({"window": 1.5}, UsageError, "window must be a duration or a whole number of at least 1"),
        ({"window": 5}, UsageError, "must be a duration, such as 5min, not 5"),
        ({"advance": "2h"}, UsageError, "must advance by at most that"),
        ({"time": "item"}, UsageError, "is no column of time; cast it to a timestamp"),
        (
            {"partitions": 2},
            UsageError,
            "partitions=2 needs keys (on): without any, each window",
        ),
        ({"partitions": 0, "on": "item"}, UsageError, "partitions"),
    ],
)
def test_wrong_arguments_are_named_before_anything_runs(frame, changes, kind, message):
    given = {"time": "at", "window": "1h", "aggregates": {"n": "count"}}
    with pytest.raises(kind) as caught:
        stream_aggregate(frame, **given | changes)
    assert message in str(caught.value)


def test_keys_of_the_answer_are_the_columns_of_the_input(spark):
    """As those of Spark's own groupBy: what may be null, notes, and the kind of an interval."""
    schema = StructType(
        [
            StructField("t", LongType(), False),
            StructField("k", StringType(), False, {"comment": "a note"}),
            StructField("d", DayTimeIntervalType(0, 1)),
        ]
    )
    frame = spark.createDataFrame([(1, "a", timedelta(days=1))], schema)
    found = stream_aggregate(
        frame, time="t", on=["k", "d"], window=10, aggregates={"n": "count", "low": "min:d"}
    ).schema
    assert [found["k"], found["d"]] == [schema["k"], schema["d"]]
    assert found["low"].dataType == schema["d"].dataType
    assert [field.nullable for field in found] == [False, False, False, True, False, True]

# SPDX-License-Identifier: Apache-2.0
"""Aggregates of matches: each left row once, as Spark's own join and aggregation give it."""

from dataclasses import replace
import random

from pyspark.sql import functions as F
import pytest

from host import FailureError, Ordering, UsageError
from spark_offload import (
    explain,
    join_aggregate,
    metrics,
    plan_join_aggregate,
    verify,
)
from tests.spark_offload.stream_folders import rows_of

AGGREGATES = {
    "n": "count", "prices": "count:price", "total": "sum:price", "low": "min:price",
    "mean": ("mean", "price"), "last": "max:name",
}  # fmt: skip
ASKED = {
    "on": "k",
    "band": {("x", "a"): (-3, 3)},
    "time": "t",
    "within": 20,
    "device": "software:",
    "aggregates": AGGREGATES,
}


@pytest.fixture(scope="module")
def frames(spark):
    """Rows some of which are equal, with nulls, and with and without matches."""
    rng = random.Random(25)

    def rows(count):
        return [
            (rng.randrange(100), rng.choice(["a", "b", None]), rng.randrange(20),
             rng.choice([None, 1, 5, -(1 << 40)]), rng.choice("uvw"))
            for _ in range(count)
        ]  # fmt: skip

    left = spark.createDataFrame(
        [*rows(60), *rows(20) * 2], "t int, k string, x int, p long, m string"
    )
    right = spark.createDataFrame(rows(80), "t int, k string, a int, price long, name string")
    return left.repartition(3).cache(), right.repartition(2).cache()


def by_hand(left, right):
    """The same question as a user of Spark writes it."""
    l, r = left.withColumn("id", F.monotonically_increasing_id()).alias("l"), right.alias("r")
    near = (F.abs(F.col("l.t") - F.col("r.t")) <= 20) & F.col("x").cast("int").isNotNull()
    close = (F.col("x") - F.col("a")).between(-3, 3)
    joined = l.join(r, (F.col("l.k") == F.col("r.k")) & near & close, "left")
    grouped = joined.groupBy("id", *(f"l.{name}" for name in left.columns)).agg(
        F.count("r.t").alias("n"), F.count("price").alias("prices"), F.sum("price").alias("total"),
        F.min("price").alias("low"), F.mean("price").alias("mean"), F.max("name").alias("last"),
    )  # fmt: skip
    return grouped.drop("id")


@pytest.mark.few(1)
@pytest.mark.parametrize("partition_by", ["key", "range"])
def test_each_left_row_has_the_aggregates_of_its_matches(frames, partition_by):
    answer = join_aggregate(*frames, **ASKED, partition_by=partition_by, partitions=2)
    expected = rows_of(by_hand(*frames))
    assert rows_of(answer) == expected
    assert expected.total() == 100
    assert answer.columns == ["t", "k", "x", "p", "m", *AGGREGATES]
    if partition_by == "key":
        measured = metrics(answer)
        pairs = answer.agg(F.sum("n")).first()[0]
        alone = answer.where("n = 0").count()
        assert min(pairs, alone) > 10
        assert measured.total("results") == pairs + alone
        assert verify(answer).rows == 100


def test_a_window_by_rows_and_no_equality(frames):
    asked = {**ASKED, "on": None, "within": None, "rows": 7, "aggregates": {"n": "count"}}
    counts = [row.n for row in join_aggregate(*frames, **asked).collect()]
    assert len(counts) == 100
    assert max(counts) > 1


def test_explain_tells_of_the_join_and_what_is_computed(frames):
    said = explain(join_aggregate(*frames, **ASKED))
    assert said.join.startswith("every left row once, with n = count(*), prices = count(price), ")
    assert said.columns == ("t", "k", "x", "p", "m", *AGGREGATES)
    assert said.offloaded
    assert "by the equal columns k" in said.partitioning


def test_a_wrong_answer_is_found_out(frames):
    plan = plan_join_aggregate(
        *frames, **{**ASKED, "aggregates": {"n": "count", "m2": "sum:price"}}
    )
    more = F.col("n") + (F.col("n") > 2).cast("int")
    own = plan.own
    plan = replace(plan, own=lambda *_: own(*plan.inputs).withColumn("n", more))
    with pytest.raises(FailureError, match=r"Of 100 results \d+ are missing and \d+ are in excess"):
        plan.verify()


@pytest.mark.parametrize(
    ("changes", "kind", "message"),
    [
        ({"aggregates": {}}, UsageError, "Matches need at least one aggregate"),
        ({"aggregates": {"x": "count"}}, UsageError, "cannot be called 'x', as a left column is"),
        ({"aggregates": {"n": "sum:p"}}, UsageError, "no column 'p' in the right input"),
        ({"aggregates": {"n": "median:price"}}, UsageError, "one of count, sum, min, max, mean"),
        ({"how": "left"}, UsageError, "how has no meaning for aggregates of matches"),
        ({"ordering": Ordering.none()}, UsageError, "ordering has no meaning"),
        ({"within": None}, UsageError, "within"),
    ],
)
def test_wrong_arguments_are_named_before_anything_runs(frames, changes, kind, message):
    with pytest.raises(kind, match=message):
        join_aggregate(*frames, **{**ASKED, **changes})


def test_streams_are_refused(frames, folders):
    with pytest.raises(UsageError, match="The right input is a streaming DataFrame, whose"):
        join_aggregate(frames[0], folders.stream("right"), **ASKED)

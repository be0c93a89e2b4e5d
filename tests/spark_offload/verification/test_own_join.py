# SPDX-License-Identifier: Apache-2.0
"""Spark's own join of a query has the rows of the offloaded one."""

from collections import Counter
from dataclasses import replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import reduce
import random

from pyspark.sql import functions as F
import pytest

from host import UsageError
from host.operators.verification import reference_pairs
from host.query.queries import Query, Term
from host.reference.types import JoinType
from spark_offload import stream_join
from spark_offload.verification.own_queries import own_join
from tests.halves import half
from tests.spark_offload.own_join_cases import random_case
from tests.spark_offload.spark_tables import frame_of_table

ZONED = "t timestamp, k int, x int"
CASES = {
    "band": ("t bigint, k int, x int", {"band": {"x": (-2, 3)}, "within": 10}),
    "equality": ("t bigint, k int, x int", {"on": "k", "within": 15}),
    "open ends": (
        "t bigint, k int, x bigint",
        {"on": ["k"], "band": {"x": (3, None)}, "within": 9},
    ),
    "no terms": ("t int, k int, x int", {"within": 2}),
    "times": (ZONED, {"on": "k", "within": "3min"}),
    "times without a zone": (
        "t timestamp_ntz, k int, x int",
        {"band": [("t", "t", "-2min", "90s")], "within": "5min"},
    ),
    "dates": ("t date, k int, x int", {"on": "k", "within": "2d"}),
    "decimals": (
        "t bigint, k int, x decimal(9,2)",
        {"band": {"x": (-1, 2)}, "within": 10},
    ),
}


def value(rng, kind):
    if rng.random() < 0.1 and not kind[1]:
        return None
    return {
        "timestamp": lambda: datetime(2024, 3, 31) + timedelta(seconds=rng.randrange(3600)),
        "timestamp_ntz": lambda: datetime(2024, 3, 31) + timedelta(seconds=rng.randrange(3600)),
        "date": lambda: date(2024, 2, 20) + timedelta(days=rng.randrange(30)),
        "decimal(9,2)": lambda: Decimal(rng.randrange(-500, 500)).scaleb(-2),
    }.get(kind[0], lambda: rng.randrange(8))()


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "case",
    [pytest.param(case, marks=[pytest.mark.long] * (at % 2)) for at, case in enumerate(CASES)],
)
def test_rows_are_those_of_the_offloaded_join(spark, case):
    schema, arguments = CASES[case]
    kinds = [(column.split(" ")[1], column.startswith("t ")) for column in schema.split(", ")]
    rng = random.Random(case)
    left, right = (
        spark.createDataFrame(
            [tuple(value(rng, kind) for kind in kinds) for _ in range(60)], schema
        )
        for _ in range(2)
    )
    offloaded = stream_join(left, right, time="t", device="software:", **arguments)
    own = own_join(left, right, Query(time="t", **arguments))
    assert own.schema == offloaded.schema
    rows = [sorted((tuple(row) for row in frame.collect()), key=str) for frame in (own, offloaded)]
    assert rows[0] == rows[1]
    assert rows[0]


def test_a_count_window_is_no_condition_on_two_rows(spark):
    frame = spark.createDataFrame([(1,)], "t int")
    with pytest.raises(UsageError, match="give a window by time"):
        own_join(frame, frame, Query(time="t", rows=3))


@pytest.fixture
def berlin(spark):
    """The session in a zone whose clocks leave out an hour."""
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    yield spark
    spark.conf.set("spark.sql.session.timeZone", zone)


@pytest.mark.parametrize(
    "seeds",
    [
        (14, 43),
        *(pytest.param(range(at, at + 4), marks=pytest.mark.long) for at in range(0, 60, 4)),
    ],
)
def test_random_queries_of_every_type_have_the_rows_of_the_reference_join(berlin, seeds):
    found, expected = [], Counter()
    for seed in seeds:
        left, right, query = random_case(seed)
        frames = [frame_of_table(berlin, table, "a table") for table in (left, right)]
        for how in JoinType:
            typed = replace(query, how=how)
            name = f"{seed}: {typed}"
            own = own_join(*frames, typed)
            other = F.col("row_right") if how.has_pairs else F.lit(None).cast("int")
            found.append(own.select(F.lit(name), "row", other))
            rows = (numbers.tolist() for numbers in reference_pairs(left, right, typed))
            for pair in zip(*rows, strict=True):
                expected[name, *(None if row < 0 else row for row in pair)] += 1
    joined = reduce(lambda one, more: one.unionAll(more), found)
    assert Counter(map(tuple, joined.collect())) == expected


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("how", "band"), half(list(JoinType), [(("x", "x", -2, 3),), (("t", "t", -1, 5),)])
)
def test_no_type_of_join_compares_every_row_with_every_row(spark, how, band):
    frame = spark.createDataFrame([(1, 0.5)], "t bigint, x double")
    query = Query(band=[Term(*band)], time="t", within=9, how=how)
    plan = own_join(frame, frame, query)._jdf.queryExecution().executedPlan().toString()
    assert "Join" in plan
    assert "NestedLoop" not in plan
    assert "Cartesian" not in plan

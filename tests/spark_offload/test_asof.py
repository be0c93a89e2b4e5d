# SPDX-License-Identifier: Apache-2.0
"""As-of joins of frames give the rows that the reference names, whoever answers."""

from datetime import datetime, timedelta
from decimal import Decimal
import random

import pytest

from host import UsageError
from host.errors import OrderError, UnsupportedTypeError
from host.query.queries import AsofQuery
from host.reference.asof import reference_asof
from host.reference.types import NO_ROW, Direction
from spark_offload import (
    asof_join,
    explain,
    metrics,
    plan_asof_join,
    verify,
)
from spark_offload.verification.own_queries import own_asof
from tests.spark_offload.actions import act

SCHEMA = "t bigint, k string, d double, n int"


def random_rows(seed, count):
    """Rows with many equal times, null keys, and numbers that tell them apart."""
    rng = random.Random(seed)
    return [
        (rng.randrange(25), rng.choice(["a", "b", "c", None]), rng.choice([0.0, -0.0, 1.5]), number)
        for number in range(count)
    ]


LEFT, RIGHT = random_rows(1, 60), random_rows(2, 40)


def expected(left, right, keys, **query):
    """Return the rows of the answer, in its order; ``keys`` are positions of columns."""

    def keyed(rows):
        values = [tuple(row[key] for key in keys) for row in rows]
        return [
            (row[0], None if None in value else value)
            for row, value in zip(rows, values, strict=True)
        ]

    how = query.pop("how", "left")
    left = sorted(left, key=lambda row: row[0])
    found = reference_asof(keyed(left), keyed(right), **query)
    return [
        (*row, *([None] * len(right[0]) if other == NO_ROW else right[other]))
        for row, other in zip(left, found, strict=True)
        if other != NO_ROW or how == "left"
    ]


@pytest.fixture(scope="module")
def frames(spark):
    """The left and the right rows as frames."""
    return [spark.createDataFrame(rows, SCHEMA).repartition(1) for rows in (LEFT, RIGHT)]


#: Direction, tolerance, exact matches, type, equal columns and their positions.
CASES = [
    ("backward", None, True, "left", "k", (1,)),
    ("backward", 2, False, "inner", None, ()),
    ("forward", 1, True, "inner", ["k", ("d", "d")], (1, 2)),
    ("nearest", 1, True, "left", "k", (1,)),
]


@pytest.mark.few(3)
@pytest.mark.parametrize(("direction", "tolerance", "exact", "how", "by", "keys"), CASES)
def test_the_answer_is_that_of_the_reference(frames, direction, tolerance, exact, how, by, keys):
    plan = plan_asof_join(
        *frames,
        time="t",
        on=by,
        direction=direction,
        within=tolerance,
        allow_exact_matches=exact,
        how=how,
    )
    given = {"direction": Direction.of(direction), "tolerance": tolerance, "exact": exact}
    wanted = expected(LEFT, RIGHT, keys, how=how, **given)
    rows = [tuple(row) for row in plan.dataframe().collect()]
    if keys:
        rows, wanted = sorted(rows, key=str), sorted(wanted, key=str)
    assert rows == wanted
    measured = plan.metrics()
    assert (measured.total("left_rows"), measured.total("results")) == (60, len(wanted))


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("given", "keys"),
    [
        ({"direction": "nearest", "exact": True, "tolerance": 2}, (1,)),
        ({"direction": "forward", "exact": False, "how": "inner"}, ()),
    ],
)
def test_spark_itself_gives_the_same_rows(frames, given, keys):
    wanted = expected(LEFT, RIGHT, keys, **{**given, "direction": Direction.of(given["direction"])})
    query = AsofQuery(
        time="t",
        on=[("k", "k")] if keys else [],
        direction=given["direction"],
        within=given.get("tolerance"),
        allow_exact_matches=given["exact"],
        how=given.get("how", "left"),
    )
    rows = [tuple(row) for row in own_asof(*frames, query).collect()]
    assert sorted(rows, key=str) == sorted(wanted, key=str)


def test_times_are_verified_and_explained(spark):
    start = datetime(2026, 11, 2)
    trades = spark.createDataFrame(
        [(start + timedelta(seconds=n), "ab"[n % 2]) for n in range(8)], "at timestamp, s string"
    )
    quotes = spark.createDataFrame(
        [(start + timedelta(seconds=3 * n), "ab"[n % 2], n) for n in range(3)],
        "time timestamp, symbol string, bid int",
    )
    joined = asof_join(
        trades, quotes, time=("at", "time"), on=[("s", "symbol")], within="3 seconds", partitions=1
    )
    assert joined.columns == ["at", "s", "time", "symbol", "bid"]
    said = verify(joined)
    assert (said.rows, said.agrees) == (8, True)
    assert [row["bid"] for row in joined.collect()] == [0, None, 0, 1, None, 1, 2, None]
    text = explain(joined)
    assert text.partitions == 1
    assert "last right row with right.time <= left.at and left.s = right.symbol" in text.join
    assert "at most 3s away" in text.window
    assert metrics(joined).total("results") == 8


@pytest.mark.few(1)
@pytest.mark.parametrize("kind", ["double", "decimal(6,2)"])
def test_other_numbers_are_left_to_spark_visibly(spark, kind):
    value = float if kind == "double" else Decimal
    left = spark.createDataFrame([(value("1.5"),), (value("9"),)], f"t {kind}")
    right = spark.createDataFrame([(value("1"), 1), (value("1.25"), 2)], f"t {kind}, y int")
    joined = asof_join(left, right, time="t", within=1)
    assert sorted(joined.collect()) == [(value("1.5"), value("1.25"), 2), (value("9"), None, None)]
    said = explain(joined)
    assert not said.offloaded
    assert f"type {kind}" in str(said).replace("decimal128(6, 2)", kind)
    with pytest.raises(UnsupportedTypeError, match="left.t"):
        asof_join(left, right, time="t", strict=True)


@pytest.mark.parametrize(
    ("given", "error", "said"),
    [
        ({"time": "time"}, UsageError, "no column 'time' in the left input"),
        ({"time": ("t", "u")}, UsageError, "no column 'u' in the right input"),
        ({"time": ["t", "t", "t"]}, UsageError, "time must be a column or a"),
        ({"on": "q"}, UsageError, "no column 'q' in the left input"),
        ({"on": ("k", "k")}, UsageError, "on=.* could mean one pair or two columns"),
        ({"on": [("k", "n")]}, UsageError, "left.k.*cannot be compared with.*right.n"),
        ({"time": "k"}, UnsupportedTypeError, "left.k.*string"),
        ({"within": "5s"}, UsageError, "The distance 5s is a duration"),
        ({"within": "near"}, UsageError, "within 'near' is not a duration"),
        ({"within": -1}, UsageError, "of at least 0.*not -1"),
        ({"direction": "up"}, UsageError, "direction must be one of"),
        ({"how": "right"}, UsageError, "not 'right'"),
        ({"partitions": 2}, UsageError, "partitions=2 needs an equal column in on"),
    ],
)
def test_what_will_not_do_is_named_before_anything_runs(frames, given, error, said):
    with pytest.raises(error, match=said):
        asof_join(*frames, **{"time": "t", **given})


def test_a_row_without_a_place_in_time_is_shown(spark, frames):
    left = spark.createDataFrame([(1, "a", 0.0, 1), (None, "b", 0.0, 2)], SCHEMA)
    with pytest.raises(OrderError, match="left.t.*null in the row with t=null, k='b'"):
        act(asof_join(left, frames[1], time="t"))


def test_a_false_claim_of_order_is_found_out(frames):
    with pytest.raises(OrderError, match=r"Time goes backwards in column '\w+\.t'"):
        act(asof_join(*frames, time="t", on="k", sorted=True))

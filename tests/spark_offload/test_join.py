# SPDX-License-Identifier: Apache-2.0
"""The join of two frames is what the plain Python join says, for every kind of query."""

from datetime import date, datetime, timedelta
import random

import pytest

from spark_offload import explain, metrics, plan_join, stream_join, verify
from tests.halves import half
from tests.spark_offload.oracle import join_rows

SCHEMA = "t bigint, k int, x int"


def random_rows(seed, count, *, keys=5, values=50, span=60):
    rng = random.Random(seed)
    return [
        {"t": rng.randrange(span), "k": rng.randrange(keys), "x": rng.randrange(values)}
        for _ in range(count)
    ]


def frames(spark, left, right, schema=SCHEMA):
    return (
        spark.createDataFrame([tuple(row.values()) for row in left], schema),
        spark.createDataFrame([tuple(row.values()) for row in right], schema),
    )


def collected(frame):
    return [tuple(row) for row in frame.collect()]


LEFT, RIGHT = random_rows(1, 90), random_rows(2, 80)


def test_band_within_a_time_window(spark):
    left, right = frames(spark, LEFT, RIGHT)
    joined = stream_join(left, right, band={"x": (-2, 3)}, time="t", within=10, device="software:")
    assert joined.columns == ["t", "k", "x", "t_right", "k_right", "x_right"]
    assert collected(joined) == join_rows(
        LEFT, RIGHT, lambda l, r: -2 <= l["x"] - r["x"] <= 3, time="t", within=10
    )


def test_equality_is_partitioned_and_loses_nothing(spark):
    left, right = frames(spark, LEFT, RIGHT)
    joined = stream_join(left, right, on="k", time="t", within=15, device="software:", partitions=3)
    assert explain(joined).partitions == 3
    expected = join_rows(LEFT, RIGHT, lambda l, r: l["k"] == r["k"], time="t", within=15)
    assert sorted(collected(joined)) == sorted(expected)
    parts = joined.rdd.glom().map(lambda rows: [tuple(row) for row in rows]).collect()
    for part in parts:
        keys = {row[1] for row in part}
        assert part == [row for row in expected if row[1] in keys]


def test_count_window_counts_all_rows_whatever_their_keys(spark):
    left, right = frames(spark, LEFT, RIGHT)
    joined = stream_join(left, right, on=["k"], time="t", rows=7, device="software:")
    assert explain(joined).partitions == 1
    assert collected(joined) == join_rows(
        LEFT, RIGHT, lambda l, r: l["k"] == r["k"], time="t", rows=7
    )


def test_several_terms_and_different_names(spark):
    left, right = frames(spark, LEFT, RIGHT)
    joined = stream_join(
        left,
        right.toDF("time", "key", "value"),
        on=[("k", "key")],
        band=[("x", "value", None, 0)],
        time=("t", "time"),
        within=20,
        device="software:",
        partitions=1,
    )
    assert joined.columns == ["t", "k", "x", "time", "key", "value"]
    assert collected(joined) == join_rows(
        LEFT, RIGHT, lambda l, r: l["k"] == r["k"] and l["x"] <= r["x"], time="t", within=20
    )


def test_ties_arrive_left_first_and_then_in_input_order(spark):
    left = [{"t": 5, "k": 0, "x": number} for number in range(6)]
    right = [{"t": 5, "k": 0, "x": 10 + number} for number in range(6)]
    joined = stream_join(*frames(spark, left, right), time="t", rows=2, device="software:")
    rows = collected(joined)
    assert rows == join_rows(left, right, lambda l, r: True, time="t", rows=2)
    assert {row[2] for row in rows} == {4, 5}


@pytest.mark.parametrize(
    "window", [{"within": 10}, pytest.param({"rows": 4}, marks=pytest.mark.long)]
)
def test_nulls_match_nothing(spark, window):
    left = [{"t": 1, "k": None, "x": 1}, {"t": 2, "k": 1, "x": None}, {"t": 3, "k": 1, "x": 1}]
    right = [{"t": 4, "k": None, "x": 1}, {"t": 5, "k": 1, "x": 1}, {"t": 6, "k": 1, "x": None}]
    joined = stream_join(
        *frames(spark, left, right),
        on="k",
        band={"x": (-5, 5)},
        time="t",
        device="software:",
        **window,
    )
    assert collected(joined) == [(3, 1, 1, 5, 1, 1)]


def test_a_row_that_matches_nothing_still_counts_in_a_count_window(spark):
    left = [{"t": 1, "k": 1, "x": 1}, {"t": 2, "k": None, "x": 1}]
    right = [{"t": 3, "k": 1, "x": 1}]
    joined = stream_join(*frames(spark, left, right), on="k", time="t", rows=1, device="software:")
    assert collected(joined) == []


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("left", "right", "on"), half([([], RIGHT), (LEFT, []), ([], [])], [None, "k"])
)
def test_an_empty_side_gives_an_empty_answer(spark, left, right, on):
    joined = stream_join(*frames(spark, left, right), on=on, time="t", rows=5, device="software:")
    assert collected(joined) == []


DAY = date(2001, 1, 1)
NOON = datetime(2001, 1, 1, 12)


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("tinyint", [-128, 0, 127]),
        ("smallint", [-(2**15), 0, 2**15 - 1]),
        ("int", [-(2**31), 0, 2**31 - 1]),
        ("bigint", [2**62, 2**62 + 1, 2**62 + 2]),
        ("boolean", [False, True, True]),
        ("string", ["", "Zürich", "zürich"]),
        ("date", [DAY, DAY + timedelta(1), DAY + timedelta(400)]),
        ("timestamp_ntz", [NOON, NOON + timedelta(microseconds=1), NOON + timedelta(1)]),
    ],
)
def test_equality_of_every_type(spark, kind, values):
    schema = f"t int, v {kind}"
    left = spark.createDataFrame([(number, value) for number, value in enumerate(values)], schema)
    joined = stream_join(left, left, on="v", time="t", within=100, device="software:")
    expected = sorted(
        (i, a, j, b) for i, a in enumerate(values) for j, b in enumerate(values) if a == b
    )
    assert sorted(collected(joined)) == expected
    assert joined.schema["v_right"].dataType == left.schema["v"].dataType


@pytest.mark.few(2)
@pytest.mark.parametrize("kind", ["date", "timestamp", "timestamp_ntz"])
def test_time_as_order_and_as_band(spark, kind):
    days = [DAY + timedelta(number) for number in range(12)]
    left = spark.createDataFrame([(day,) for day in days], "t date").selectExpr(
        f"cast(t as {kind}) as t"
    )
    joined = stream_join(
        left,
        left,
        band={"t": ("-3d", timedelta(days=-1))},
        time="t",
        within=timedelta(days=3),
        device="software:",
    )
    rows = joined.selectExpr("datediff(t_right, t) as days").collect()
    assert sorted(row.days for row in rows) == sorted([1] * 11 + [2] * 10 + [3] * 9)


def test_session_time_zone_does_not_matter(spark):
    # Clocks go forward in New York on this morning: local times jump, instants do not.
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        left = spark.sql(
            "select timestamp'2001-04-01 00:30:00' + make_interval(0, 0, 0, 0, id) as t "
            "from range(4)"
        )
        joined = stream_join(left, left, time="t", within="1h", device="software:")
        assert joined.schema["t_right"].dataType == left.schema["t"].dataType
        assert joined.where("t > t_right").count() == 3
        assert joined.where("t = t_right").select("t").collect() == left.collect()
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


def test_columns_of_any_type_are_carried(spark):
    left = spark.sql(
        "select 1 as t, cast(1.5 as decimal(9,3)) as d, array(1, null) as a, "
        "named_struct('x', 1, 'y', 'z') as s, map('k', 1.0D) as m, X'00FF' as b, "
        "cast(null as string) as n"
    )
    joined = stream_join(left, left, time="t", within=0, device="software:")
    row = tuple(joined.first())
    assert row == tuple(left.first()) * 2


def test_schema_is_the_declared_one(spark):
    left = spark.createDataFrame([(1, 2)], "t int not null, `a.b c` smallint")
    joined = stream_join(left, left, time="t", within=0, device="software:", suffix="#2")
    assert joined.schema.simpleString() == "struct<t:int,a.b c:smallint,t#2:int,a.b c#2:smallint>"
    assert not joined.schema["t#2"].nullable
    assert collected(joined) == [(1, 2, 1, 2)]


def test_names_clash_without_regard_to_case(spark):
    left = spark.createDataFrame([(1, 2)], "t int, X int")
    right = spark.createDataFrame([(1, 2)], "T int, x int")
    joined = stream_join(left, right, time=("t", "T"), within=0, device="software:")
    assert joined.columns == ["t", "X", "T_right", "x_right"]
    assert joined.selectExpr("x_right").first()[0] == 2


def test_a_frame_joined_with_itself(spark):
    left, _ = frames(spark, LEFT[:20], [])
    joined = stream_join(left, left, time="t", within=0, device="software:")
    assert collected(joined) == join_rows(
        LEFT[:20], LEFT[:20], lambda l, r: True, time="t", within=0
    )


def test_a_limit_stops_early_and_the_frame_can_be_used_again(spark):
    left, right = frames(spark, LEFT, RIGHT)
    joined = stream_join(left, right, time="t", within=30, device="software:")
    expected = join_rows(LEFT, RIGHT, lambda l, r: True, time="t", within=30)
    assert collected(joined.limit(3)) == expected[:3]
    assert joined.count() == len(expected)


def test_tasks_report_what_they_did(spark):
    left, right = frames(spark, LEFT, RIGHT)
    joined = stream_join(left, right, on="k", time="t", within=10, device="software:", partitions=2)
    count = joined.count()
    measured = metrics(joined)
    assert len(measured.tasks) == 2
    assert measured.total("results") == count
    assert measured.total("left_rows") == len(LEFT)
    joined.count()
    assert metrics(joined).total("results") == count, "a second run replaces the first"
    assert "partition" in str(measured)
    # Tasks have the software engine, not a model of a device, which would tell of stars and marks.
    counters = measured.counters()
    assert counters["stars"] == counters["marks"] == 0


def test_the_plan_of_spark_shows_the_join(spark, capsys):
    left, right = frames(spark, LEFT, RIGHT)
    plan = plan_join(left, right, time="t", within=10, device="software:")
    plan.dataframe().explain()
    assert "MapInArrow splitjoin(all rows, within" in capsys.readouterr().out
    explanation = plan.explain()
    text = capsys.readouterr().out
    assert explanation.partitions == 2
    assert "no column must be equal" in text
    assert "software:" in text


@pytest.mark.parametrize("partitions", [5, pytest.param(1, marks=pytest.mark.long)])
def test_floating_point_keys_meet_as_spark_compares_them(spark, partitions):
    nan = float("nan")
    left = spark.createDataFrame([(1, 0.0), (2, nan), (3, 1.5), (4, None)], "t int, x double")
    right = spark.createDataFrame([(1, -0.0), (2, nan), (3, 1.5), (4, None)], "t int, x float")
    joined = stream_join(
        left, right, on="x", time="t", within=9, device="software:", partitions=partitions
    )
    assert sorted(row.t for row in joined.collect()) == [1, 2, 3]
    assert left.alias("l").join(right.alias("r"), "x").count() == 3


@pytest.mark.parametrize("partitions", [4, pytest.param(1, marks=pytest.mark.long)])
def test_decimal_keys_of_different_scales_meet(spark, partitions):
    from decimal import Decimal

    left = spark.createDataFrame(
        [(1, Decimal("1.10")), (2, Decimal("2.00"))], "t int, x decimal(9,2)"
    )
    right = spark.createDataFrame([(1, Decimal("1.1000")), (2, Decimal("2.0001"))],
                                  "t int, x decimal(12,4)")  # fmt: skip
    equal = stream_join(
        left, right, on="x", time="t", within=9, device="software:", partitions=partitions
    )
    assert [row.t for row in equal.collect()] == [1]
    near = stream_join(left, right, band={"x": (-1, 0)}, time="t", within=9, device="software:")
    assert sorted((row.t, row.t_right) for row in near.collect()) == [(1, 1), (1, 2), (2, 2)]


@pytest.mark.parametrize("count", [0, 40])
def test_a_band_on_times_works_with_a_field_that_is_too_narrow_for_them(
    spark, simulated_bundle, count
):
    """The timestamps' 32 bits hold 71 minutes in microseconds, the field's 16 bits 65 ms."""
    rng = random.Random(3)
    start = datetime(2024, 5, 1)
    times = [start + timedelta(seconds=rng.randrange(4_000)) for _ in range(count)]
    left = spark.createDataFrame([(time, 1) for time in times], "t timestamp, k int")
    right = spark.createDataFrame(
        [(time + timedelta(seconds=60), 1) for time in times], "t timestamp, k int"
    )
    joined = stream_join(
        left, right, on="k", band=[("t", "t", "-10min", "-1min")], time="t", within="10min",
        device=simulated_bundle,
    )  # fmt: skip
    rows = [{"t": time} for time in times], [{"t": time + timedelta(seconds=60)} for time in times]
    expected = [
        (l["t"], r["t"])
        for l in rows[0]
        for r in rows[1]
        if timedelta(minutes=1) <= r["t"] - l["t"] <= timedelta(minutes=10)
    ]
    assert sorted((row.t, row.t_right) for row in joined.collect()) == sorted(expected)


@pytest.mark.long
def test_floating_point_bands_are_what_spark_finds(spark):
    nan, inf = float("nan"), float("inf")
    values = [0.1, 0.3, -0.0, nan, inf, -inf, 1e300, 0.30000000000000004, None, 2.5]
    left = spark.createDataFrame(list(enumerate(values)), "t bigint, x double")
    right = spark.createDataFrame(list(enumerate(reversed(values))), "t bigint, x float")
    for bounds in ((-0.2, 0.2), (0.5, None), (None, -0.25)):
        joined = stream_join(
            left, right, band={"x": bounds}, time="t", within=20, device="software:"
        )
        found = verify(joined)
        assert found.agrees
        assert found.rows > 3

# SPDX-License-Identifier: Apache-2.0
"""Conditions of Spark are read as the terms that say the same."""

from datetime import date, datetime, timedelta
from fractions import Fraction
from pathlib import Path
import re

from pyspark.sql import functions as F
import pytest

from host import UsageError
from spark_offload import plan_join
from spark_offload.plan.conditions import terms_of

SCHEMA = "s string, n int, b bigint, x double, d date, at timestamp, m decimal(6,2)"


@pytest.fixture(scope="module")
def frames(spark):
    """Two frames of the same columns, with a few rows each."""
    sides = []
    for shift in (0, 3):
        rows = spark.range(12).selectExpr(
            "cast(id % 2 as string) as s",
            f"cast(id + {shift} as int) as n",
            "id * id as b",
            "id / 2D as x",
            f"date_add(date'2026-11-02', cast(id + {shift} as int)) as d",
            f"timestamp_seconds(1e9 + 2 * id + {shift}) as at",
            "cast(id as decimal(6,2)) as m",
        )
        sides.append(rows)
    return sides


def seconds():
    return F.expr("INTERVAL 5 SECONDS")


CONDITIONS = [
    (lambda l, r: l.s == r.s, ["left.s = right.s"]),
    (lambda l, r: (r.s == l.s) & (l.n == r.b), ["left.s = right.s", "left.n = right.b"]),
    (lambda l, r: (l.n - r.n).between(-2, 3), ["-2 <= left.n - right.n <= 3"]),
    (lambda l, r: r.b - l.n >= 4, ["left.n - right.b <= -4"]),
    (lambda l, r: l.n < r.n + 2, ["left.n - right.n <= 1"]),
    (lambda l, r: F.abs(l.x - r.x) <= 1.5, ["-3/2 <= left.x - right.x <= 3/2"]),
    (lambda l, r: F.lit(3) > F.abs(r.n - l.n), ["-2 <= left.n - right.n <= 2"]),
    (lambda l, r: (l.m <= r.m) & (l.m >= r.m - 1), ["-1 <= left.m - right.m <= 0"]),
    (lambda l, r: l.at.between(r.at - seconds(), r.at), ["-5s <= left.at - right.at <= 0"]),
    (lambda l, r: (l.at - r.at) < seconds(), ["left.at - right.at <= 4999999us"]),
    (lambda l, r: l.at > r.at, ["1us <= left.at - right.at"]),
    (lambda l, r: F.date_add(r.d, 2) >= l.d, ["left.d - right.d <= 2d"]),
    (
        lambda l, r: (l.n >= r.n) & (l.n >= r.n + 1) & (l.n <= r.n + 9),
        ["1 <= left.n - right.n <= 9"],
    ),
]


def test_conditions_are_read_as_terms(frames):
    for condition, expected in CONDITIONS:
        assert list(map(str, terms_of(*frames, condition(*frames), "on"))) == expected


def holds(term, left, right):
    """Evaluate a term on two rows in plain Python."""
    difference = number(left[term.left]) - number(right[term.right])
    low, high = (getattr(bound, "nanoseconds", bound) for bound in (term.low, term.high))
    return (low is None or low <= difference) and (high is None or difference <= high)


def number(value):
    """Return a value as a number whose differences the bounds are about."""
    if isinstance(value, datetime):
        return (value - datetime(1970, 1, 1)) // timedelta(microseconds=1) * 1_000
    if isinstance(value, date):
        return value.toordinal() * 86_400_000_000_000
    return Fraction(value)


def test_the_terms_hold_where_the_condition_does(frames):
    left, right = frames
    rows = left.crossJoin(right).select(
        F.struct(*(left[name] for name in left.columns)).alias("left"),
        F.struct(*(right[name] for name in right.columns)).alias("right"),
        *(condition(*frames).alias(f"c{at}") for at, (condition, _) in enumerate(CONDITIONS)),
    )
    terms = [terms_of(*frames, condition(*frames), "on") for condition, _ in CONDITIONS]
    seen = [set() for _ in CONDITIONS]
    for row in rows.collect():
        for at, found in enumerate(terms):
            assert row[f"c{at}"] == all(holds(term, row["left"], row["right"]) for term in found)
            seen[at].add(row[f"c{at}"])
    assert seen == [{True, False}] * len(CONDITIONS)


def test_aliases_mean_what_they_mean_in_spark(frames):
    left = frames[0]
    query = plan_join(
        left.alias("l"),
        left.alias("r"),
        on=[F.col("l.s") == F.col("r.s"), "b"],
        band=F.col("l.n") <= F.col("r.n"),
        time="at",
        within=("INTERVAL -5 SECONDS", "0s"),
        device="software:",
    ).query
    assert sorted(map(str, query.terms)) == [
        "-5s <= left.at - right.at <= 0s",
        "left.b = right.b",
        "left.n - right.n <= 0",
        "left.s = right.s",
    ]


@pytest.mark.parametrize(
    ("condition", "said"),
    [
        (lambda l, r: (l.n == r.n) | (l.b == r.b), r"Part '.*OR.*' of the condition is no comp"),
        (lambda l, r: l.n.eqNullSafe(r.n), "is no comparison"),
        (lambda l, r: l.n > 5, "does not compare one left column with one right column"),
        (lambda l, r: l.n - r.n < l.b, "does not compare one left column"),
        (lambda l, r: l.n + r.n < 5, "compares no difference of 'n' and 'n'"),
        (lambda l, r: l.n * 2 <= r.n, "'.* \\* 2.*' of the condition is no sum"),
        (lambda l, r: l.x < r.x, "excludes its bound.*no next number to double; write <= or >="),
        (lambda l, r: l.s.cast("int") == r.n, "is no sum of columns"),
        (lambda l, r: l.d >= F.lit("2026-11-02").cast("date"), "Constant .* of type date"),
        (lambda l, r: F.col("n") == r.n, "Spark cannot resolve the condition in on: .*ambiguous"),
        (lambda l, r: l.n == F.col("q"), "Spark cannot resolve the condition in on"),
    ],
)
def test_what_is_no_term_is_named(frames, condition, said):
    with pytest.raises(UsageError, match=said):
        terms_of(*frames, condition(*frames), "on")


def test_the_examples_of_the_page_run(spark):
    page = Path(__file__).resolve().parents[3] / "docs" / "spark-calling.md"
    for block in re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL):
        exec(compile(block, str(page), "exec"), {})

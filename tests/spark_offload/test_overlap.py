# SPDX-License-Identifier: Apache-2.0
"""Overlap joins of frames give the pairs that the reference names."""

from datetime import datetime, timedelta
from pathlib import Path
import random
import re

from pyspark.errors import StreamingQueryException
import pytest

from host import FailureError, UsageError
from host.errors import OrderError, UnsupportedTypeError
from host.reference.asof import reference_overlap
from spark_offload import explain, overlap_join, task_error, verify
from tests.spark_offload.actions import act
from tests.spark_offload.stream_folders import row

START = datetime(2026, 11, 2)


def random_rows(seed, count):
    """Rows of a start, an end that may be null, a key and a number."""
    rng = random.Random(seed)
    rows = []
    for number in range(count):
        start = rng.randrange(60)
        end = rng.choice([start + rng.randrange(9), start + rng.randrange(9), None])
        rows.append((start, end, rng.choice("ab"), number))
    return rows


LEFT, RIGHT = random_rows(3, 50), random_rows(4, 40)
SIDES = {"left_interval": ("start", "end"), "device": "software:", "partitions": 1}


def frames(spark, *, temporal=False):
    def value(number):
        if not temporal or number is None:
            return number
        return START + timedelta(seconds=number)

    kind = "timestamp" if temporal else "int"
    schema = f"start {kind}, end {kind}, k string, n int"
    return [
        spark.createDataFrame([(value(a), value(b), k, n) for a, b, k, n in rows], schema)
        for rows in (LEFT, RIGHT)
    ]


def numbers(frame):
    return [(row["n"], row["n_right"]) for row in frame.collect()]


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("temporal", "touching", "longest"), [(True, False, "8 seconds"), (False, True, None)]
)
def test_pairs_are_those_of_the_reference(spark, temporal, touching, longest):
    joined = overlap_join(
        *frames(spark, temporal=temporal), on="k", touching=touching, longest=longest, **SIDES
    )
    expected = reference_overlap(
        [row[:3] for row in LEFT], [row[:3] for row in RIGHT], touching=touching
    )
    assert numbers(joined) == expected
    assert f"<= {'8s' if temporal else 8}" in explain(joined).window
    assert verify(joined).agrees


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("row", "error", "said"),
    [
        ((5, 4, "a", 0), UsageError, "interval of the right input has start=5 and end=4; it must"),
        ((0, 30, "a", 0), UsageError, "start=0 and end=30; .* nor be longer than 8"),
        ((None, 3, "a", 0), OrderError, "right.start.*null"),
    ],
)
def test_an_interval_that_breaks_the_rules_fails_the_action(spark, tmp_path, row, error, said):
    left, _ = frames(spark)
    right = spark.createDataFrame([row], left.schema)
    joined = overlap_join(left, right, longest=8, **SIDES)
    with pytest.raises(error, match=said):
        act(joined)
    # Where tasks read files, they look at the intervals.
    for side, rows in (("left", left), ("right", right)):
        rows.coalesce(1).write.parquet(str(tmp_path / side))
    stored = [spark.read.parquet(str(tmp_path / side)) for side in ("left", "right")]
    with pytest.raises(error, match=said):
        act(overlap_join(*stored, longest=8, **SIDES))


@pytest.mark.parametrize(
    ("given", "error", "said"),
    [
        ({"left_interval": ("start", "stop")}, UsageError, "no column 'stop'"),
        ({"within": 5}, UsageError, "An overlap join has no within"),
        ({"longest": "5s"}, UsageError, "5s is a duration, but column"),
        ({"longest": 1.5}, UsageError, "longest must be a duration or a whole number.*not 1.5"),
        ({"left_interval": "start"}, None, ""),
    ],
)
def test_what_will_not_do_is_named_before_anything_runs(spark, given, error, said):
    left, right = frames(spark)
    arguments = {**SIDES, "longest": 5, **given}
    if error is None:  # one column for both: points in time
        assert overlap_join(left, right, **arguments).columns[:2] == ["start", "end"]
        return
    with pytest.raises(error, match=said):
        overlap_join(left, right, **arguments)


@pytest.mark.few(4)
@pytest.mark.parametrize("longest", [None, 5])
@pytest.mark.parametrize(
    ("kind", "said"),
    [("double", "double"), ("float", "float"), ("decimal(9,2)", "decimal"), ("string", "string")],
)
def test_columns_that_give_no_order_of_arrival_are_named(spark, kind, said, longest):
    values = "(0.1, 0.3), (0.5, double('nan'))" if kind in ("double", "float") else "(1, 2)"
    rows = spark.sql(
        f"select cast(s as {kind}) s, cast(e as {kind}) e from values {values} t(s, e)"
    )
    stream = spark.readStream.format("rate").load().withWatermark("timestamp", "1 second")
    stream = stream.selectExpr(f"cast(value as {kind}) s", f"cast(value as {kind}) e", "timestamp")
    for frame in (rows, stream) if longest else (rows,):
        with pytest.raises(UnsupportedTypeError, match=f"'left.s' has type {said}"):
            overlap_join(
                frame, frame, left_interval=("s", "e"), device="software:", longest=longest
            )


def test_streams_need_the_longest_interval_to_be_named(spark):
    rows = spark.readStream.format("rate").load().withWatermark("timestamp", "1 second")
    rows = rows.selectExpr("timestamp as start", "timestamp + INTERVAL 5 SECONDS as end", "value")
    given = {"left_interval": ("start", "end"), "device": "software:"}
    with pytest.raises(UsageError, match="An overlap join of streams needs longest"):
        overlap_join(rows, rows, **given)
    said = explain(overlap_join(rows, rows, longest="5s", **given))
    assert said.offloaded
    assert "<= 5s" in said.window


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("number", "kind", "said"),
    [
        (0, FailureError, "DIVIDE_BY_ZERO"),
        (-3, UsageError, "An interval of the left input has t=2020-01-01 .* and e=2019-12-29 "),
    ],
)
def test_what_stops_a_stream_is_what_is_told(folders, number, kind, said):
    """Spark prints the plan of a query beside any error, with the texts of all errors in it."""
    folders.drop([row(1, x=number)], [row(1, x=1)])
    sides = (
        folders.stream(side).selectExpr("t", "t + x * interval 1 day as e", "10 div x as y")
        for side in ("left", "right")
    )
    joined = overlap_join(*sides, left_interval=("t", "e"), longest="5 days", device="software:")
    with pytest.raises(StreamingQueryException) as caught:
        folders.run(joined)
    error = task_error(caught.value)
    assert type(error) is kind
    assert re.search(said, str(error))


def test_the_example_of_the_page_runs(spark):
    page = Path(__file__).resolve().parents[2] / "docs" / "overlap.md"
    block = re.search(r"```python\n(.*?)```", page.read_text(), re.DOTALL)[1]
    exec(compile(block, str(page), "exec"), {})

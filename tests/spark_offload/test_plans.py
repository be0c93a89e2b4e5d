# SPDX-License-Identifier: Apache-2.0
"""A session that joins all day: plans, and all that the driver keeps for them, are freed."""

import gc
from pathlib import Path
import re
import tracemalloc
from weakref import ref

import pytest

from host import UsageError
from spark_offload import (
    Plan,
    asof_join,
    explain,
    metrics,
    plan_aggregate,
    plan_asof_join,
    plan_join,
    plan_join_aggregate,
    stream_join,
    verify,
)
from spark_offload.plan.plan import plan_of

PER_JOIN = 5_000
"""Bytes that the driver may keep of a join that is over: 50 MB of 10,000 joins."""


def joined(spark, **arguments):
    rows = spark.range(20).withColumnRenamed("id", "t")
    arguments = {"time": "t", "within": 2, "device": "software:", "partitions": 1, **arguments}
    return stream_join(rows, rows, **arguments)


def test_a_plan_lives_as_long_as_its_frame(spark):
    frame = joined(spark)
    plan = ref(plan_of(frame))
    other = frame
    assert plan_of(other) is plan()
    assert len(frame.collect()) == metrics(other).total("results") > 0
    del frame
    gc.collect()
    assert plan_of(other) is plan()
    with pytest.raises(UsageError, match="stream_join or asof_join returned"):
        plan_of(other.where("t > 1"))
    del other
    gc.collect()
    assert plan() is None


def test_a_frame_derived_from_a_join_runs_when_its_plan_is_gone(spark):
    frame = joined(spark)
    plan, derived = ref(plan_of(frame)), frame.where("t = 3")
    del frame
    gc.collect()
    assert plan() is None
    assert derived.count() == 5
    again = joined(spark)
    again.collect()
    assert metrics(again).total("left_rows") == 20, "reports go to their own join"


@pytest.mark.parametrize("ask", [explain, metrics, verify])
def test_a_frame_that_no_function_returned_is_an_error_that_says_which_one_to_give(spark, ask):
    other = spark.range(3)
    for frame in (
        joined(spark).where("t < 9"),
        other,
        asof_join(other, other, time="id").limit(1),
        7,
    ):
        with pytest.raises(UsageError, match="give that one, and none derived from it"):
            ask(frame)


def test_every_query_has_one_kind_of_plan(spark):
    rows = spark.range(20).withColumnRenamed("id", "t")
    join = {"time": "t", "within": 2, "device": "software:"}
    for plan in (
        plan_join(rows, rows, **join),
        plan_asof_join(rows, rows, time="t"),
        plan_aggregate(rows, time="t", window=5, aggregates={"n": "count"}),
        plan_join_aggregate(rows, rows, aggregates={"n": "count"}, **join),
    ):
        assert type(plan) is Plan
        frame = plan.dataframe()
        assert plan_of(frame) is plan
        assert frame.count() == plan.verify().rows > 0
        assert plan.metrics().tasks
        assert plan.explain() == explain(frame)


def test_frames_are_transformed(spark):
    rows = spark.range(20).withColumnRenamed("id", "t")
    joined = rows.transform(stream_join, rows, time="t", within=0, device="software:")
    assert (joined.count(), metrics(joined).total("results")) == (20, 20)
    earlier = {"time": "t", "allow_exact_matches": False, "how": "inner"}
    assert rows.transform(asof_join, rows, **earlier).count() == 19


@pytest.mark.long
@pytest.mark.parametrize("count", [60, pytest.param(3000, marks=pytest.mark.long)])
def test_the_driver_keeps_next_to_nothing_of_joins_that_are_over(spark, count):
    def run(times):
        plans = []
        for number in range(times):
            frame = joined(spark)
            if number % 20 == 0:
                frame.collect()
            plans.append(ref(plan_of(frame)))
        del frame
        gc.collect()
        assert not any(plan() for plan in plans)
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        held = [run(20)]
        # Threads of other tests may have come by some memory meanwhile, but not every time.
        while len(held) < 4 and (len(held) < 2 or held[-1] - held[-2] >= PER_JOIN * count):
            held.append(run(count))
    finally:
        tracemalloc.stop()
    assert held[-1] - held[-2] < PER_JOIN * count


def test_the_examples_of_the_page_run(spark):
    page = Path(__file__).resolve().parents[2] / "docs" / "spark-calling.md"
    for block in re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL):
        exec(compile(block, str(page), "exec"), {})

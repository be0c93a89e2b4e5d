# SPDX-License-Identifier: Apache-2.0
"""A session that joins all day: plans, and all that the driver keeps for them, are freed."""

import gc
import tracemalloc
from weakref import ref

import pytest

from host import UsageError
from spark_offload import metrics, stream_join
from spark_offload.planning.plan import plan_of

PER_JOIN = 5_000
"""Bytes that the driver may keep of a join that is over: 50 MB of 10,000 joins."""


def joined(spark, **arguments):
    rows = spark.range(20).withColumnRenamed("id", "t")
    arguments = {"order": "t", "within": 2, "device": "software:", "partitions": 1, **arguments}
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
    with pytest.raises(UsageError, match="stream_join returned"):
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
        before = run(20)
        grown = run(count) - before
    finally:
        tracemalloc.stop()
    assert grown < PER_JOIN * count

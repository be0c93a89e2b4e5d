# SPDX-License-Identifier: Apache-2.0
"""`stream_join` is as lazy as Spark's own join: no job runs before an action."""

from contextlib import contextmanager
from uuid import uuid4

import pytest

from spark_offload import explain, metrics, stream_join
from tests.spark_offload.oracle import join_rows

WIDE = "id AS t", "id * 1000000007 AS x"
"""Columns of 64 bits, wider than the key fields of the accelerator."""


@contextmanager
def jobs_of(spark):
    """Yield a function that returns the numbers of the jobs that began inside."""
    context, group = spark.sparkContext, f"jobs-{uuid4()}"
    context.setJobGroup(group, "what a test runs")
    try:
        yield lambda: context.statusTracker().getJobIdsForGroup(group)
    finally:
        context._jsc.clearJobGroup()


@pytest.mark.few(1)
@pytest.mark.parametrize("window", [{"within": 9}, {"rows": 4}])
def test_a_band_over_wide_columns_reads_nothing(spark, simulated_bundle, window):
    left, right = (spark.range(40).selectExpr(*WIDE) for _ in range(2))
    band = {"x": (-3_000_000_021, 1_000_000_007)}
    with jobs_of(spark) as jobs:
        joined = stream_join(left, right, band=band, time="t", device=simulated_bundle, **window)
        assert list(jobs()) == []
        found = [tuple(row) for row in joined.collect()]
        assert jobs(), "an action runs jobs, or this test sees none"
    rows = [{"t": t, "x": t * 1_000_000_007} for t in range(40)]

    def near(left, right):
        return band["x"][0] <= left["x"] - right["x"] <= band["x"][1]

    assert found == join_rows(rows, rows, near, time="t", **window)


@pytest.mark.parametrize("how", ["inner", "full"])
def test_ranges_of_time_are_cut_when_an_action_runs(spark, software_bundle, how):
    left, right = (spark.range(60).selectExpr("id AS t", "id % 5 AS x") for _ in range(2))
    query = {"band": {"x": (0, 1)}, "time": "t", "within": 7, "how": how, "sorted": True}
    with jobs_of(spark) as jobs:
        joined = stream_join(left, right, device=software_bundle, partitions=3, **query)
        assert "cut when an action runs" in explain(joined).partitioning
        assert list(jobs()) == []
        found = joined.collect()
    whole = stream_join(left, right, device=software_bundle, partitions=1, **query)
    assert found == whole.collect()
    assert [task.left_rows for task in metrics(joined).tasks if task.left_rows] == [20, 20, 20]

# SPDX-License-Identifier: Apache-2.0
"""Sliding-window stream joins of Spark DataFrames on an accelerator, and aggregates."""

from host import JoinError  # before PySpark, so that host.cli is in place meanwhile
from spark_offload.api import (
    asof_join,
    join_aggregate,
    join_many,
    operate,
    overlap_join,
    plan_aggregate,
    plan_asof_join,
    plan_join,
    plan_join_aggregate,
    plan_operate,
    stream_aggregate,
    stream_join,
)
from spark_offload.cluster.session import open_session
from spark_offload.errors import task_error
from spark_offload.explanation import Explanation, TermExplanation
from spark_offload.measures import (
    AggregateMicroBatch,
    JoinMetrics,
    MicroBatch,
    TaskMetrics,
    read_progress,
    stream_aggregate_metrics,
    stream_metrics,
)
from spark_offload.plan.plan import Options, Plan, explain, metrics, verify
from spark_offload.verification.comparison import Verification

__all__ = [
    "AggregateMicroBatch",
    "Explanation",
    "JoinError",
    "JoinMetrics",
    "MicroBatch",
    "Options",
    "Plan",
    "TaskMetrics",
    "TermExplanation",
    "Verification",
    "asof_join",
    "explain",
    "join_aggregate",
    "join_many",
    "metrics",
    "open_session",
    "operate",
    "overlap_join",
    "plan_aggregate",
    "plan_asof_join",
    "plan_join",
    "plan_join_aggregate",
    "plan_operate",
    "read_progress",
    "stream_aggregate",
    "stream_aggregate_metrics",
    "stream_join",
    "stream_metrics",
    "task_error",
    "verify",
]

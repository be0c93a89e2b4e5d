# SPDX-License-Identifier: Apache-2.0
"""Sliding-window stream joins of Spark DataFrames on an accelerator, and aggregates."""

from host import JoinError  # before PySpark, so that host.startup is in place meanwhile
from spark_offload.aggregate import plan_aggregate, stream_aggregate
from spark_offload.asof import asof_join, plan_asof_join
from spark_offload.failures.translation import task_error
from spark_offload.join import plan_join, stream_join
from spark_offload.join_aggregate import join_aggregate, plan_join_aggregate
from spark_offload.measures.metrics import JoinMetrics, TaskMetrics
from spark_offload.overlap import overlap_join
from spark_offload.planning.explanation import Explanation, TermExplanation
from spark_offload.planning.plan import JoinPlan, explain, metrics
from spark_offload.planning.verification import Verification, verify
from spark_offload.streaming import (
    AggregateMicroBatch,
    MicroBatch,
    StreamExplanation,
    StreamJoinPlan,
    read_progress,
    stream_aggregate_metrics,
    stream_metrics,
)

__all__ = [
    "AggregateMicroBatch",
    "Explanation",
    "JoinError",
    "JoinMetrics",
    "JoinPlan",
    "MicroBatch",
    "StreamExplanation",
    "StreamJoinPlan",
    "TaskMetrics",
    "TermExplanation",
    "Verification",
    "asof_join",
    "explain",
    "join_aggregate",
    "metrics",
    "overlap_join",
    "plan_aggregate",
    "plan_asof_join",
    "plan_join",
    "plan_join_aggregate",
    "read_progress",
    "stream_aggregate",
    "stream_aggregate_metrics",
    "stream_join",
    "stream_metrics",
    "task_error",
    "verify",
]

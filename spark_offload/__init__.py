# SPDX-License-Identifier: Apache-2.0
"""Sliding-window stream joins of Spark DataFrames on an accelerator."""

from host import JoinError  # before PySpark, so that host.startup is in place meanwhile
from spark_offload.explanation import Explanation, TermExplanation
from spark_offload.failures import task_error
from spark_offload.join import plan_join, stream_join
from spark_offload.metrics import JoinMetrics, TaskMetrics
from spark_offload.plan import JoinPlan, explain, metrics
from spark_offload.streaming import (
    MicroBatch,
    StreamExplanation,
    StreamJoinPlan,
    read_progress,
    stream_metrics,
)
from spark_offload.verification import Verification, verify

__all__ = [
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
    "explain",
    "metrics",
    "plan_join",
    "read_progress",
    "stream_join",
    "stream_metrics",
    "task_error",
    "verify",
]

# SPDX-License-Identifier: Apache-2.0
"""Sliding-window stream joins of Spark DataFrames on an accelerator, and aggregates."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

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
from spark_offload.measures import JoinMetrics, TaskMetrics
from spark_offload.plan.plan import Options, Plan, explain, metrics, verify
from spark_offload.verification.comparison import Verification

if TYPE_CHECKING:
    from spark_offload.stream.metrics import (
        AggregateMicroBatch,
        MicroBatch,
        read_progress,
        stream_aggregate_metrics,
        stream_metrics,
    )

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

_OF_STREAMS = "spark_offload.stream.metrics"


def __getattr__(name: str) -> Any:
    """Load what only programs with streams need when it is asked for."""
    if name in __all__:
        return getattr(import_module(_OF_STREAMS), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

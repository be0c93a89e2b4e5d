# SPDX-License-Identifier: Apache-2.0
"""The functions for DataFrames of Spark, under the name of the kit.

Examples
--------
>>> from splitjoin.spark import stream_join
>>> pairs = trades.transform(stream_join, quotes, time="time", on="symbol", within="5s")
"""

from typing import TYPE_CHECKING, Any

import spark_offload
from spark_offload import (
    Explanation,
    JoinError,
    JoinMetrics,
    Options,
    Plan,
    TaskMetrics,
    TermExplanation,
    Verification,
    asof_join,
    explain,
    join_aggregate,
    join_many,
    metrics,
    open_session,
    operate,
    overlap_join,
    plan_aggregate,
    plan_asof_join,
    plan_join,
    plan_join_aggregate,
    plan_operate,
    stream_aggregate,
    stream_join,
    task_error,
    verify,
)

if TYPE_CHECKING:
    from spark_offload import (
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


def __getattr__(name: str) -> Any:
    """Load what only programs with streams need when it is asked for."""
    if name in __all__:
        return getattr(spark_offload, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

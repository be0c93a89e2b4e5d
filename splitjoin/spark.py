# SPDX-License-Identifier: Apache-2.0
"""The functions for DataFrames of Spark, under the name of the kit.

Examples
--------
>>> from splitjoin.spark import stream_join
>>> pairs = trades.transform(stream_join, quotes, time="time", on="symbol", within="5s")
"""

from spark_offload import (
    AggregateMicroBatch,
    Explanation,
    JoinError,
    JoinMetrics,
    MicroBatch,
    Options,
    Plan,
    TaskMetrics,
    TermExplanation,
    Verification,
    asof_join,
    explain,
    join_aggregate,
    metrics,
    open_session,
    overlap_join,
    plan_aggregate,
    plan_asof_join,
    plan_join,
    plan_join_aggregate,
    read_progress,
    stream_aggregate,
    stream_aggregate_metrics,
    stream_join,
    stream_metrics,
    task_error,
    verify,
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
    "metrics",
    "open_session",
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

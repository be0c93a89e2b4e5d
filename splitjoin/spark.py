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

# SPDX-License-Identifier: Apache-2.0
"""Joins and aggregations of streams in Spark's Structured Streaming, with its state store."""

from spark_offload.streaming.aggregate_metrics import (
    AggregateMicroBatch,
    stream_aggregate_metrics,
)
from spark_offload.streaming.explanation import StreamExplanation
from spark_offload.streaming.metrics import MicroBatch, read_progress, stream_metrics
from spark_offload.streaming.plan import StreamJoinPlan, make_stream_plan

__all__ = [
    "AggregateMicroBatch",
    "MicroBatch",
    "StreamExplanation",
    "StreamJoinPlan",
    "make_stream_plan",
    "read_progress",
    "stream_aggregate_metrics",
    "stream_metrics",
]

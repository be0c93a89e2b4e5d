# SPDX-License-Identifier: Apache-2.0
"""Joins of two streams in Spark's Structured Streaming, with their windows in its state store."""

from spark_offload.streaming.explanation import StreamExplanation
from spark_offload.streaming.metrics import MicroBatch, read_progress, stream_metrics
from spark_offload.streaming.plan import StreamJoinPlan, make_stream_plan

__all__ = [
    "MicroBatch",
    "StreamExplanation",
    "StreamJoinPlan",
    "make_stream_plan",
    "read_progress",
    "stream_metrics",
]

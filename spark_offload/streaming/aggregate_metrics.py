# SPDX-License-Identifier: Apache-2.0
"""What an aggregation of a stream did in each micro-batch, read from Spark's progress."""

from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from spark_offload.streaming.metrics import observed_by_name
from spark_offload.streaming.panes import NUMBERS

__all__ = [
    "AGGREGATES",
    "RESULTS",
    "AggregateMicroBatch",
    "observed_panes",
    "observed_results",
    "stream_aggregate_metrics",
]

AGGREGATES = "splitjoin_aggregate"
"""First part of the names under which ``observedMetrics`` of a progress has the numbers."""

RESULTS = "results"
"""Last part of the name under which the number of results is found."""


@dataclass(frozen=True)
class AggregateMicroBatch:
    """What one aggregation of a stream did in one micro-batch.

    Parameters
    ----------
    batch : int
        Number of the micro-batch.
    aggregation : str
        Name of the aggregation, as its explanation tells it.
    watermark : str
        Windows that end at or before it have ended; as Spark writes it.
    trigger_seconds : float
        Time that the whole micro-batch took.
    rows : int
        Rows with a time that were read. Those among them that came too late for all their windows
        are told by Spark only, and as panes: ``numRowsDroppedByWatermark`` of the state operator.
    panes : int
        Panes that these rows became; sent to the tasks that keep the state.
    results : int
        Results of windows that ended.
    seconds : float
        Time that the tasks took to make panes.
    cycles : int
        Clock cycles that devices ran.
    device_seconds : float
        Time that devices worked.
    """

    batch: int
    aggregation: str
    watermark: str
    trigger_seconds: float
    rows: int
    panes: int
    results: int
    seconds: float
    cycles: int = 0
    device_seconds: float = 0.0


def observed_panes() -> list[Column]:
    """Return what is observed over panes."""
    sums = [F.coalesce(F.sum(name), F.lit(0)).alias(name) for name in NUMBERS]
    return [*sums, F.count(F.lit(1)).alias("panes")]


def observed_results() -> list[Column]:
    """Return what is observed over results."""
    return [F.count(F.lit(1)).alias(RESULTS)]


def stream_aggregate_metrics(query: StreamingQuery) -> tuple[AggregateMicroBatch, ...]:
    """Return what the aggregations of a streaming query did, micro-batch by micro-batch.

    Spark remembers the last ``spark.sql.streaming.numRecentProgressUpdates`` (100) of them.

    Parameters
    ----------
    query : StreamingQuery
        A query that was started; it may have ended.
    """
    return tuple(batch for progress in query.recentProgress for batch in _of_progress(progress))


def _of_progress(progress: Any) -> list[AggregateMicroBatch]:
    observed = {
        name: observed_by_name(row)
        for name, row in sorted(progress.observedMetrics.items())
        if name.split("-")[0] == AGGREGATES
    }
    return [
        _micro_batch(progress, name, {**numbers, **observed[f"{name}-{RESULTS}"]})
        for name, numbers in observed.items()
        if not name.endswith(f"-{RESULTS}")
    ]


def _micro_batch(progress: Any, name: str, observed: dict[str, Any]) -> AggregateMicroBatch:
    measured: dict[str, Any] = {
        key: float(observed[key]) if kind == "double" else int(observed[key])
        for key, kind in NUMBERS.items()
    }
    return AggregateMicroBatch(
        batch=progress.batchId,
        aggregation=name,
        watermark=progress.eventTime.get("watermark", ""),
        trigger_seconds=progress.durationMs.get("triggerExecution", 0) / 1000,
        panes=int(observed["panes"]),
        results=int(observed[RESULTS]),
        **measured,
    )

# SPDX-License-Identifier: Apache-2.0
"""What a streaming join did in each micro-batch, read from the progress that Spark keeps."""

from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, Row
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from spark_offload.devices.pool_decision import PoolDecision
from spark_offload.streaming.processor import NUMBERS

__all__ = [
    "DECISIONS",
    "METRICS",
    "MicroBatch",
    "observed_by_name",
    "observed_columns",
    "read_progress",
    "stream_metrics",
]

METRICS = "splitjoin"
"""First part of the names under which ``observedMetrics`` of a progress has the numbers."""

DECISIONS = "decisions"
"""Name of the observed column with the decisions on the devices of a pool, one a line."""


@dataclass(frozen=True)
class MicroBatch:
    """What one streaming join did in one micro-batch.

    Parameters
    ----------
    batch : int
        Number of the micro-batch.
    join : str
        Name of the join, as its explanation tells it.
    watermark : str
        Rows older than this were late; as Spark writes it.
    trigger_seconds : float
        Time that the whole micro-batch took.
    left_rows, right_rows : int
        Rows that were joined.
    left_late, right_late : int
        Rows that were older than the watermark and were dropped.
    results : int
        Pairs.
    stored, expired : int
        Rows that were added to the state, and removed from it.
    cycles : int
        Clock cycles that devices ran.
    seconds, device_seconds : float
        Time that groups of rows took in all, and their time in devices.
    software_rows : int
        Rows that were joined in software, because a window outgrew the device; a kept row counts in
        each micro-batch in which it is joined.
    read_rows : int
        Kept rows that were read from the state store; workers hold the others already.
    waited_seconds : float
        Time that tasks have waited for a device that another one held.
    decisions : tuple of PoolDecision
        How many devices of an elastic pool were in use, by machine, and why; none if the pool is
        not elastic.
    """

    batch: int
    join: str
    watermark: str
    trigger_seconds: float
    left_rows: int
    right_rows: int
    left_late: int
    right_late: int
    results: int
    stored: int
    expired: int
    cycles: int
    seconds: float
    device_seconds: float
    software_rows: int = 0
    read_rows: int = 0
    waited_seconds: float = 0.0
    decisions: tuple[PoolDecision, ...] = ()

    @property
    def active_devices(self) -> int | None:
        """Most devices of an elastic pool that a machine used; None if the pool is not elastic."""
        return max((decision.active for decision in self.decisions), default=None)

    @property
    def rows(self) -> int:
        """Rows of both sides that were joined."""
        return self.left_rows + self.right_rows

    @property
    def late_rows(self) -> int:
        """Rows of both sides that were dropped."""
        return self.left_late + self.right_late


def observed_columns() -> list[Column]:
    """Return what is observed over the output of the processor: sums, and all decisions."""
    sums = [F.coalesce(F.sum(name), F.lit(0)).alias(name) for name in NUMBERS]
    decisions = F.array_join(F.sort_array(F.collect_set("decision")), "\n")
    return [*sums, decisions.alias(DECISIONS)]


def read_progress(progress: Any) -> tuple[MicroBatch, ...]:
    """Return what the streaming joins of a query did in one micro-batch.

    Parameters
    ----------
    progress : StreamingQueryProgress
        From ``query.lastProgress``, ``query.recentProgress`` or a ``StreamingQueryListener``.
    """
    found = []
    for name, row in sorted(progress.observedMetrics.items()):
        if name.split("-")[0] == METRICS:
            observed = observed_by_name(row)
            numbers: dict[str, Any] = {
                key: float(observed[key]) if kind == "double" else int(observed[key])
                for key, kind in NUMBERS.items()
            }
            found.append(
                MicroBatch(
                    batch=progress.batchId,
                    join=name,
                    watermark=progress.eventTime.get("watermark", ""),
                    trigger_seconds=progress.durationMs.get("triggerExecution", 0) / 1000,
                    decisions=tuple(map(PoolDecision.parse, observed[DECISIONS].splitlines())),
                    **numbers,
                )
            )
    return tuple(found)


def observed_by_name(row: Row) -> dict[str, Any]:
    """Return the fields of an observed row.

    Spark Connect (as of Spark 4.3) gives them as a row of two fields: all values, and their schema.
    """
    fields: dict[str, Any] = row.asDict()
    if fields.keys() != {"values", "schema"}:
        return fields
    names = [field["name"] for field in fields["schema"]["fields"]]
    return dict(zip(names, fields["values"], strict=True))


def stream_metrics(query: StreamingQuery) -> tuple[MicroBatch, ...]:
    """Return what the streaming joins of a query did, micro-batch by micro-batch.

    Spark remembers the last ``spark.sql.streaming.numRecentProgressUpdates`` (100) of them.

    Parameters
    ----------
    query : StreamingQuery
        A query that was started; it may have ended.
    """
    return tuple(batch for progress in query.recentProgress for batch in read_progress(progress))

# SPDX-License-Identifier: Apache-2.0
"""What a query over streams did in each micro-batch, read from the progress that Spark keeps."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
import hashlib
import json
import re
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from host import UsageError
from spark_offload.cluster.machines import is_connect
from spark_offload.cluster.query_plans import analysed
from spark_offload.measures import JoinMetrics, MicroBatch, Stopwatch, observed_numbers
from spark_offload.stream.processor import NUMBERS
from spark_offload.task.operators import AggregateTask
from spark_offload.task.task import ArrowFunction, task_function

__all__ = [
    "AGGREGATES",
    "AggregateMicroBatch",
    "MicroBatch",
    "PANE_NUMBERS",
    "RESULTS",
    "measured_by",
    "metrics_name",
    "observed_columns",
    "observed_panes",
    "observed_results",
    "panes_function",
    "panes_schema",
    "read_progress",
    "stream_aggregate_metrics",
    "stream_metrics",
]

# The rows of a micro-batch as panes: what its tasks do for an aggregation of a stream.
#
# A task reduces the rows at hand, and keeps nothing. Panes of several tasks and micro-batches are
# put together by Spark, whose state store keeps them.

# What an aggregation of a stream did in each micro-batch, read from Spark's progress.

AGGREGATES = "splitjoin_aggregate"
"""First part of the names under which ``observedMetrics`` of a progress has the numbers."""

RESULTS = "results"
"""Last part of the name under which the number of results is found."""


@dataclass(frozen=True)
class AggregateMicroBatch:
    """Metrics of one aggregation of a stream in one micro-batch.

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


PANE_NUMBERS = observed_numbers(AggregateMicroBatch, "panes", RESULTS)
"""What is measured of a task in a micro-batch, with its type in Spark; beside its first pane."""


def panes_schema(panes: pa.Schema, question: pa.Field) -> pa.Schema:
    """Return the columns of panes: those of their aggregation, the question, and the numbers.

    Parameters
    ----------
    panes : pa.Schema
        Columns of the aggregation by panes.
    question : pa.Field
        See :func:`~spark_offload.stream.task.question_type`; all its values are null.
    """
    kinds = {"bigint": pa.int64(), "double": pa.float64()}
    numbers = [pa.field(name, kinds[kind]) for name, kind in PANE_NUMBERS.items()]
    return pa.schema([*panes, question, *numbers])


def panes_function(task: AggregateTask, name: str) -> ArrowFunction:
    """Return the function for ``mapInArrow``; Spark shows its ``name`` in plans.

    Parameters
    ----------
    task : AggregateTask
        The aggregation by panes; ``output`` is what :func:`panes_schema` returned.
    name : str
        Of the function.
    """
    return task_function(name, lambda batches, _: _panes(batches, task))


def _panes(batches: Iterator[pa.RecordBatch], task: AggregateTask) -> Iterator[pa.RecordBatch]:
    watch = Stopwatch()
    with task.begun() as doing:
        (panes,) = task.results(watch.reading(batches), doing)
        device = doing.device_work
    if not panes.num_rows:
        return
    measured = {
        "rows": doing.rows,
        "seconds": watch.seconds,
        "cycles": device.cycles,
        "device_seconds": device.seconds,
    }
    columns = list(panes.columns)
    for field in list(task.output)[len(columns) :]:
        values = [measured.get(field.name), *[None] * (panes.num_rows - 1)]
        columns.append(pa.array(values, field.type))
    yield pa.RecordBatch.from_arrays(columns, schema=task.output)


# What a streaming join did in each micro-batch, read from the progress that Spark keeps.

_METRICS = "splitjoin"
"""First part of the names under which ``observedMetrics`` of a progress has the numbers."""


def observed_columns() -> list[Column]:
    """Return what is observed over the output of the processor: sums."""
    return [F.coalesce(F.sum(name), F.lit(0)).alias(name) for name in NUMBERS]


def read_progress(progress: Any) -> tuple[MicroBatch, ...]:
    """Return what the streaming joins of a query did in one micro-batch.

    Parameters
    ----------
    progress : StreamingQueryProgress
        From ``query.lastProgress``, ``query.recentProgress`` or a ``StreamingQueryListener``.
    """
    return tuple(
        MicroBatch(join=name, **_of_trigger(progress), **_numbers(observed, NUMBERS))
        for name, observed in _observed(progress, _METRICS).items()
    )


def _observed(progress: Any, kind: str) -> dict[str, dict[str, Any]]:
    """Return what was observed of one kind, by its names."""
    return {
        name: _observed_by_name(row)
        for name, row in sorted(progress.observedMetrics.items())
        if name.split("-")[0] == kind
    }


def _of_trigger(progress: Any) -> dict[str, Any]:
    """Return what a progress tells of the whole micro-batch."""
    return {
        "batch": progress.batchId,
        "watermark": progress.eventTime.get("watermark", ""),
        "trigger_seconds": progress.durationMs.get("triggerExecution", 0) / 1000,
    }


def _numbers(observed: Mapping[str, Any], kinds: Mapping[str, str]) -> dict[str, Any]:
    """Return observed numbers by their types in Spark."""
    return {
        name: float(observed[name]) if kind == "double" else int(observed[name])
        for name, kind in kinds.items()
    }


def _observed_by_name(row: Row) -> dict[str, Any]:
    """Return the fields of an observed row.

    Spark Connect (as of Spark 4.3) gives them as a row of two fields: all values, and their schema.
    """
    fields: dict[str, Any] = row.asDict()
    if fields.keys() != {"values", "schema"}:
        return fields
    names = [field["name"] for field in fields["schema"]["fields"]]
    return dict(zip(names, fields["values"], strict=True))


def stream_metrics(query: StreamingQuery) -> tuple[MicroBatch, ...]:
    """Return the metrics of the streaming joins of a query, micro-batch by micro-batch.

    Spark remembers the last ``spark.sql.streaming.numRecentProgressUpdates`` (100) of them.

    Parameters
    ----------
    query : StreamingQuery
        A query that was started; it may have ended.
    """
    return tuple(batch for progress in query.recentProgress for batch in read_progress(progress))


def observed_panes() -> list[Column]:
    """Return what is observed over panes."""
    sums = [F.coalesce(F.sum(name), F.lit(0)).alias(name) for name in PANE_NUMBERS]
    return [*sums, F.count(F.lit(1)).alias("panes")]


def observed_results() -> list[Column]:
    """Return what is observed over results."""
    return [F.count(F.lit(1)).alias(RESULTS)]


def stream_aggregate_metrics(query: StreamingQuery) -> tuple[AggregateMicroBatch, ...]:
    """Return the metrics of the aggregations of a streaming query, micro-batch by micro-batch.

    Spark remembers the last ``spark.sql.streaming.numRecentProgressUpdates`` (100) of them.

    Parameters
    ----------
    query : StreamingQuery
        A query that was started; it may have ended.
    """
    return tuple(batch for progress in query.recentProgress for batch in _of_progress(progress))


def _of_progress(progress: Any) -> list[AggregateMicroBatch]:
    observed = _observed(progress, AGGREGATES)
    kinds = observed_numbers(AggregateMicroBatch)
    return [
        AggregateMicroBatch(
            aggregation=name,
            **_of_trigger(progress),
            **_numbers({**numbers, **observed[f"{name}-{RESULTS}"]}, kinds),
        )
        for name, numbers in observed.items()
        if not name.endswith(f"-{RESULTS}")
    ]


def measured_by(function: str) -> Callable[[], JoinMetrics]:
    """Return what a plan of streams has for metrics: an error, as a query is measured, no frame.

    Parameters
    ----------
    function : str
        The function that reads the numbers of a query.
    """

    def refuse() -> JoinMetrics:
        raise UsageError(
            f"A streaming frame has no metrics before a query runs it; read "
            f"spark_offload.{function}(query), query being what start() returned."
        )

    return refuse


# Names under which the progress of a query has the numbers of its joins and aggregations.

_CHANGING = re.compile(r"#\d+L?|@[0-9a-f]+|\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")
"""What differs between two plans of the same frame: numbers of columns, addresses, identities."""


def metrics_name(question: Mapping[str, str], *inputs: DataFrame, kind: str = _METRICS) -> str:
    """Return a name that tells a join from others, and is the same when a query starts again.

    Parameters
    ----------
    question : mapping of str to str
        What the join asks; see :func:`~spark_offload.stream.task.question_of`.
    inputs : DataFrame
        By what they are read from and what is done to them.
    kind : str
        First part of the name.
    """
    text = json.dumps([dict(question), *map(_described, inputs)], sort_keys=True)
    return f"{kind}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def _described(frame: DataFrame) -> str:
    """Return the plan of a frame as a text that does not depend on the process."""
    if is_connect(frame):
        plan = frame._explain_string(mode="extended")  # type: ignore[operator]
        plan = plan.partition("== Analyzed Logical Plan ==")[2].partition("== Optimized")[0]
    else:
        plan = analysed(frame).toString()
    return _CHANGING.sub("", plan)

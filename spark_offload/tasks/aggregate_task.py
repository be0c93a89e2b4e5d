# SPDX-License-Identifier: Apache-2.0
"""What the Spark tasks of an aggregation do: panes of the rows at hand, then windows of panes."""

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from host.aggregate.phases import Phases
from host.query.aggregate_query import AggregateQuery
from host.streams.device_aggregation import DeviceAggregation
from spark_offload.measures.metrics import TaskMetrics, TaskReport
from spark_offload.measures.stopwatch import Stopwatch
from spark_offload.tasks.gathered import gathered
from spark_offload.tasks.task import ArrowFunction, declared, task_function

__all__ = ["AggregateTask", "aggregate_function", "results_of"]

PIECE_ROWS = 1 << 16
"""Rows that are aggregated at a time, about: the fewer pieces, the less is merged."""


@dataclass(frozen=True)
class AggregateTask:
    """All that a task of one phase needs to know; shipped with the function.

    Parameters
    ----------
    query : AggregateQuery
        The aggregation of this phase.
    input, output : pa.Schema
        Columns of what the phase reads and gives.
    whole : Phases or None
        The aggregation that this phase ends; None if it is the first phase.
    """

    query: AggregateQuery
    input: pa.Schema
    output: pa.Schema
    whole: Phases | None = None


def aggregate_function(task: AggregateTask, name: str, report: TaskReport) -> ArrowFunction:
    """Return the function for ``mapInArrow``; Spark shows its ``name`` in plans."""
    return task_function(
        name, lambda batches, partition: _aggregated(batches, task, partition, report)
    )


def results_of(
    batches: Iterator[pa.RecordBatch], task: AggregateTask, doing: DeviceAggregation
) -> pa.RecordBatch:
    """Return the results of all rows of a partition."""
    for batch in gathered(batches, PIECE_ROWS):
        doing.work.more_rows(declared(batch, task.input))
    return doing.work.last_rows()


def _aggregated(
    batches: Iterator[pa.RecordBatch], task: AggregateTask, partition: int, report: TaskReport
) -> Iterator[pa.RecordBatch]:
    """Yield the results of a partition; report at the end."""
    watch = Stopwatch()
    with DeviceAggregation(task.input, task.query) as doing:
        results = results_of(watch.reading(batches), task, doing)
    if task.whole is not None:
        results = task.whole.finished(results, task.output)
    yield from watch.giving(iter([declared(results, task.output)]))
    ends = task.whole is not None
    report(
        TaskMetrics(
            partition=partition,
            left_rows=0 if ends else doing.work.rows,
            results=doing.work.results if ends else 0,
            seconds=watch.seconds,
        )
    )

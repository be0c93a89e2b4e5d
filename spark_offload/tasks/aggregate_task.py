# SPDX-License-Identifier: Apache-2.0
"""What the Spark tasks of an aggregation do.

On the host, panes of the rows at hand, and then windows of panes. With a device, all rows of some
keys, in the order of their times.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from host.operators.device_aggregate import DeviceAggregation
from host.operators.phases import Phases
from host.query.queries import AggregateQuery
from spark_offload.cluster.shipping import local_device_uri
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
        The aggregation that this phase ends; None if it is the first phase or the only one.
    in_order : bool
        Whether rows come sorted by time, so that results leave as their windows end.
    device : str or None
        Address of the accelerator that keeps the windows, shipped; None for the host.
    device_name : str
        Its address as given.
    ends : bool
        Whether the results are those of the aggregation.
    goes_on : bool
        Whether the host goes on from the first rows for which the accelerator has no room.
    """

    query: AggregateQuery
    input: pa.Schema
    output: pa.Schema
    whole: Phases | None = None
    in_order: bool = False
    device: str | None = None
    device_name: str = ""
    ends: bool = False
    goes_on: bool = False

    def begun(self) -> DeviceAggregation:
        """Return the aggregation of a partition, before its first row."""
        device = None if self.device is None else local_device_uri(self.device)
        return DeviceAggregation(self.input, self.query, device, goes_on=self.goes_on)


def aggregate_function(task: AggregateTask, name: str, report: TaskReport) -> ArrowFunction:
    """Return the function for ``mapInArrow``; Spark shows its ``name`` in plans."""
    return task_function(
        name, lambda batches, partition: _aggregated(batches, task, partition, report)
    )


def results_of(
    batches: Iterator[pa.RecordBatch], task: AggregateTask, doing: DeviceAggregation
) -> Iterator[pa.RecordBatch]:
    """Yield the results of all rows of a partition."""
    for batch in gathered(batches, PIECE_ROWS):
        rows = declared(batch, task.input)
        if task.in_order:
            yield doing.work.rows_in_order(rows)
        else:
            doing.work.more_rows(rows)
    yield doing.work.last_rows()


def _aggregated(
    batches: Iterator[pa.RecordBatch], task: AggregateTask, partition: int, report: TaskReport
) -> Iterator[pa.RecordBatch]:
    """Yield the results of a partition; report at the end."""
    watch = Stopwatch()
    with task.begun() as doing:
        found = (
            results if task.whole is None else task.whole.finished(results, task.output)
            for results in results_of(watch.reading(batches), task, doing)
        )
        yield from watch.giving(declared(results, task.output) for results in found)
        work, device = doing.work, doing.watch
    report(
        TaskMetrics(
            partition=partition,
            device=task.device_name,
            left_rows=0 if task.whole is not None else work.rows,
            results=work.results if task.ends else 0,
            seconds=watch.seconds,
            device_seconds=0.0 if device is None else device.seconds,
            waited_seconds=0.0 if device is None else device.waited,
            cycles=doing.cycles,
            handed_over="" if doing.refusal is None else f"on the host: {doing.refusal}",
        )
    )

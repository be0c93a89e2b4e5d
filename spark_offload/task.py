# SPDX-License-Identifier: Apache-2.0
"""What one Spark task does: read its partition, join it on a device, hand the pairs back."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

import pyarrow as pa
from pyspark import TaskContext

from host import JoinError
from host.driver import TaggedJoin
from host.encode import Ranges
from host.query import JoinQuery
from spark_offload.devices import DeviceSource
from spark_offload.failures import in_partition
from spark_offload.halos import HaloCounts
from spark_offload.metrics import TaskMetrics, TaskReport
from spark_offload.partition_rows import PartitionChecks, PartitionRows
from spark_offload.progress import tuples_writer
from spark_offload.stopwatch import Stopwatch
from spark_offload.tagged import LEFT, RIGHT
from spark_offload.task_device import take_device
from spark_offload.trace import cumulative_counts, histogram

__all__ = ["JoinTask", "arrow_function", "declared"]

BUFFER_ROWS = 1 << 16
"""Rows that a task reads ahead, at most, besides a batch and the window."""


@dataclass(frozen=True)
class JoinTask:
    """All that a task needs to know; shipped with the function.

    Parameters
    ----------
    query : JoinQuery
        What to join.
    devices : DeviceSource
        Where to get a device, shipped.
    left, right, output : Schema
        Columns of the inputs and of the answer.
    trace : bool
        Whether to measure the latency of every result.
    progress : str, optional
        Folder in which to tell how far the task has come.
    halos : HaloCounts, optional
        For a count-based window over ranges of time: how large the halos are.
    ranges : tuple of mapping
        Between which values the columns of bands lie, on the left and on the right.
    """

    query: JoinQuery
    devices: DeviceSource
    left: pa.Schema
    right: pa.Schema
    output: pa.Schema
    trace: bool = False
    progress: str | None = None
    halos: HaloCounts | None = None
    ranges: tuple[Ranges, Ranges] = field(default_factory=lambda: ({}, {}))


def arrow_function(
    task: JoinTask, name: str, report: TaskReport
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return the function for ``mapInArrow``; Spark shows its ``name`` in plans."""

    def join(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        partition = 0 if context is None else context.partitionId()
        try:
            yield from _join_partition(batches, task, partition, report)
        except JoinError as error:
            raise in_partition(error, partition) from None

    join.__name__ = join.__qualname__ = name
    return join


def _join_partition(
    batches: Iterator[pa.RecordBatch], task: JoinTask, partition: int, report: TaskReport
) -> Iterator[pa.RecordBatch]:
    """Yield the pairs of one partition; report what was measured when all have been taken.

    The rows pass through: what is kept is the window and what lies in the buffers.
    """
    watch = Stopwatch()
    tell = tuples_writer(task.progress, partition)
    rows = PartitionRows(
        watch.reading(batches),
        task.left,
        task.right,
        PartitionChecks(task.query, halos=task.halos),
    )
    # Spark has sorted; what the user declared is checked against the rows' numbers.
    query = replace(task.query, sorted=True)
    results = 0
    with take_device(task.devices) as taken:
        join = TaggedJoin(
            rows.reader(),
            rows.layout,
            query,
            taken.device,
            trace=task.trace,
            report=lambda progress: tell(progress.tuples),
            buffer_rows=BUFFER_ROWS,
            ranges=task.ranges,
        )
        for batch in watch.giving(declared(batch, task.output) for batch in join.batches()):
            results += batch.num_rows
            yield batch
        latency = join.latency
        report(
            TaskMetrics(
                partition=partition,
                device=taken.name,
                attempt=taken.attempt,
                left_rows=rows.counts[LEFT],
                right_rows=rows.counts[RIGHT],
                halo_rows=rows.halo_rows,
                results=results,
                seconds=watch.seconds,
                device_seconds=join.device_seconds,
                waited_seconds=join.waited_seconds,
                cycles=join.cycles,
                counters=join.counters(),
                copied_bytes=join.staged.copied_bytes,
                latency={} if latency is None else histogram(latency.visiting),
                processing={} if latency is None else histogram(latency.processing),
                timeline=(
                    () if latency is None else cumulative_counts(latency.emitted, join.cycles)
                ),
            )
        )


def declared(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return ``batch`` with exactly the declared columns and types.

    Spark takes what ``mapInArrow`` yields by position and believes its types, so a difference
    would become wrong values instead of an error.
    """
    if batch.num_columns != len(schema):
        raise TypeError(f"The join has {batch.num_columns} columns, not the {len(schema)} declared")
    columns = [
        column if column.type == field.type else column.cast(field.type)
        for column, field in zip(batch.columns, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)

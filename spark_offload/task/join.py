# SPDX-License-Identifier: Apache-2.0
"""What one Spark task does: read its partition, join it on a device, hand the pairs back."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
import gc
from typing import Any

import pyarrow as pa
from pyspark import TaskContext

from host import Device, JoinError, UsageError, open_device
from host.query.queries import Query
from host.session.intake import TaggedLayout
from host.session.join import Join
from spark_offload.cluster.devices import DeviceSource, take_device
from spark_offload.cluster.machines import local_device_uri
from spark_offload.cluster.session import tuples_writer
from spark_offload.errors import in_partition, task_partition
from spark_offload.measures import Stopwatch, TaskMetrics, TaskReport, cumulative_counts, histogram
from spark_offload.partitioning.halos import HaloCounts
from spark_offload.partitioning.tagged import LEFT, RIGHT
from spark_offload.task.handover import Handover
from spark_offload.task.rows import PartitionChecks, PartitionRows, gathered

__all__ = [
    "ArrowFunction",
    "JoinTask",
    "arrow_function",
    "declared",
    "in_utc",
    "spare_modules",
    "task_function",
]

# What Spark's Python workers do with their memory between two tasks.
#
# Spark lets a worker collect garbage behind every task. The collector then visits every object of
# the modules that are loaded, some 90,000 with pandas, PyArrow and this kit: 50 ms of processor
# time, as much as a small task takes.


def spare_modules() -> None:
    """Keep what is loaded by now out of later collections, once in a worker.

    To be called at the end of a task, when everything that a task needs has been loaded. Outside of
    a worker nothing happens.
    """
    if TaskContext.get() is not None:
        _spare()


@cache
def _spare() -> None:
    gc.collect()  # what is garbage now would stay
    gc.freeze()


# What one Spark task does: read its partition, join it on a device, hand the pairs back.

ArrowFunction = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
"""What ``mapInArrow`` takes."""

BUFFER_ROWS = 1 << 16
"""Rows that a task reads ahead, at most, besides a batch and the window."""


@dataclass(frozen=True)
class JoinTask:
    """All that a task needs to know; shipped with the function.

    Parameters
    ----------
    query : Query
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
    width : int or None
        Of a time-based window that can outgrow the device, as a difference of order numbers. None:
        it cannot, or its rows cannot be counted before the device gets them.
    software : str or None
        Address of the software device that goes on from the row that finds no room; None: such a
        row is an error.
    """

    query: Query
    devices: DeviceSource
    left: pa.Schema
    right: pa.Schema
    output: pa.Schema
    trace: bool = False
    progress: str | None = None
    halos: HaloCounts | None = None
    width: int | None = None
    software: str | None = None


def arrow_function(task: JoinTask, name: str, report: TaskReport) -> ArrowFunction:
    """Return the function for ``mapInArrow``; Spark shows its ``name`` in plans."""
    return task_function(
        name, lambda batches, partition: _join_partition(batches, task, partition, report)
    )


def _join_partition(
    batches: Iterator[pa.RecordBatch], task: JoinTask, partition: int, report: TaskReport
) -> Iterator[pa.RecordBatch]:
    """Yield the pairs of one partition; report what was measured when all have been taken.

    The rows pass through: what is kept is the window and what lies in the buffers.
    """
    watch = Stopwatch()
    tell = tuples_writer(task.progress, partition)
    rows = PartitionRows(
        gathered(watch.reading(batches), BUFFER_ROWS),
        task.left,
        task.right,
        PartitionChecks(task.query, halos=task.halos),
    )
    results = 0
    with take_device(task.devices) as taken:
        handover = _handover(task, rows, taken.device)
        join = _joining(
            task,
            rows.reader() if handover is None else handover.first(),
            rows.layout,
            taken.device,
            trace=task.trace,
            report=lambda progress: tell(progress.tuples),
            is_cut=None if handover is None else lambda: handover.is_needed,
        )
        for batch in watch.giving(declared(batch, task.output) for batch in join.batches()):
            results += batch.num_rows
            yield batch
        found, latency = join.measured, join.measured.latency
        measured = TaskMetrics(
            partition=partition,
            device=taken.name,
            attempt=taken.attempt,
            device_seconds=found.seconds,
            waited_seconds=found.waited,
            cycles=found.cycles,
            counters=join.counters(),
            hash_note=found.hash_note,
            precision=found.precision,
            elastic=found.elastic,
            failures=found.failures,
            copied_bytes=found.staged.copied_bytes,
            latency={} if latency is None else histogram(latency.visiting),
            processing={} if latency is None else histogram(latency.processing),
            timeline=() if latency is None else cumulative_counts(latency.emitted, found.cycles),
        )
    if handover is not None and handover.is_needed and task.software is not None:
        with open_device(local_device_uri(task.software)) as software:
            try:
                join = _joining(task, *handover.rest(), software)
            except UsageError:  # the device's error is the one that helps
                raise handover.error() from None
            for batch in watch.giving(declared(batch, task.output) for batch in join.batches()):
                results += batch.num_rows
                yield batch
            measured = replace(
                measured,
                device_seconds=measured.device_seconds + join.measured.seconds,
                waited_seconds=measured.waited_seconds + join.measured.waited,
                copied_bytes=measured.copied_bytes + join.measured.staged.copied_bytes,
                software_rows=handover.rest_rows,
                handed_over=handover.reason,
            )
    report(
        replace(
            measured,
            left_rows=rows.counts[LEFT],
            right_rows=rows.counts[RIGHT],
            halo_rows=rows.halo_rows,
            results=results,
            seconds=watch.seconds,
        )
    )


def _handover(task: JoinTask, rows: PartitionRows, device: Device) -> Handover | None:
    """Return what watches the window, if it can outgrow the device."""
    if task.width is None:
        return None
    return Handover(
        rows.reader(),
        rows.layout,
        task.query.how,
        task.width,
        device.manifest,
        strict=task.software is None,
    )


def _joining(
    task: JoinTask,
    rows: pa.RecordBatchReader,
    layout: TaggedLayout,
    device: Device,
    **options: Any,
) -> Join:
    # Spark has sorted; what the user declared is checked against the rows' numbers.
    query = replace(task.query, sorted=True)
    return Join.of_tagged(rows, layout, query, device, buffer_rows=BUFFER_ROWS, **options)


def task_function(
    name: str, work: Callable[[Iterator[pa.RecordBatch], int], Iterator[pa.RecordBatch]]
) -> ArrowFunction:
    """Return the function for ``mapInArrow`` that does the work of a task.

    Parameters
    ----------
    name : str
        What Spark shows in plans.
    work : callable
        Takes the batches and the number of the partition, which errors of this kit then name.
    """

    def function(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        partition = task_partition()
        try:
            yield from work(in_utc(batches), partition)
        except JoinError as error:
            raise in_partition(error, partition) from None
        spare_modules()

    function.__name__ = function.__qualname__ = name
    return function


def in_utc(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield batches of Spark with all instants in UTC, nested ones too.

    Spark names the zone of the session in the types, and Java knows zones, such as ``GMT+8``, that
    Python does not. The numbers are those of UTC in every zone, and the answer's types, which the
    driver has declared, are in UTC, so no task has to know a zone.
    """
    for batch in batches:
        kinds = [_in_utc(kind) for kind in batch.schema.types]
        columns = [
            column if column.type == kind else column.cast(kind)
            for column, kind in zip(batch.columns, kinds, strict=True)
        ]
        fields = [field.with_type(kind) for field, kind in zip(batch.schema, kinds, strict=True)]
        yield pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields))


def _in_utc(kind: pa.DataType) -> pa.DataType:
    def inside(field: pa.Field) -> pa.Field:
        return field.with_type(_in_utc(field.type))

    if pa.types.is_timestamp(kind):
        return kind if kind.tz is None else pa.timestamp(kind.unit, "UTC")
    if pa.types.is_list(kind):
        return pa.list_(inside(kind.value_field))
    if pa.types.is_struct(kind):
        return pa.struct([inside(field) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(inside(kind.key_field), inside(kind.item_field))
    return kind


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

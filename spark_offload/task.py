# SPDX-License-Identifier: Apache-2.0
"""What one Spark task does: read its partition, join it on a device, hand the pairs back."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import chain
import time

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext

from host import JoinError, UsageError, open_device
from host.driver import TaggedJoin, TaggedLayout
from host.errors import DisorderError
from host.query import JoinQuery
from spark_offload.failures import in_partition
from spark_offload.metrics import TaskMetrics, TaskReport
from spark_offload.progress import tuples_writer
from spark_offload.shipping import local_device_uri
from spark_offload.tagged import LEFT, RIGHT, TAG_COLUMNS
from spark_offload.trace import cumulative_counts, histogram

__all__ = ["JoinTask", "arrow_function", "declared"]

BUFFER_ROWS = 1 << 16
"""Rows that a task reads ahead, at most, besides a batch and the window."""

_ROW_BITS = 33
"""Bits of an input row's number that count within its Spark partition."""


@dataclass(frozen=True)
class JoinTask:
    """All that a task needs to know; shipped with the function.

    Parameters
    ----------
    query : JoinQuery
        What to join.
    device : str
        Address of the device, as :func:`~spark_offload.shipping.ship_bundle` returned it.
    left, right, output : Schema
        Columns of the inputs and of the answer.
    trace : bool
        Whether to measure the latency of every result.
    progress : str, optional
        Folder in which to tell how far the task has come.
    """

    query: JoinQuery
    device: str
    left: pa.Schema
    right: pa.Schema
    output: pa.Schema
    trace: bool = False
    progress: str | None = None


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
            raise in_partition(error, partition) from error

    join.__name__ = join.__qualname__ = name
    return join


def _join_partition(
    batches: Iterator[pa.RecordBatch], task: JoinTask, partition: int, report: TaskReport
) -> Iterator[pa.RecordBatch]:
    """Yield the pairs of one partition; report what was measured when all have been taken.

    The rows pass through: what is kept is the window and what lies in the buffers.
    """
    started = time.perf_counter()
    tell = tuples_writer(task.progress, partition)
    rows = _PartitionRows(batches, task)
    # Spark has sorted; what the user declared is checked against the rows' numbers.
    query = replace(task.query, sorted=True)
    results = 0
    with open_device(local_device_uri(task.device)) as device:
        join = TaggedJoin(
            rows.reader(),
            rows.layout,
            query,
            device,
            trace=task.trace,
            report=lambda progress: tell(progress.tuples),
            buffer_rows=BUFFER_ROWS,
        )
        for batch in join.batches():
            results += batch.num_rows
            yield declared(batch, task.output)
        latency = join.latency
        report(
            TaskMetrics(
                partition=partition,
                left_rows=rows.counts[LEFT],
                right_rows=rows.counts[RIGHT],
                results=results,
                seconds=time.perf_counter() - started,
                device_seconds=join.device_seconds,
                cycles=join.cycles,
                counters=join.counters(),
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


class _PartitionRows:
    """The rows of a partition as they pass: checked and counted.

    Parameters
    ----------
    batches : iterator of RecordBatch
        Tagged batches.
    task : JoinTask
        What is required of them.

    Attributes
    ----------
    layout : TaggedLayout
        Where the columns stand, by the types that they have here, which can differ in little from
        those that Spark announced.
    counts : list of int
        Rows of either side so far.
    """

    def __init__(self, batches: Iterator[pa.RecordBatch], task: JoinTask) -> None:
        self._batches = batches
        self._first = next(batches, None)
        self._checks = [
            _SideCheck("left", task.query.order[0], task.query.sorted),
            _SideCheck("right", task.query.order[1], task.query.sorted),
        ]
        left, right = task.left, task.right
        if self._first is None:
            self._schema = pa.schema(
                [("side", pa.int8()), ("order", pa.int64()), ("row", pa.int64())]
            )
            for letter, columns in (("l", left), ("r", right)):
                for index, column in enumerate(columns):
                    self._schema = self._schema.append(pa.field(f"{letter}{index}", column.type))
        else:
            self._schema = self._first.schema
        types = self._schema.types[len(TAG_COLUMNS) :]
        middle = len(left)
        self.layout = TaggedLayout(
            pa.schema(zip(left.names, types[:middle], strict=True)),
            pa.schema(zip(right.names, types[middle:], strict=True)),
            len(TAG_COLUMNS),
        )
        self.counts = [0, 0]

    def reader(self) -> pa.RecordBatchReader:
        """Return the batches, to be read once."""
        return pa.RecordBatchReader.from_batches(self._schema, self._passing())

    def _passing(self) -> Iterator[pa.RecordBatch]:
        first, self._first = self._first, None
        for batch in self._batches if first is None else chain([first], self._batches):
            for side in (LEFT, RIGHT):
                mask = pc.equal(batch.column("side"), pa.scalar(side, pa.int8()))
                self.counts[side] += mask.true_count
                self._checks[side].see(batch, mask)
            yield batch


class _SideCheck:
    """What is required of the rows of one side: a place in time, and the declared order."""

    def __init__(self, side: str, order: str, is_sorted: bool) -> None:
        self._side = side
        self._order = order
        self._is_sorted = is_sorted
        self._last: tuple[int, object] | None = None

    def see(self, batch: pa.RecordBatch, mask: pa.Array) -> None:
        """Check the rows of ``batch`` that ``mask`` selects; they come sorted by order and row."""
        rows = batch.column("row").filter(mask)
        if len(rows) == 0:
            return
        order = batch.column("order").filter(mask)
        if order.null_count:
            # Nulls sort first, and a null's row number is the least of them.
            raise UsageError(
                f"Order column {self._order!r} of the {self._side} input is null in "
                f"{_row_name(rows[0].as_py())}; a row without a place in time cannot be joined: "
                f"drop it, or fill the column."
            )
        if self._is_sorted:
            self._require_rising(rows, order)

    def _require_rising(self, rows: pa.Array, order: pa.Array) -> None:
        """Raise if a later time belongs to an earlier row."""
        numbers = rows.to_numpy()
        if self._last is not None and numbers[0] < self._last[0]:
            self._raise(self._last[0], self._last[1], order[0].as_py())
        falls = (numbers[1:] < numbers[:-1]).nonzero()[0]
        if len(falls):
            at = int(falls[0])
            self._raise(int(numbers[at]), order[at].as_py(), order[at + 1].as_py())
        self._last = int(numbers[-1]), order[len(order) - 1].as_py()

    def _raise(self, row: int, earlier: object, later: object) -> None:
        raise DisorderError(
            f"{self._side}.{self._order}", (row & ((1 << _ROW_BITS) - 1)), later, earlier
        )


def _row_name(row: int) -> str:
    """Say which input row Spark's number means."""
    partition, within = row >> _ROW_BITS, row & ((1 << _ROW_BITS) - 1)
    of_partition = f" of its partition {partition}" if partition else ""
    return f"row {within}{of_partition} (the first is 0)"

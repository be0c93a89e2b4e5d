# SPDX-License-Identifier: Apache-2.0
"""What one Spark task of an as-of join does: read its partition, find partners, hand rows back."""

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from host.asof.stream import AsofStream
from host.query.asof_query import AsofQuery
from spark_offload.layout.tagged import LEFT, RIGHT
from spark_offload.measures.metrics import TaskMetrics, TaskReport
from spark_offload.measures.stopwatch import Stopwatch
from spark_offload.tasks.gathered import gathered
from spark_offload.tasks.partition_rows import PartitionChecks, PartitionRows
from spark_offload.tasks.split_sides import split_sides
from spark_offload.tasks.task import BUFFER_ROWS, ArrowFunction, declared, task_function

__all__ = ["AsofTask", "asof_function"]

PIECE_ROWS = 1 << 16
"""Rows that are joined at a time, at least; as many as are kept, if those are more."""


@dataclass(frozen=True)
class AsofTask:
    """All that a task needs to know; shipped with the function.

    Parameters
    ----------
    query : AsofQuery
        What to join.
    left, right, output : Schema
        Columns of the inputs and of the answer.
    """

    query: AsofQuery
    left: pa.Schema
    right: pa.Schema
    output: pa.Schema


def asof_function(task: AsofTask, name: str, report: TaskReport) -> ArrowFunction:
    """Return the function for ``mapInArrow``; Spark shows its ``name`` in plans."""
    return task_function(
        name, lambda batches, partition: _join_partition(batches, task, partition, report)
    )


def _join_partition(
    batches: Iterator[pa.RecordBatch], task: AsofTask, partition: int, report: TaskReport
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of the answer as they are decided; report at the end."""
    watch = Stopwatch()
    rows = PartitionRows(
        gathered(watch.reading(batches), BUFFER_ROWS),
        task.left,
        task.right,
        PartitionChecks(task.query.pairs),
    )
    results = 0
    for batch in watch.giving(declared(batch, task.output) for batch in _joined(rows, task.query)):
        results += batch.num_rows
        yield batch
    report(
        TaskMetrics(
            partition=partition,
            left_rows=rows.counts[LEFT],
            right_rows=rows.counts[RIGHT],
            results=results,
            seconds=watch.seconds,
        )
    )


def _joined(rows: PartitionRows, query: AsofQuery) -> Iterator[pa.RecordBatch]:
    """Join pieces at least as large as what is kept, so that joining it again costs no more."""
    layout = rows.layout
    stream = AsofStream(layout.left, layout.right, query)
    piece: list[pa.RecordBatch] = []
    count = 0
    for batch in rows.reader():
        piece.append(batch)
        count += batch.num_rows
        if count >= max(PIECE_ROWS, stream.waiting.num_rows + stream.kept.num_rows):
            yield stream.rows_in_order(*split_sides(piece, layout))
            piece, count = [], 0
    yield stream.last_rows(*split_sides(piece, layout))

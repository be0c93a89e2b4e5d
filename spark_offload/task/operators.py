# SPDX-License-Identifier: Apache-2.0
"""Tasks of as-of joins and of aggregations, which need no device."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pyarrow as pa

from host.columns.kinds import contiguous, integer_view
from host.operators.aggregate import WindowAggregation
from host.operators.asof import AsofStream
from host.operators.states import Phases
from host.pipeline.parallel import Stack
from host.query.queries import AggregateQuery, AsofQuery
from host.reference.asof import Direction
from host.reference.types import JoinType
from host.session.intake import TaggedLayout
from spark_offload.cluster.machines import local_device_uri
from spark_offload.measures import Stopwatch, TaskMetrics, TaskReport
from spark_offload.partitioning.tagged import LEFT, RIGHT
from spark_offload.task.join import BUFFER_ROWS, ArrowFunction, declared, task_function
from spark_offload.task.rows import PartitionChecks, PartitionRows, gathered, split_sides

__all__ = [
    "AggregateTask",
    "AsofTask",
    "aggregate_function",
    "asof_function",
    "results_of",
]

# What one Spark task of an as-of join does: read its partition, find partners, hand rows back.

PIECE_ROWS = 1 << 16
"""Rows that are joined at a time, at least; as many as are kept, if those are more."""

STACK_BYTES = 1 << 25
"""Bytes that wait in memory to be read backwards, once for each of three kinds of rows."""


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
    """Yield the rows of the answer, in the order of the left rows' times."""
    layout = rows.layout
    if query.direction.looks_ahead and query.within is None:
        yield from _joined_backwards(rows, query)
        return
    stream = AsofStream(layout.left, layout.right, query)
    for left, right in _pieces(rows, stream):
        yield stream.rows_in_order(left, right)
    yield stream.last_rows(layout.left.empty_table(), layout.right.empty_table())


def _pieces(
    rows: PartitionRows, stream: AsofStream | None = None
) -> Iterator[tuple[pa.Table, pa.Table]]:
    """Yield left and right rows in pieces that are large, so that a piece costs little.

    Pieces for a stream have at least as many rows as it keeps, which it joins again each time.
    """
    piece: list[pa.RecordBatch] = []
    count = 0
    for batch in rows.reader():
        piece.append(batch)
        count += batch.num_rows
        kept = 0 if stream is None else stream.waiting.num_rows + stream.kept.num_rows
        if count >= max(PIECE_ROWS, kept):
            yield split_sides(piece, rows.layout)
            piece, count = [], 0
    yield split_sides(piece, rows.layout)


def _joined_backwards(rows: PartitionRows, query: AsofQuery) -> Iterator[pa.RecordBatch]:
    """Look ahead without a limit, which is to look back in a time that runs backwards.

    A row that waits for a later partner could wait until the end of the partition, and hold up all
    that come behind it. So the partition is read to its end and joined from there, and what was
    found is turned round again. For the nearest row, each left row has brought its earlier partner
    along. Meanwhile rows lie in files, if they are more than a few; besides, memory holds the
    rows of one time and one right row of each key.
    """
    left, right = rows.layout.left, rows.layout.right
    nearest = query.direction is Direction.NEAREST
    with Stack(STACK_BYTES) as lefts, Stack(STACK_BYTES) as rights, Stack(STACK_BYTES) as results:
        ahead = replace(query, direction=Direction.FORWARD)
        if nearest:
            back = replace(query, direction=Direction.BACKWARD, how=JoinType.LEFT)
            stream = AsofStream(left, right, back)
            for piece in _pieces(rows, stream):
                lefts.push(stream.rows_in_order(*piece))
                rights.push(_batch(piece[1]))
            lefts.push(stream.last_rows(left.empty_table(), right.empty_table()))
            rights.push(_batch(right.empty_table()))
            # Longer than any name there is, so nothing is called like another column.
            suffix = "_" * (1 + max(map(len, stream.schema.names)))
            ahead = replace(ahead, how=JoinType.LEFT, suffix=suffix)
            stream = AsofStream(stream.schema, right, ahead, backwards=True)
        else:
            for piece in _pieces(rows):
                lefts.push(_batch(piece[0]))
                rights.push(_batch(piece[1]))
            stream = AsofStream(left, right, ahead, backwards=True)
        last = stream.waiting, stream.kept  # as empty as the rows behind the first one
        for batches in zip(lefts.popped(), rights.popped(), strict=True):
            results.push(stream.rows_in_order(*map(_table, batches)))
        results.push(stream.last_rows(*last))
        for batch in results.popped():
            turned = batch.take(pa.array(np.arange(batch.num_rows)[::-1]))
            yield _nearer(turned, rows.layout, query) if nearest else turned


def _nearer(batch: pa.RecordBatch, layout: TaggedLayout, query: AsofQuery) -> pa.RecordBatch:
    """Return left rows with the nearer one of the earlier and the later rows behind them."""
    first, count = len(layout.left), len(layout.right)
    right = layout.right.get_field_index(query.time[1])
    earlier, later = (batch.columns[at : at + count] for at in (first, first + count))
    time = batch.column(layout.left.get_field_index(query.time[0]))
    times = [integer_view(at).astype(np.int64) for at in (time, earlier[right], later[right])]
    # No distance is negative, so it is right without a sign, however large it is.
    distances = [(b - a).view(np.uint64) for a, b in pairwise((times[1], times[0], times[2]))]
    behind, there = (side[right].is_valid().to_numpy(False) for side in (earlier, later))
    back = behind & (~there | (distances[0] <= distances[1]))
    place = np.arange(batch.num_rows) + np.where(back, 0, batch.num_rows)
    chosen = [
        pa.concat_arrays(pair).take(pa.array(place)) for pair in zip(earlier, later, strict=True)
    ]
    names = batch.schema.names[: first + count]
    found = pa.RecordBatch.from_arrays([*batch.columns[:first], *chosen], names=names)
    return found.filter(pa.array(behind | there)) if query.how is JoinType.INNER else found


def _batch(table: pa.Table) -> pa.RecordBatch:
    """Return the rows of a table as one batch."""
    columns = [contiguous(column) for column in table.columns]
    return pa.RecordBatch.from_arrays(columns, schema=table.schema)


def _table(batch: pa.RecordBatch) -> pa.Table:
    return pa.Table.from_batches([batch])


# What the Spark tasks of an aggregation do.
#
# On the host, panes of the rows at hand, and then windows of panes. With a device, all rows of
# some keys, in the order of their times.

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

    def begun(self) -> WindowAggregation:
        """Return the aggregation of a partition, before its first row."""
        device = None if self.device is None else local_device_uri(self.device)
        return WindowAggregation(self.input, self.query, device, goes_on=self.goes_on)


def aggregate_function(task: AggregateTask, name: str, report: TaskReport) -> ArrowFunction:
    """Return the function for ``mapInArrow``; Spark shows its ``name`` in plans."""
    return task_function(
        name, lambda batches, partition: _aggregated(batches, task, partition, report)
    )


def results_of(
    batches: Iterator[pa.RecordBatch], task: AggregateTask, doing: WindowAggregation
) -> Iterator[pa.RecordBatch]:
    """Yield the results of all rows of a partition."""
    for batch in gathered(batches, PIECE_ROWS):
        rows = declared(batch, task.input)
        if task.in_order:
            yield doing.rows_in_order(rows)
        else:
            doing.more_rows(rows)
    yield doing.last_rows()


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
        device = doing.device_work
    report(
        TaskMetrics(
            partition=partition,
            device=task.device_name,
            left_rows=0 if task.whole is not None else doing.rows,
            results=doing.results if task.ends else 0,
            seconds=watch.seconds,
            device_seconds=device.seconds,
            waited_seconds=device.waited,
            cycles=device.cycles,
            handed_over="" if doing.refusal is None else f"on the host: {doing.refusal}",
        )
    )

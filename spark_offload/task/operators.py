# SPDX-License-Identifier: Apache-2.0
"""Tasks of as-of joins, of aggregations, and of operators that are described as data."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from host.columns.kinds import integer_view, one_batch
from host.operators.aggregate import WindowAggregation
from host.operators.asof import AsofStream
from host.operators.operate import OperatorColumns, OperatorEngine, OperatorQuery
from host.operators.states import Phases
from host.pipeline.parallel import Stack
from host.query.queries import AggregateQuery, AsofQuery
from host.reference.types import Direction, JoinType
from host.session.intake import TaggedLayout
from spark_offload.cluster.machines import local_device_uri
from spark_offload.partitioning.stored import StoredRows
from spark_offload.partitioning.tagged import LEFT
from spark_offload.task.rows import PartitionRows, TaggedTask, gathered, split_sides
from spark_offload.task.task import BUFFER_ROWS, Task, declared

__all__ = [
    "AggregateTask",
    "AsofTask",
    "OperatorTask",
]

# What one Spark task of an as-of join does: read its partition, find partners, hand rows back.

STACK_BYTES = 1 << 25
"""Bytes that wait in memory to be read backwards, once for each of three kinds of rows."""


@dataclass(frozen=True, kw_only=True)
class AsofTask(TaggedTask):
    """Description of the tasks of an as-of join; shipped with the function.

    Parameters
    ----------
    asof : AsofQuery
        What to join; ``query`` is that of the pairs that are candidates.
    """

    asof: AsofQuery

    def work(
        self, batches: Iterator[pa.RecordBatch], told: dict[str, Any]
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows of the answer as they are decided."""
        rows = self.rows(batches)
        yield from _joined(rows, self.asof)
        told.update(rows.counted)


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
        if count >= max(BUFFER_ROWS, kept):
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
                rights.push(one_batch(piece[1]))
            lefts.push(stream.last_rows(left.empty_table(), right.empty_table()))
            rights.push(one_batch(right.empty_table()))
            # Longer than any name there is, so nothing is called like another column.
            suffix = "_" * (1 + max(map(len, stream.schema.names)))
            ahead = replace(ahead, how=JoinType.LEFT, suffix=suffix)
            stream = AsofStream(stream.schema, right, ahead, backwards=True)
        else:
            for piece in _pieces(rows):
                lefts.push(one_batch(piece[0]))
                rights.push(one_batch(piece[1]))
            stream = AsofStream(left, right, ahead, backwards=True)
        last = stream.waiting, stream.kept  # as empty as the rows behind the first one
        for batches in zip(lefts.popped(), rights.popped(), strict=True):
            results.push(stream.rows_in_order(*(pa.Table.from_batches([one]) for one in batches)))
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


# What the Spark tasks of an aggregation do.
#
# On the host, panes of the rows at hand, and then windows of panes. With a device, all rows of
# some keys, in the order of their times.


@dataclass(frozen=True, kw_only=True)
class AggregateTask(Task):
    """Description of the tasks of one phase of an aggregation; shipped with the function.

    Parameters
    ----------
    query : AggregateQuery
        The aggregation of this phase.
    input : pa.Schema
        Columns of what the phase reads.
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
    stored : StoredRows or None
        What reads the rows of a partition, if the task does that by itself.
    """

    query: AggregateQuery
    input: pa.Schema
    whole: Phases | None = None
    in_order: bool = False
    device: str | None = None
    device_name: str = ""
    ends: bool = False
    goes_on: bool = False
    stored: StoredRows | None = None

    def begun(self) -> WindowAggregation:
        """Return the aggregation of a partition, before its first row."""
        device = None if self.device is None else local_device_uri(self.device)
        return WindowAggregation(self.input, self.query, device, goes_on=self.goes_on)

    def results(
        self, batches: Iterator[pa.RecordBatch], doing: WindowAggregation
    ) -> Iterator[pa.RecordBatch]:
        """Yield the results of all rows of a partition."""
        given = batches if self.stored is None else self.stored.batches(batches)
        for batch in gathered(given, BUFFER_ROWS):
            rows = declared(batch, self.input)
            if self.in_order:
                yield doing.rows_in_order(rows)
            else:
                doing.more_rows(rows)
        yield doing.last_rows()

    def work(
        self, batches: Iterator[pa.RecordBatch], told: dict[str, Any]
    ) -> Iterator[pa.RecordBatch]:
        """Yield the results of a partition, in the columns of the phase."""
        with self.begun() as doing:
            for results in self.results(batches, doing):
                whole = self.whole
                yield results if whole is None else whole.finished(results, self.output)
            device = doing.device_work
        told.update(
            device=self.device_name,
            left_rows=0 if self.whole is not None else doing.rows,
            results=doing.results if self.ends else 0,
            device_seconds=device.seconds,
            waited_seconds=device.waited,
            cycles=device.cycles,
            handed_over="" if doing.refusal is None else f"on the host: {doing.refusal}",
        )


# What the Spark tasks of a described operator do, in two phases.
#
# The first phase finds keys, and reduces the rows at hand. The second one makes windows and pairs
# of all parts of some keys.


@dataclass(frozen=True, kw_only=True)
class OperatorTask(Task):
    """Description of the tasks of one phase of an operator; shipped with the function.

    Parameters
    ----------
    query : OperatorQuery
        What is computed.
    given : tuple of pa.Schema
        Columns of the rows of each input.
    side : int or None
        The input whose rows the first phase reads. None for the second phase, which reads parts: of
        two inputs, those with their side before them, and with nulls for the other side's columns.
    device : str or None
        Address of the accelerator, shipped; None for software.
    device_name : str
        Its address as given.
    """

    query: OperatorQuery
    given: tuple[pa.Schema, ...]
    side: int | None = None
    device: str | None = None
    device_name: str = ""

    def work(
        self, batches: Iterator[pa.RecordBatch], told: dict[str, Any]
    ) -> Iterator[pa.RecordBatch]:
        """Yield what the phase gives for a partition."""
        columns = OperatorColumns(self.given, self.query)
        device = None if self.device is None else local_device_uri(self.device)
        with closing(OperatorEngine(self.query.operator, device)) as engine:
            if self.side is None:
                parts = _parts_of(batches, columns)
                if parts is not None:
                    yield from columns.second(parts, engine)[0].to_batches()
            else:
                yield from self._first(batches, self.side, columns, engine, told)
            work = engine.work
        told.update(
            device=self.device_name,
            device_seconds=work.seconds,
            waited_seconds=work.waited,
            cycles=work.cycles,
        )

    def _first(
        self,
        batches: Iterator[pa.RecordBatch],
        side: int,
        columns: OperatorColumns,
        engine: OperatorEngine,
        told: dict[str, Any],
    ) -> Iterator[pa.RecordBatch]:
        rows = 0
        none = [schema.empty_table() for schema in self.given]
        for batch in gathered(batches, BUFFER_ROWS):
            found = pa.Table.from_batches([declared(batch, self.given[side])])
            sides = [found if at == side else table for at, table in enumerate(none)]
            given = columns.first(sides, engine, [rows] * len(sides))
            rows += batch.num_rows
            yield from given[0 if len(given) == 1 else side].to_batches()
        told["left_rows" if side == LEFT else "right_rows"] = rows
        if columns.has_parts:
            told["results"] = 0


def _parts_of(batches: Iterator[pa.RecordBatch], columns: OperatorColumns) -> list[pa.Table] | None:
    """Return the parts of each input of a partition; None if there is none."""
    gathered_ = list(batches)
    if not gathered_:
        return None
    table = pa.Table.from_batches(gathered_)
    if len(columns.parts) == 1:
        return [_named(table, columns.parts[0])]
    found = []
    for side, schema in enumerate(columns.parts):
        own = table.filter(pc.equal(table["side"], side))
        names = [name for name in own.column_names[1:] if name[0] in ("s", "lr"[side])]
        found.append(_named(own.select(names), schema))
    return found


def _named(table: pa.Table, schema: pa.Schema) -> pa.Table:
    batches = [declared(batch, schema) for batch in table.to_batches()]
    return pa.Table.from_batches(batches, schema).combine_chunks()

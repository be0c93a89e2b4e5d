# SPDX-License-Identifier: Apache-2.0
"""The rows of one partition as they pass: gathered, laid out, counted, checked, and told apart."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from host import CountWindow, FailureError
from host.arrays import Int64s
from host.columns.kinds import row_at
from host.errors import OrderError
from host.query.queries import Query
from host.reference.types import JoinType
from host.session.intake import TaggedLayout
from host.session.rows import joined
from spark_offload.partitioning.halos import HaloCounts
from spark_offload.partitioning.stored import StoredRanges
from spark_offload.partitioning.tagged import (
    ALONE_COLUMN,
    HALO_COLUMNS,
    LEFT,
    PAYLOAD,
    RIGHT,
    ROW_BITS,
    SHARED,
    TAG_COLUMNS,
    source_of,
)
from spark_offload.task.task import BUFFER_ROWS, Task

__all__ = [
    "MOST_BYTES",
    "PartitionRows",
    "RangeRows",
    "SideCheck",
    "TaggedTask",
    "gathered",
    "split_sides",
]

# Fewer and larger batches than Spark sends, since a task works batch by batch.

MOST_BYTES = 1 << 23
"""Bytes at which a batch is large enough, however few rows it has."""


def gathered(batches: Iterator[pa.RecordBatch], rows: int) -> Iterator[pa.RecordBatch]:
    """Yield the rows of ``batches`` in the same order, in batches of about ``rows`` rows.

    Spark sends batches of 10,000 rows (``spark.sql.execution.arrow.maxRecordsPerBatch``). What a
    task does for a batch takes milliseconds besides what it does for the rows.

    The first batch passes as it is, and the next ones grow with the rows that have passed, so that
    the device begins as early as without gathering. No batch is cut. Batches that are joined are
    copied, and are let go then.

    Parameters
    ----------
    batches : iterator of RecordBatch
        Batches of one schema.
    rows : int
        A batch with so many rows is large enough.
    """
    waiting: list[pa.RecordBatch] = []
    count = size = passed = 0
    for batch in batches:
        waiting.append(batch)
        count += batch.num_rows
        size += batch.nbytes
        if count >= min(rows, passed) or size >= MOST_BYTES:
            passed += count
            yield _one(waiting)
            waiting, count, size = [], 0, 0
    if waiting:
        yield _one(waiting)


def _one(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    return batches[0] if len(batches) == 1 else joined(batches)


# The left and the right rows of tagged batches, as two tables.


def split_sides(
    batches: Sequence[pa.RecordBatch], layout: TaggedLayout
) -> tuple[pa.Table, pa.Table]:
    """Return the left and the right rows of tagged batches, each in their order."""
    sides = []
    for side, schema in ((LEFT, layout.left), (RIGHT, layout.right)):
        own = [
            pa.RecordBatch.from_arrays(
                batch.filter(pc.equal(batch.column(layout.side), side)).columns[
                    layout.slices[side]
                ],
                schema=schema,
            )
            for batch in batches
        ]
        sides.append(pa.Table.from_batches(own, schema))
    return sides[LEFT], sides[RIGHT]


# The rows of a range of a count-based window as they pass: the halo is cut down to the window.

_SIDES = ("left", "right")


@dataclass(eq=False)
class RangeRows:
    """Filter of the own rows of a range, and of as many halo rows as the window holds.

    A task knows from the rows which range they were sent to; its own number can be another one, as
    in a union with other frames.

    Parameters
    ----------
    counts : HaloCounts
        How many rows of either side there must be, and how many of the halo are needed.
    size : int, optional
        Of the window: then a column tells which rows the range answers for if they come alone. A
        row leaves the window with the row of its own side that is so many rows behind it. The range
        answers for the row if that one is its own; the last range also if there is none. Which rows
        are the last ones of a range is known from the counts only.
    """

    counts: HaloCounts
    size: int | None = None

    def __post_init__(self) -> None:
        self._part: int | None = None
        self._halo = [0, 0]  # rows of either side in the halo so far
        self._passed = [0, 0]
        self._is_complete = False

    def see(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return ``batch`` without the halo rows that no row of the range meets.

        Raises
        ------
        FailureError
            If there are more or fewer halo rows than were counted when the ranges were cut.
        """
        if self._part is None and batch.num_rows:
            self._part = batch.column("part")[0].as_py()
        passed = batch if self._is_complete or not batch.num_rows else self._needed(batch)
        return passed if self.size is None else self._flagged(passed, self.size)

    def finish(self) -> None:
        """No rows follow; raises like :meth:`see`, and for own rows too if they may come alone."""
        if self._part is None:
            return
        self._require_halo(self._part)
        if self.size is not None:
            needed = self.counts.needed[self._part]
            own = [rows - halo for rows, halo in zip(self._passed, needed, strict=True)]
            self._require(own, self.counts.own[self._part], "rows")

    def _needed(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        assert self._part is not None
        halo = batch.column("halo").to_numpy(zero_copy_only=False)
        sides = batch.column("side").to_numpy()
        kept = np.ones(batch.num_rows, np.bool_)
        sent, needed = self.counts.sent[self._part], self.counts.needed[self._part]
        for side in range(len(_SIDES)):
            rows = np.flatnonzero(halo & (sides == side))
            kept[rows[: max(0, sent[side] - needed[side] - self._halo[side])]] = False
            self._halo[side] += len(rows)
        if not halo.all():
            self._require_halo(self._part)
        return batch if kept.all() else batch.filter(pa.array(kept))

    def _flagged(self, batch: pa.RecordBatch, size: int) -> pa.RecordBatch:
        """Return rows with the column :data:`ALONE_COLUMN`."""
        sides = batch.column("side").to_numpy()
        alone = np.zeros(batch.num_rows, np.bool_)
        for side in range(len(_SIDES)):
            rows = np.flatnonzero(sides == side)
            if len(rows):
                assert self._part is not None  # there is a row
                halo, own = (
                    counts[self._part][side] for counts in (self.counts.needed, self.counts.own)
                )
                pushed_by = size + self._passed[side] + np.arange(len(rows))
                is_last = self._part == len(self.counts.own) - 1
                alone[rows] = (pushed_by >= halo) & (is_last | (pushed_by < halo + own))
                self._passed[side] += len(rows)
        return batch.append_column(ALONE_COLUMN, pa.array(alone))

    def _require_halo(self, part: int) -> None:
        self._require(self._halo, self.counts.sent[part], "rows in its halo")
        self._is_complete = True

    def _require(self, found: Sequence[int], expected: Sequence[int], what: str) -> None:
        for name, rows, counted in zip(_SIDES, found, expected, strict=True):
            if rows != counted:
                raise FailureError(
                    f"The {name} input changed while it was joined: range {self._part} of the "
                    f"order column has {rows:,} {what}, not {counted:,} as counted before; write "
                    f"the input to a table or persist() it, or take partitions=1."
                )


# What is required of the rows of one side: a place in time, and the declared order.


@dataclass(eq=False)
class SideCheck:
    """Check of the rows of one side of a partition as they pass.

    Row numbers must rise with the times where an input was declared sorted. A range of time begins
    with the last rows before it, as halo rows, so a row that goes back in time is found in some
    range, wherever it stands. Where each partition of the input was declared sorted by itself, row
    numbers must rise within each partition.

    Parameters
    ----------
    side : str
        Of which input, for messages.
    order : str
        Its order column.
    is_sorted : bool
        Whether the input was declared sorted.
    columns : sequence of str
        Its columns, to show a row with.
    first : int
        Place of the first of them in the batches.
    per_partition : bool
        Whether that was declared of each partition of the input by itself.
    """

    side: str
    order: str
    is_sorted: bool
    columns: Sequence[str]
    first: int
    per_partition: bool = False

    def __post_init__(self) -> None:
        self._last: dict[int, tuple[int, object]] = {}  # by partition, 0 for a whole input

    def see(self, batch: pa.RecordBatch, mask: pa.Array) -> None:
        """Check the rows of ``batch`` that ``mask`` selects; they come sorted by order and row.

        Raises
        ------
        OrderError
            If a row has no time, or goes back in time, showing it.
        """
        order = batch.column("order")
        if not (self.is_sorted or order.null_count):
            return
        rows, order = (column.filter(mask) for column in (batch.column("row"), order))
        if order.null_count:
            # Spark's row numbers say nothing to a user, so the row itself is shown. Nulls sort
            # first, by the numbers of their rows.
            raise OrderError.null(f"{self.side}.{self.order}", row=self._row(batch.filter(mask)))
        if not self.is_sorted or not len(rows):
            return
        numbers = rows.to_numpy()
        if not self.per_partition:
            self._require_rising(0, numbers, order)
            return
        partitions = numbers >> ROW_BITS
        for partition in np.unique(partitions).tolist():
            (own,) = np.nonzero(partitions == partition)
            self._require_rising(partition, numbers[own], order.take(pa.array(own)))

    def _require_rising(self, source: int, numbers: Int64s, order: pa.Array) -> None:
        """Raise if a later time belongs to an earlier row of the same source."""
        last = self._last.get(source)
        if last is not None and numbers[0] < last[0]:
            self._raise(last[0], last[1], order[0].as_py())
        (falls,) = np.nonzero(numbers[1:] < numbers[:-1])
        if len(falls):
            at = int(falls[0])
            self._raise(int(numbers[at]), order[at].as_py(), order[at + 1].as_py())
        self._last[source] = int(numbers[-1]), order[len(order) - 1].as_py()

    def _row(self, batch: pa.RecordBatch) -> dict[str, object]:
        """Return the first row of ``batch`` by the names of its columns."""
        places = list(range(self.first, self.first + len(self.columns)))
        return row_at(batch.select(places).rename_columns(list(self.columns)), 0)

    def _raise(self, row: int, earlier: object, later: object) -> None:
        partition, within = source_of(row)
        raise OrderError.disorder(
            f"{self.side}.{self.order}",
            within,
            later,
            earlier,
            part=partition if partition or self.per_partition else None,
        )


# The rows of one partition as they pass by: laid out, counted and checked.


class PartitionRows:
    """The rows of a partition as they pass.

    Parameters
    ----------
    batches : iterator of RecordBatch
        Tagged batches.
    task : TaggedTask
        Columns of the inputs; the order columns, the type of the join, and whether the inputs were
        declared sorted; how large the halos of a count-based window are.

    Attributes
    ----------
    layout : TaggedLayout
        Where the columns stand, by the types that they have here, which can differ in little from
        those that Spark announced.
    counts : list of int
        Rows of either side so far, without halo rows.
    halo_rows : int
        Halo rows so far, without those that the window does not hold any more.
    """

    def __init__(self, batches: Iterator[pa.RecordBatch], task: "TaggedTask") -> None:
        left, right, query, halos = task.left, task.right, task.query, task.halos
        first = next(batches, None)
        self._batches = batches if first is None else chain([first], batches)
        self._range: RangeRows | None = None
        come_alone = halos is not None and query.how is not JoinType.INNER
        if halos is not None:
            assert isinstance(query.window, CountWindow)  # what halos are counted for
            self._range = RangeRows(halos, query.window.size if come_alone else None)
        if first is not None:
            self._schema = first.schema
        else:
            tags = [("side", pa.int8()), ("order", pa.int64()), ("row", pa.int64())]
            payload = [
                (f"{letter}{index}", kind)
                for letter, columns in zip(PAYLOAD, (left, right), strict=True)
                for index, kind in enumerate(columns.types)
            ]
            self._schema = pa.schema([*tags, *payload])
        if come_alone and first is not None:
            self._schema = self._schema.append(pa.field(ALONE_COLUMN, pa.bool_()))
        types = self._schema.types[len(TAG_COLUMNS) :]
        shared = f"{SHARED}0" in self._schema.names
        middle = 0 if shared else len(left)
        self._checks = [
            SideCheck(
                side,
                order,
                bool(query.sorted),
                columns.names,
                len(TAG_COLUMNS) + place,
                per_partition=query.per_partition,
            )
            for side, order, columns, place in zip(
                ("left", "right"), query.time, (left, right), (0, middle), strict=True
            )
        ]
        self._halo = HALO_COLUMNS[1] if HALO_COLUMNS[1] in self._schema.names else None
        self.layout = TaggedLayout(
            pa.schema(zip(left.names, types[: len(left)], strict=True)),
            pa.schema(zip(right.names, types[middle : middle + len(right)], strict=True)),
            len(TAG_COLUMNS),
            shared=shared,
            halo=self._halo,
            alone=ALONE_COLUMN if ALONE_COLUMN in self._schema.names else None,
        )
        self.counts = [0, 0]
        self.halo_rows = 0

    @property
    def counted(self) -> dict[str, int]:
        """The rows so far, by the fields of :class:`~spark_offload.measures.TaskMetrics`."""
        left, right = self.counts
        return {"left_rows": left, "right_rows": right, "halo_rows": self.halo_rows}

    def reader(self) -> pa.RecordBatchReader:
        """Return the batches, to be read once."""
        return pa.RecordBatchReader.from_batches(self._schema, self._passing())

    def _passing(self) -> Iterator[pa.RecordBatch]:
        for batch in self._batches:
            kept = batch if self._range is None else self._range.see(batch)
            if kept.num_rows:
                self._see(kept)
                yield kept
        if self._range is not None:
            self._range.finish()

    def _see(self, batch: pa.RecordBatch) -> None:
        """Count and check the rows of both sides."""
        halo = None if self._halo is None else batch.column(self._halo)
        for side in (LEFT, RIGHT):
            mask = pc.equal(batch.column("side"), pa.scalar(side, pa.int8()))
            count = mask.true_count
            self._checks[side].see(batch, mask)
            halos = 0 if halo is None else pc.and_(mask, halo).true_count
            self.counts[side] += count - halos
            self.halo_rows += halos


@dataclass(frozen=True, kw_only=True)
class TaggedTask(Task):
    """Description of the tasks that read tagged rows.

    Parameters
    ----------
    query : Query
        What is joined.
    left, right : Schema
        Columns of the inputs.
    halos : HaloCounts, optional
        For a count-based window over ranges of time: how large the halos are.
    stored : StoredRanges, optional
        What reads the rows of a range, if the task does that by itself.
    """

    query: Query
    left: pa.Schema
    right: pa.Schema
    halos: HaloCounts | None = None
    stored: StoredRanges | None = None

    def rows(self, batches: Iterator[pa.RecordBatch]) -> PartitionRows:
        """Return the rows of a partition as they pass."""
        large = gathered(
            batches if self.stored is None else self.stored.tagged(batches), BUFFER_ROWS
        )
        return PartitionRows(large, self)

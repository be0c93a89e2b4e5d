# SPDX-License-Identifier: Apache-2.0
"""The pairs of a micro-batch that were not there before, found in two passes of a device.

A pair is new if at least one of its rows is. The first pass joins the new left rows with all right
rows, the second one the kept left rows with the new right rows: together every new pair once, and
no pair of two kept rows, which was found when the later of them came. So a row has matched if it is
in a pair of some micro-batch.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from host import Device, JoinError
from host.arrays import Bools, Int64s, UInt64s
from host.columns.fields import TermTypes, bounds_of
from host.columns.kinds import column_type, common_tick, contiguous, integer_view, validity
from host.devices.software import on_device_or_software
from host.query.queries import Query
from host.reference.types import JoinType
from host.session.join import Join
from spark_offload.partitioning.tagged import LEFT, RIGHT
from spark_offload.stream.state import KeptPart
from spark_offload.stream.task import StreamTask, microseconds

__all__ = [
    "NewPairs",
    "Reduction",
    "Rows",
    "reach",
]

Range = tuple[int, int]


@dataclass(frozen=True)
class Rows:
    """Rows of one side.

    Parameters
    ----------
    kept : list of KeptPart
        Those that came in earlier micro-batches.
    new : Table
        Those of this one.
    """

    kept: list[KeptPart]
    new: pa.Table

    @property
    def kept_count(self) -> int:
        """How many rows were kept."""
        return sum(part.rows.num_rows for part in self.kept)

    @property
    def count(self) -> int:
        """How many rows there are."""
        return self.kept_count + int(self.new.num_rows)


def reach(table: pa.Table, order: str, width: int) -> Range | None:
    """Return the first and the last microsecond that rows of ``table`` can meet; None if empty."""
    if not table.num_rows:
        return None
    times = microseconds(table, order)
    return int(times.min()) - width, int(times.max()) + width


# Rows that can have a partner among others, found before a device is sent any: a semi-join.
#
# A micro-batch brings few rows, and of the many that are kept only those matter that share a
# value with one of them. The values of all terms are cut into cells as wide as a term's range of
# differences, so that the partners of a row lie in at most two cells of a field. The cells that
# new rows reach are marked in a table of bits, by a hash; a kept row whose own cell is not marked
# has no partner. A few rows remain that have none either, which does no harm.
#
# So what a device is sent, and what it finds, goes by what a micro-batch brings, and not by what
# is kept.

_FARTHEST = 1 << 61
"""Values and bounds below this have cells; sums of two fit into 64 bits."""

_CELLS = 64
"""Bits of the table for every cell that is marked, at least: about one in so many is by chance."""

_FACTORS = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9], np.uint64)
"""Odd factors of the hash, one for each field; further terms tell nothing more."""


@dataclass(frozen=True)
class _Field:
    """A term whose values are cut into cells; bounds and values in ticks."""

    types: TermTypes
    factors: tuple[int, int]
    low: int
    high: int

    @property
    def width(self) -> int:
        """Of a cell."""
        return self.high - self.low + 1

    def values(self, table: pa.Table, side: int) -> tuple[Int64s, Bools | None] | None:
        """Return the values of a side, and which are not null; None if one has no cell."""
        column = self.types.columns[side]
        array = column.comparable(contiguous(table.column(column.column)))
        view, valid = integer_view(array), validity(array)
        known = view if valid is None else view[valid]
        factor = self.factors[side]
        if len(known) and max(-int(known.min()), int(known.max())) * factor >= _FARTHEST:
            return None
        return view.astype(np.int64) * np.int64(factor), valid

    def reached(self, values: Int64s, side: int) -> tuple[Int64s, ...]:
        """Return the cells, one or two for each row of a side, in which its partners lie."""
        first = values + np.int64(-self.high if side == 0 else self.low)
        if self.width == 1:
            return (first,)
        return first // self.width, (first + (self.width - 1)) // self.width


class Reduction:
    """Filter of the rows of one side that can have a partner among those of the other.

    Terms that compare text, floating-point numbers, or with an open bound are left to the device.

    Parameters
    ----------
    query : Query
        The join.
    left, right : Schema
        Columns of both sides.
    """

    def __init__(self, query: Query, left: pa.Schema, right: pa.Schema) -> None:
        fields = []
        for term in query.terms:
            types = TermTypes.of(
                term, column_type(left, term.left, "left"), column_type(right, term.right, "right")
            )
            if types.left.kind.is_coded or term.low is None or term.high is None:
                continue
            tick, factors = common_tick(*types.columns)
            bounds = bounds_of(types, tick, 1)
            assert bounds.low is not None
            assert bounds.high is not None
            if bounds.low <= bounds.high and max(-bounds.low, bounds.high) < _FARTHEST:
                fields.append(_Field(types, factors, bounds.low, bounds.high))
        self._fields = fields[: len(_FACTORS)]

    def cells(self, rows: pa.Table, side: int) -> "Cells | None":
        """Return the cells that rows of a side lie in; None if nothing is known of them."""
        own = self._values(rows, side)
        if own is None:
            return None
        cells = [
            values // field.width for field, (values, _) in zip(self._fields, own, strict=True)
        ]
        valid = [known for _, known in own if known is not None]
        known = np.logical_and.reduce(valid) if valid else None
        return Cells((_hashes(cells) >> np.uint64(32)).astype(np.uint32), known)

    def reached(self, rows: pa.Table, side: int) -> "_ReachedCells | None":
        """Return the cells in which partners of rows of a side lie; None if nothing is known."""
        met = self._values(rows, side)
        if met is None:
            return None
        fields = zip(self._fields, met, strict=True)
        return _ReachedCells([field.reached(values, side) for field, (values, _) in fields])

    def _values(self, rows: pa.Table, side: int) -> list[tuple[Int64s, Bools | None]] | None:
        """Return the values of all fields, and which are not null; None if nothing is known."""
        found = [field.values(rows, side) for field in self._fields]
        known = [values for values in found if values is not None]
        return known if known and len(known) == len(found) else None


@dataclass(frozen=True)
class Cells:
    """The cells that some rows lie in.

    Parameters
    ----------
    hashes : array of uint32
        Of the cell of each row.
    known : array of bool, or None
        Rows that compare no null; None: all of them.
    """

    hashes: npt.NDArray[np.uint32]
    known: Bools | None


class _ReachedCells:
    """A table of bits of the cells in which some rows have partners.

    Parameters
    ----------
    marks : sequence of tuple of array
        For each field the cells, one or two for each row, that it reaches.
    """

    def __init__(self, marks: Sequence[tuple[Int64s, ...]]) -> None:
        bits = max(10, (_CELLS * len(marks[0][0]) << len(marks)).bit_length())
        self._shift = 32 - min(bits, 32)
        self._marked = np.zeros(1 << 32 - self._shift, np.bool_)
        for cells in product(*marks):
            self._marked[_hashes(cells) >> np.uint64(32 + self._shift)] = True

    def among(self, cells: Cells) -> Bools:
        """Return which of the rows with these cells can have a partner."""
        found: Bools = self._marked[cells.hashes >> np.uint32(self._shift)]
        return found if cells.known is None else found & cells.known


def _hashes(cells: Sequence[Int64s]) -> UInt64s:
    """Return a hash for each cell, of which the first bits are the best."""
    mixed = np.zeros(len(cells[0]), np.uint64)
    for cell, factor in zip(cells, _FACTORS, strict=False):
        mixed = (mixed ^ cell.view(np.uint64)) * factor
        mixed ^= mixed >> np.uint64(29)
    return mixed * _FACTORS[0]


# The pairs themselves.


@dataclass(eq=False)
class NewPairs:
    """The new pairs of one group in one micro-batch.

    Parameters
    ----------
    task : StreamTask
        What to join.
    device : Device
        An open device.
    left, right : Rows
        The rows of both sides.
    software : callable, optional
        Opens a device that holds windows, times and values of any size, for a pass whose rows
        ``device`` cannot hold; without it that is an error.

    Attributes
    ----------
    results, cycles : int
        Pairs of the answer, and clock cycles that the device ran, so far.
    device_seconds : float
        Time spent in the device so far.
    software_rows : int
        Rows of both sides that software joined instead of the device, so far.
    matched : tuple of array of bool
        By side: which rows, the kept ones first, have matched so far; not told of an inner join.
    """

    task: StreamTask
    device: Device
    left: Rows
    right: Rows
    software: Callable[[], Device] | None = None

    def __post_init__(self) -> None:
        task = self.task
        self._how = task.query.how
        self._query = replace(task.query, how=JoinType.INNER)
        self._reduction = Reduction(task.query, task.left, task.right)
        self.matched = (np.zeros(self.left.count, np.bool_), np.zeros(self.right.count, np.bool_))
        self.results = 0
        self.cycles = 0
        self.device_seconds = 0.0
        self.software_rows = 0

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the pairs of the answer: the left columns, then the right ones."""
        left, right = self.left, self.right
        new_left, new_right = KeptPart(left.new), KeptPart(right.new)
        yield from self._pass([new_left], [*right.kept, new_right], (left.kept_count, 0))
        yield from self._pass(left.kept, [new_right], (0, right.kept_count))

    def _pass(
        self, left: Sequence[KeptPart], right: Sequence[KeptPart], firsts: tuple[int, int]
    ) -> Iterator[pa.RecordBatch]:
        """Yield the pairs of some rows; ``firsts`` are the numbers of the first ones of a side."""
        # The larger side first: the rows that are kept, by those that have come.
        if _count(left) > _count(right):
            lefts, left_rows = self._with_partners(left, firsts, LEFT, _table(right))
            rights, right_rows = self._with_partners(right, firsts, RIGHT, lefts)
        else:
            rights, right_rows = self._with_partners(right, firsts, RIGHT, _table(left))
            lefts, left_rows = self._with_partners(left, firsts, LEFT, rights)
        if not lefts.num_rows or not rights.num_rows:
            return
        join = self._join(lefts, rights)
        for batch in join.batches():
            if self._how.has_pairs:
                self.results += batch.num_rows
                yield batch
        for flags, numbers, rows in zip(
            self.matched, (left_rows, right_rows), join.measured.pairs, strict=True
        ):
            flags[numbers[rows]] = True
        self.cycles += join.measured.cycles
        self.device_seconds += join.measured.seconds

    def _join(self, left: pa.Table, right: pa.Table) -> Join:
        """Return the join on the device, or in software if the device cannot hold the rows.

        That is known of whole tables before a row is sent.
        """

        def joined(device: Device) -> Join:
            record = self._how is not JoinType.INNER
            return Join(left, right, self._query, device, record=record, threads=1)

        def told(_: JoinError) -> None:
            self.software_rows += left.num_rows + right.num_rows

        return on_device_or_software(joined, self.device, self.software, told)

    def _with_partners(
        self, parts: Sequence[KeptPart], firsts: tuple[int, int], side: int, others: pa.Table | None
    ) -> tuple[pa.Table, Int64s]:
        """Return the rows that can have a partner among those of the other side.

        Returns
        -------
        rows : Table
            These rows.
        numbers : array of int
            Their numbers among all rows of the side.
        """
        nothing = self.task.schema(side).empty_table(), np.zeros(0, np.int64)
        if others is None or not others.num_rows:
            return nothing
        reached = self._reduction.reached(others, 1 - side)
        find = partial(self._reduction.cells, side=side)
        tables, numbers, first = [], [], firsts[side]
        for part in parts:
            table = part.rows
            cells = None if reached is None else part.once(find)
            if reached is None or cells is None:
                chosen = np.arange(table.num_rows)
            else:
                chosen = np.flatnonzero(reached.among(cells))
                table = table if len(chosen) == table.num_rows else table.take(pa.array(chosen))
            tables.append(table)
            numbers.append(first + chosen)
            first += part.rows.num_rows
        if not tables:
            return nothing
        return self._within_reach(pa.concat_tables(tables), np.concatenate(numbers), side, others)

    def _within_reach(
        self, table: pa.Table, numbers: Int64s, side: int, others: pa.Table
    ) -> tuple[pa.Table, Int64s]:
        """Return the rows that are near enough to some row of the other side, and their numbers."""
        span = reach(others, self.task.times[1 - side], self.task.width)
        assert span is not None
        times = microseconds(table, self.task.times[side])
        near: Bools = (times >= span[0]) & (times <= span[1])
        return (table, numbers) if near.all() else (table.filter(pa.array(near)), numbers[near])


def _count(parts: Sequence[KeptPart]) -> int:
    return sum(part.rows.num_rows for part in parts)


def _table(parts: Sequence[KeptPart]) -> pa.Table | None:
    """Return the rows of all parts; None if there are no parts."""
    return pa.concat_tables([part.rows for part in parts]) if parts else None

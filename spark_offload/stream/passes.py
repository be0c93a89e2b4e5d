# SPDX-License-Identifier: Apache-2.0
"""The pairs of a micro-batch that were not there before, found in two passes of a device.

A pair is new if at least one of its rows is. The first pass joins the new left rows with all right
rows, the second one the kept left rows with the new right rows: together every new pair once, and
no pair of two kept rows, which was found when the later of them came. So a row has matched if it is
in a pair of some micro-batch.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from host import Device, JoinError
from host.devices.software import on_device_or_software
from host.reference.types import JoinType
from host.session.join import Join
from spark_offload.partitioning.tagged import LEFT, RIGHT
from spark_offload.stream.reduction import KeptPart, Reduction
from spark_offload.stream.task import StreamTask, microseconds

__all__ = [
    "NewPairs",
    "Rows",
    "reach",
]

Bools = npt.NDArray[np.bool_]
Int64s = npt.NDArray[np.int64]
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

    def __init__(
        self,
        task: StreamTask,
        device: Device,
        left: Rows,
        right: Rows,
        software: Callable[[], Device] | None = None,
    ) -> None:
        self._task = task
        self._device = device
        self._software = software
        self._left = left
        self._right = right
        self._how = task.query.how
        self._query = replace(task.query, how=JoinType.INNER)
        self._reduction = Reduction(task.query, task.left, task.right)
        self.matched = (np.zeros(left.count, np.bool_), np.zeros(right.count, np.bool_))
        self.results = 0
        self.cycles = 0
        self.device_seconds = 0.0
        self.software_rows = 0

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the pairs of the answer: the left columns, then the right ones."""
        left, right = self._left, self._right
        new_left = _Part(KeptPart(left.new), left.kept_count)
        new_right = _Part(KeptPart(right.new), right.kept_count)
        yield from self._pass([new_left], [*_numbered(right.kept), new_right])
        yield from self._pass(_numbered(left.kept), [new_right])

    def _pass(self, left: list["_Part"], right: list["_Part"]) -> Iterator[pa.RecordBatch]:
        # The larger side first: the rows that are kept, by those that have come.
        if _count(left) > _count(right):
            lefts, left_rows = self._with_partners(left, LEFT, _table(right))
            rights, right_rows = self._with_partners(right, RIGHT, lefts)
        else:
            rights, right_rows = self._with_partners(right, RIGHT, _table(left))
            lefts, left_rows = self._with_partners(left, LEFT, rights)
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

        return on_device_or_software(joined, self._device, self._software, told)

    def _with_partners(
        self, parts: list["_Part"], side: int, others: pa.Table | None
    ) -> tuple[pa.Table, Int64s]:
        """Return the rows that can have a partner among those of the other side.

        Returns
        -------
        rows : Table
            These rows.
        numbers : array of int
            Their numbers among all rows of the side.
        """
        nothing = self._task.schema(side).empty_table(), np.zeros(0, np.int64)
        if others is None or not others.num_rows:
            return nothing
        reached = self._reduction.reached(others, 1 - side)
        tables, numbers = [], []
        for part in parts:
            table = part.held.rows
            cells = None if reached is None else part.held.cells(self._reduction, side)
            if reached is None or cells is None:
                chosen = np.arange(table.num_rows)
            else:
                chosen = np.flatnonzero(reached.among(cells))
                table = table if len(chosen) == table.num_rows else table.take(pa.array(chosen))
            tables.append(table)
            numbers.append(part.first + chosen)
        if not tables:
            return nothing
        return self._within_reach(pa.concat_tables(tables), np.concatenate(numbers), side, others)

    def _within_reach(
        self, table: pa.Table, numbers: Int64s, side: int, others: pa.Table
    ) -> tuple[pa.Table, Int64s]:
        """Return the rows that are near enough to some row of the other side, and their numbers."""
        span = reach(others, self._task.order(1 - side), self._task.width)
        assert span is not None
        times = microseconds(table, self._task.order(side))
        near: Bools = (times >= span[0]) & (times <= span[1])
        return (table, numbers) if near.all() else (table.filter(pa.array(near)), numbers[near])


@dataclass(frozen=True)
class _Part:
    """Some rows of a side, and the number of the first one among all of them."""

    held: KeptPart
    first: int


def _numbered(parts: list[KeptPart]) -> list[_Part]:
    """Return parts that follow one another with the numbers of their first rows."""
    found, first = [], 0
    for part in parts:
        found.append(_Part(part, first))
        first += part.rows.num_rows
    return found


def _count(parts: list[_Part]) -> int:
    return sum(part.held.rows.num_rows for part in parts)


def _table(parts: list[_Part]) -> pa.Table | None:
    """Return the rows of all parts; None if there are no parts."""
    return pa.concat_tables([part.held.rows for part in parts]) if parts else None

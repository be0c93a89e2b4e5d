# SPDX-License-Identifier: Apache-2.0
"""What is remembered of the rows that were sent: stores of rows, logs of sides, and flags."""

from abc import ABC, abstractmethod
from bisect import bisect_right
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from host.arrays import Bools, Int64s, UInt64s, inverse
from host.columns.kinds import contiguous
from host.runtime import ColumnLog, Columns

__all__ = [
    "RowStore",
    "Rows",
    "SharedRows",
    "TableRows",
    "TrackedRows",
    "joined",
]

# Stores of the rows that later pairs can refer to, by row number.


#: Batches are joined up to this number of rows, so that a window consists of few batches.
COALESCED = 1 << 14
#: If the batches have this many times more rows than are taken, rows are taken batch by batch.
SPARSE = 8


class Rows(ABC):
    """Rows of one side, numbered from the beginning of its stream.

    Attributes
    ----------
    first : int
        Number of the first row.
    """

    first = 0

    @abstractmethod
    def take(self, numbers: Int64s, columns: slice = slice(None)) -> list[pa.Array]:
        """Return rows, at least one, or some of their columns, in the order of ``numbers``."""

    @abstractmethod
    def append(self, batch: pa.RecordBatch) -> None:
        """Add the next rows."""

    def forget(self, before: int) -> None:
        """Release rows with lower numbers."""
        del before  # by default, nothing is released

    @abstractmethod
    def clear(self) -> None:
        """Start again with row zero."""

    def original(self, numbers: Int64s) -> Int64s:
        """Return the numbers by which the user knows these rows."""
        return numbers


class TableRows(Rows):
    """Rows of a table that is in memory.

    Parameters
    ----------
    table : pa.Table
        The table.
    order : array of int64, optional
        Row numbers of the table in the order of arrival, if that is not the table's order.
    """

    def __init__(self, table: pa.Table, order: Int64s | None = None) -> None:
        self._columns = [contiguous(column) for column in table.columns]
        self._order = order

    def take(self, numbers: Int64s, columns: slice = slice(None)) -> list[pa.Array]:
        indices = pa.array(self.original(numbers))
        return [_taken(column, indices) for column in self._columns[columns]]

    def append(self, batch: pa.RecordBatch) -> None:
        del batch  # the batch is a part of the table

    def clear(self) -> None:
        """Keep all rows."""

    def original(self, numbers: Int64s) -> Int64s:
        return numbers if self._order is None else self._order[numbers]


class RowStore(Rows):
    """Rows of a stream, kept in batches until they are forgotten.

    Whole batches are forgotten, so at most one batch is kept in addition to the rows that later
    pairs can refer to.

    Parameters
    ----------
    first : int
        Number of the first row.
    """

    def __init__(self, first: int = 0) -> None:
        self.first = first
        self.clear()

    def clear(self) -> None:
        self._batches: list[pa.RecordBatch] = []
        self._firsts: list[int] = []  # number of the first row of each batch
        self.count = self.first  # number of the next row

    @property
    def batches(self) -> int:
        """Number of batches in which rows are stored now."""
        return len(self._batches)

    @property
    def kept(self) -> int:
        """Number of rows that are stored now."""
        return self.count - self._firsts[0] if self._firsts else 0

    def append(self, batch: pa.RecordBatch) -> None:
        if not batch.num_rows:
            return
        self._batches.append(batch)
        self._firsts.append(self.count)
        self.count += batch.num_rows
        # As in a binary counter, every row is copied only a few times.
        while len(self._batches) > 1 and self._is_small():
            last = self._batches.pop()
            self._firsts.pop()
            self._batches[-1] = joined([self._batches[-1], last])

    def _is_small(self) -> bool:
        before, last = (batch.num_rows for batch in self._batches[-2:])
        return before <= 2 * last and before + last <= COALESCED

    def forget(self, before: int) -> None:
        gone = bisect_right(self._firsts, before) - 1
        if gone > 0:
            del self._batches[:gone]
            del self._firsts[:gone]

    def take(self, numbers: Int64s, columns: slice = slice(None)) -> list[pa.Array]:
        begin = bisect_right(self._firsts, int(numbers.min())) - 1
        end = bisect_right(self._firsts, int(numbers.max()))
        if begin < 0:
            raise IndexError(f"Row {int(numbers.min())} has been forgotten")
        batches, first = self._batches[begin:end], self._firsts[begin]
        wanted = range(batches[0].num_columns)[columns]
        if len(batches) == 1:
            indices = pa.array(numbers - first)
            return [_taken(batches[0].column(index), indices) for index in wanted]
        if sum(batch.num_rows for batch in batches) > SPARSE * len(numbers):
            return self._take_sparsely(numbers, begin, end, wanted)
        # Arrow first joins the batches into one array, which costs less than sorting the numbers.
        indices = pa.array(numbers - first)
        return [
            contiguous(
                _taken(pa.chunked_array([batch.column(index) for batch in batches]), indices)
            )
            for index in wanted
        ]

    def _take_sparsely(
        self, numbers: Int64s, begin: int, end: int, wanted: range
    ) -> list[pa.Array]:
        """Take a few rows from each of many batches, then restore their order."""
        order = np.argsort(numbers, kind="stable")
        ascending = numbers[order]
        ends = np.searchsorted(ascending, np.array([*self._firsts[begin + 1 : end], self.count]))
        parts, done = [], 0
        for index, stop in zip(range(begin, end), ends.tolist(), strict=True):
            if stop > done:
                indices = pa.array(ascending[done:stop] - self._firsts[index])
                parts.append([self._batches[index].column(at).take(indices) for at in wanted])
                done = stop
        places = pa.array(inverse(order))
        return [pa.concat_arrays(column).take(places) for column in zip(*parts, strict=True)]


class SharedRows(Rows):
    """Rows of one side in a store whose batches hold the columns of both sides.

    Parameters
    ----------
    store : RowStore
        Store of both sides. Rows are numbered over both sides.
    columns : slice
        Columns of this side.
    """

    def __init__(self, store: RowStore, columns: slice) -> None:
        self._store = store
        self.first = store.first
        self._columns = columns
        self._others: list[SharedRows] = [self]
        self._needed = 0

    @classmethod
    def pair(cls, store: RowStore, left: slice, right: slice) -> "tuple[Rows, Rows]":
        """Return the rows of both sides; rows are forgotten when neither side needs them."""
        pair = cls(store, left), cls(store, right)
        pair[0]._others = pair[1]._others = list(pair)
        return pair

    def take(self, numbers: Int64s, columns: slice = slice(None)) -> list[pa.Array]:
        mine = range(self._columns.stop)[self._columns][columns]
        return self._store.take(numbers, slice(mine.start, mine.stop))

    def append(self, batch: pa.RecordBatch) -> None:
        # A batch has rows of both sides, so only the left side adds it.
        if self is self._others[0]:
            self._store.append(batch)

    def forget(self, before: int) -> None:
        self._needed = before
        self._store.forget(min(rows._needed for rows in self._others))

    def clear(self) -> None:
        self._needed = 0
        self._store.clear()


def joined(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    """Return all rows of several batches as one batch."""
    columns = [
        pa.concat_arrays([batch.column(index) for batch in batches])
        for index in range(batches[0].num_columns)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=batches[0].schema)


def _taken(column: Any, indices: pa.Array) -> Any:
    """Take rows of a column, whose indices are known to be valid."""
    return pc.take(column, indices, boundscheck=False)


# The rows of one side that a later row can still match, with a flag for each that has matched.


class TrackedRows:
    """Rows in their order of arrival, kept from when they are taken until they leave the window.

    A flag per row records whether it has matched, so memory depends on the window.
    """

    def __init__(self) -> None:
        self._log = ColumnLog()

    def add(self, rows: Int64s, times: UInt64s, answered: Bools | None = None) -> None:
        """Add the next rows, which have not matched.

        Parameters
        ----------
        rows : array of int64
            Row numbers, strictly ascending.
        times : array of uint64
            Timestamps, which never decrease.
        answered : array of bool or None
            Whether each row belongs to the result if it comes alone; None if all do.
        """
        if answered is None:
            answered = np.ones(len(rows), np.bool_)
        columns = {"row": rows, "time": times, "answered": answered}
        self._log.append(Columns({**columns, "matched": np.zeros(len(rows), np.bool_)}))

    def mark(self, numbers: Int64s) -> None:
        """Record that the rows of these numbers, which must be stored, have matched."""
        rows = self._part("row")
        first, last = int(rows[0]), int(rows[-1])
        dense = last - first + 1 == len(rows)
        at = numbers - first if dense else np.searchsorted(rows, numbers)
        self._part("matched")[at] = True

    @property
    def oldest(self) -> int | None:
        """Number of the first row; None if there is no row."""
        return int(self._log.at("row", self._log.kept)) if len(self) else None

    @property
    def first(self) -> int:
        """Number of rows that have left."""
        return self._log.kept

    def __len__(self) -> int:
        return self._log.count - self._log.kept

    @property
    def times(self) -> UInt64s:
        """Timestamps of the stored rows."""
        times: UInt64s = self._part("time")
        return times

    def leave(self, count: int) -> Columns:
        """Remove the first ``count`` rows; return their row, time, answered and matched columns."""
        names = ("row", "time", "answered", "matched")
        gone = Columns({name: self._part(name)[:count].copy() for name in names})
        self._log.forget(self._log.kept + count)
        return gone

    def _part(self, name: str) -> Any:
        if not self._log.has(name):
            return np.zeros(0, np.uint64)
        return self._log.part(name, self._log.kept, self._log.count)

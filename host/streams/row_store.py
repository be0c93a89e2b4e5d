# SPDX-License-Identifier: Apache-2.0
"""The rows that pairs still to come can mean, found by their numbers."""

from abc import ABC, abstractmethod
from bisect import bisect_right
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from host.contiguous import contiguous

__all__ = ["RowStore", "Rows", "SharedRows", "TableRows", "joined"]

Int64s = npt.NDArray[np.int64]

#: Batches of fewer rows are put together, so that a window is made of few of them.
COALESCED = 1 << 14
#: If there are so many times more rows in the batches than are taken, each batch is taken from.
SPARSE = 8


class Rows(ABC):
    """Rows of one side, numbered from the beginning of its stream."""

    @abstractmethod
    def take(self, numbers: Int64s, columns: slice = slice(None)) -> list[pa.Array]:
        """Return rows, at least one, or some columns of them, in the order of ``numbers``."""

    @abstractmethod
    def append(self, batch: pa.RecordBatch) -> None:
        """Add the next rows."""

    def forget(self, before: int) -> None:
        """Let go of rows with lower numbers."""
        del before  # nothing to let go of here

    @abstractmethod
    def clear(self) -> None:
        """Begin anew, with row zero."""

    def original(self, numbers: Int64s) -> Int64s:
        """Return the numbers that the user knows these rows by."""
        return numbers


class TableRows(Rows):
    """Rows of a table, which lies in memory anyway.

    Parameters
    ----------
    table : pa.Table
        The rows.
    order : array of int64, optional
        Its rows in their order of arrival, if it is not that of the table.
    """

    def __init__(self, table: pa.Table, order: Int64s | None = None) -> None:
        self._columns = [contiguous(column) for column in table.columns]
        self._order = order

    def take(self, numbers: Int64s, columns: slice = slice(None)) -> list[pa.Array]:
        indices = pa.array(self.original(numbers))
        return [_taken(column, indices) for column in self._columns[columns]]

    def append(self, batch: pa.RecordBatch) -> None:
        del batch  # it is a part of the table

    def clear(self) -> None:
        """All rows stay."""

    def original(self, numbers: Int64s) -> Int64s:
        return numbers if self._order is None else self._order[numbers]


class RowStore(Rows):
    """Rows of a stream: the batches as they came, until they are forgotten.

    Forgetting lets go of whole batches, so as many rows are kept as can be meant by pairs still to
    come, and one batch.
    """

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        self._batches: list[pa.RecordBatch] = []
        self._firsts: list[int] = []  # number of the first row of each batch
        self.count = 0  # rows since the beginning

    @property
    def kept(self) -> int:
        """Rows that are there now."""
        return self.count - self._firsts[0] if self._firsts else 0

    def append(self, batch: pa.RecordBatch) -> None:
        if not batch.num_rows:
            return
        self._batches.append(batch)
        self._firsts.append(self.count)
        self.count += batch.num_rows
        # As with a binary counter, every row is copied a few times at most.
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
        # This makes one array of the batches first, which costs less than to sort the numbers.
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
        """Take a few rows from each of many batches, then put them into their order."""
        order = np.argsort(numbers, kind="stable")
        ascending = numbers[order]
        ends = np.searchsorted(ascending, np.array([*self._firsts[begin + 1 : end], self.count]))
        parts, done = [], 0
        for index, stop in zip(range(begin, end), ends.tolist(), strict=True):
            if stop > done:
                indices = pa.array(ascending[done:stop] - self._firsts[index])
                parts.append([self._batches[index].column(at).take(indices) for at in wanted])
                done = stop
        back = np.empty(len(order), np.int64)
        back[order] = np.arange(len(order))
        places = pa.array(back)
        return [pa.concat_arrays(column).take(places) for column in zip(*parts, strict=True)]


class SharedRows(Rows):
    """Rows of one side in a store whose batches hold both sides.

    Parameters
    ----------
    store : RowStore
        Of both sides; rows are numbered over both, and it is the store that they are added to.
    columns : slice
        Those of this side.
    """

    def __init__(self, store: RowStore, columns: slice) -> None:
        self._store = store
        self._columns = columns
        self._others: list[SharedRows] = [self]
        self._needed = 0

    @classmethod
    def pair(cls, store: RowStore, left: slice, right: slice) -> "tuple[Rows, Rows]":
        """Return the rows of both sides; only what neither needs is forgotten."""
        pair = cls(store, left), cls(store, right)
        pair[0]._others = pair[1]._others = list(pair)
        return pair

    def take(self, numbers: Int64s, columns: slice = slice(None)) -> list[pa.Array]:
        mine = range(self._columns.stop)[self._columns][columns]
        return self._store.take(numbers, slice(mine.start, mine.stop))

    def append(self, batch: pa.RecordBatch) -> None:
        # The left side adds for both, as a batch has rows of both.
        if self is self._others[0]:
            self._store.append(batch)

    def forget(self, before: int) -> None:
        self._needed = before
        self._store.forget(min(rows._needed for rows in self._others))

    def clear(self) -> None:
        self._needed = 0
        self._store.clear()


def joined(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    """All rows of several batches."""
    columns = [
        pa.concat_arrays([batch.column(index) for batch in batches])
        for index in range(batches[0].num_columns)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=batches[0].schema)


def _taken(column: Any, indices: pa.Array) -> Any:
    """Take rows of a column that are known to be there."""
    return pc.take(column, indices, boundscheck=False)

# SPDX-License-Identifier: Apache-2.0
"""Parts of a source, and whether their rows are in order, and distinct, as was declared."""

from collections.abc import Callable, Generator, Hashable, Iterable, Iterator, Sequence
import threading
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from host.encode.canonical import canonical_float
from host.encode.kinds import integer_view
from host.errors import FalseDistinctError, FalseOrderError
from host.streams.sort_keys import falls

__all__ = ["Split", "distinct_as_declared", "in_declared_order"]

#: Yields the batches of one part of a source; may be called in any thread.
Split: TypeAlias = Callable[[], Iterable[pa.RecordBatch]]


def in_declared_order(splits: Sequence[Split], by: Sequence[str], source: str) -> list[Split]:
    """Return parts of a source that raise :exc:`FalseOrderError` at a row that is out of order.

    Batches pass by reference. Each row is compared with the one before it: in its own part as it is
    read, across parts as soon as the end of one and the beginning of the next are known, in
    whatever threads and order parts are read. What is not read is not compared.

    Parameters
    ----------
    splits : sequence of callable
        The parts, in order.
    by : sequence of str
        Columns that all parts together are declared to be sorted by, ascending, nulls last. A
        column that a part does not have is left to those who look it up.
    source : str
        What the source is called in the message.
    """
    ends = _Ends(len(splits), by, source)
    return [_Part(split, number, ends) for number, split in enumerate(splits)]


def distinct_as_declared(splits: Sequence[Split], by: Sequence[str], source: str) -> list[Split]:
    """Return parts of a source that raise :exc:`FalseDistinctError` at a row that is repeated.

    Batches pass by reference. Each row is compared with all that were read before it, in whatever
    threads and order parts are read; so what their columns ``by`` hold is kept, as Python objects
    in a set. What is not read is not compared.

    Parameters
    ----------
    splits, source
        As for :func:`in_declared_order`.
    by : sequence of str
        Columns of which no two rows have the same values, where nulls equal nulls, and floats are
        compared as in SQL. A column that a part does not have is left to those who look it up.
    """
    keys = _Keys(len(splits), by, source)
    return [_DistinctPart(split, number, keys) for number, split in enumerate(splits)]


class _Keys:
    """Keys of the rows that have been read, and those of each part, guarded by a lock."""

    def __init__(self, parts: int, by: Sequence[str], source: str) -> None:
        self.by, self.source = list(by), source
        self._of_part: list[list[list[Hashable]]] = [[] for _ in range(parts)]
        self._seen: set[Hashable] = set()
        self._lock = threading.Lock()

    def begin(self, part: int) -> None:
        """Forget the keys of a part, which may be read again."""
        with self._lock:
            self._seen.difference_update(*self._of_part[part])
            self._of_part[part] = []

    def add(self, part: int, row: int, batch: pa.RecordBatch) -> None:
        """Keep the keys of the next rows of a part, of which the first has number ``row``."""
        columns = [_hashable(batch.column(name)) for name in self.by]
        keys: list[Hashable] = list(zip(*columns, strict=True)) if len(columns) > 1 else columns[0]
        fresh = set(keys)
        with self._lock:
            if len(fresh) < len(keys) or not self._seen.isdisjoint(fresh):
                self._refuse(keys, part, row, batch)
            self._seen |= fresh
            self._of_part[part].append(keys)

    def _refuse(self, keys: Sequence[Hashable], part: int, row: int, batch: pa.RecordBatch) -> None:
        met = self._seen.copy()
        for at, key in enumerate(keys):
            if key in met:
                values = batch.slice(at, 1).select(self.by).to_pylist()[0]
                place = part if len(self._of_part) > 1 else None
                raise FalseDistinctError(self.source, self.by, row + at, values, part=place)
            met.add(key)


class _DistinctPart:
    """A part whose rows are compared with all others while they are read."""

    def __init__(self, split: Split, number: int, keys: _Keys) -> None:
        self._split, self._number, self._keys = split, number, keys

    def __call__(self) -> Iterator[pa.RecordBatch]:
        self._keys.begin(self._number)
        row = 0
        batches = self._split()
        try:
            for batch in batches:
                if set(self._keys.by) <= set(batch.schema.names):
                    self._keys.add(self._number, row, batch)
                row += batch.num_rows
                yield batch
        finally:
            if isinstance(batches, Generator):
                batches.close()


def _hashable(column: pa.Array) -> list[Hashable]:
    """Return values that are equal, and have equal hashes, where those of the column are equal."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_floating(column.type):
        column = canonical_float(column)
    elif pa.types.is_temporal(column.type):
        column = pa.array(integer_view(column), mask=np.asarray(column.is_null()))
    values: list[Hashable] = column.to_pylist()
    return list(map(repr, values)) if pa.types.is_nested(column.type) else values


class _Ends:
    """First and last rows of the parts that have been read, guarded by a lock."""

    def __init__(self, parts: int, by: Sequence[str], source: str) -> None:
        self.by, self.source = list(by), source
        self._first: list[pa.RecordBatch | None] = [None] * parts
        self._last: list[pa.RecordBatch | None] = [None] * parts
        self._ended = [False] * parts
        self._lock = threading.Lock()

    @property
    def parts(self) -> int:
        return len(self._first)

    def begin(self, part: int, first: pa.RecordBatch) -> None:
        """Keep the first row of a part, and compare it with the row before it, if that is known."""
        with self._lock:
            self._first[part], self._last[part], self._ended[part] = first, None, False
            before = part - 1
            while before > 0 and self._ended[before] and self._last[before] is None:
                before -= 1
            if before >= 0 and self._ended[before]:
                self._compare(before, part)

    def end(self, part: int, last: pa.RecordBatch | None) -> None:
        """Keep the last row of a part, None if it has none, and compare it with the row behind."""
        with self._lock:
            self._last[part], self._ended[part] = last, True
            before = part
            while before > 0 and self._ended[before] and self._last[before] is None:
                before -= 1
            behind = part + 1
            while behind < self.parts - 1 and self._ended[behind] and self._first[behind] is None:
                behind += 1
            if behind < self.parts and self._ended[before]:
                self._compare(before, behind)

    def _compare(self, before: int, behind: int) -> None:
        last, first = self._last[before], self._first[behind]
        if last is not None and first is not None:
            self.check(pa.concat_batches([last, first]), behind, 0)

    def check(self, rows: pa.RecordBatch, part: int, row: int) -> None:
        """Raise an error if a row is less than the one before; ``row`` is the number of the second.

        The number counts within the part.
        """
        down = falls(rows, self.by)
        if down.any():
            at = int(np.argmax(down))
            earlier, later = rows.slice(at, 2).to_pylist()
            place = part if self.parts > 1 else None
            raise FalseOrderError(self.source, self.by, row + at, earlier, later, part=place)


class _Part:
    """A part whose rows are compared while they are read; it may be read several times."""

    def __init__(self, split: Split, number: int, ends: _Ends) -> None:
        self._split, self._number, self._ends = split, number, ends

    def __call__(self) -> Iterator[pa.RecordBatch]:
        last: pa.RecordBatch | None = None
        row = 0
        batches = self._split()
        try:
            for batch in batches:
                if batch.num_rows and set(self._ends.by) <= set(batch.schema.names):
                    last = self._check(batch.select(self._ends.by), last, row)
                    row += batch.num_rows
                yield batch
        finally:
            if isinstance(batches, Generator):
                batches.close()
        self._ends.end(self._number, last)

    def _check(self, keys: pa.RecordBatch, last: pa.RecordBatch | None, row: int) -> pa.RecordBatch:
        """Compare the rows of a batch, of which the first has number ``row``; return the last."""
        if last is None:
            self._ends.begin(self._number, _copy(keys, 0))
        else:
            self._ends.check(pa.concat_batches([last, _copy(keys, 0)]), self._number, row)
        self._ends.check(keys, self._number, row + 1)
        return _copy(keys, keys.num_rows - 1)


def _copy(keys: pa.RecordBatch, row: int) -> pa.RecordBatch:
    """Copy a row, so that the memory of its batch is not kept."""
    return keys.take(pa.array([row]))

# SPDX-License-Identifier: Apache-2.0
"""Parts of a source, and whether their rows are in the order that was declared."""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
import threading
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from host.errors import FalseOrderError
from host.streams.sort_keys import falls

__all__ = ["Split", "in_declared_order"]

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

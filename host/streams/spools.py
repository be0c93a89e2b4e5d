# SPDX-License-Identifier: Apache-2.0
"""Batches that wait for their reader: in memory up to a bound, the others in files.

Parts are read in their own order, or all batches in the opposite one.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
import threading
from typing import Self

import pyarrow as pa

from host.streams.spill import SpillFolder

__all__ = ["Spools", "Stack"]


class Spools:
    """Keeps batches, part by part, until they are read.

    Any number of threads may keep and read parts at the same time. All parts together hold at most
    so many bytes in memory, and one batch of each part that is just being kept or read; what is
    more goes into temporary files. :meth:`close` removes them.

    Parameters
    ----------
    bytes : int
        Most bytes in memory.

    Attributes
    ----------
    spilled : int
        Bytes that have been written to files.
    """

    def __init__(self, bytes: int) -> None:
        self._most = bytes
        self._held = 0
        self._folder: SpillFolder | None = None
        self._lock = threading.Lock()

    @property
    def spilled(self) -> int:
        return 0 if self._folder is None else self._folder.bytes

    def keep(self, batches: Iterable[pa.RecordBatch]) -> Callable[[], Iterator[pa.RecordBatch]]:
        """Take all batches of a part; return a function that yields them, once."""
        kept: deque[pa.RecordBatch | int] = deque()
        for batch in batches:
            with self._lock:
                if self._held + batch.nbytes <= self._most:
                    self._held += batch.nbytes
                    kept.append(batch)
                else:
                    kept.append(self._spill(batch))

        def read() -> Iterator[pa.RecordBatch]:
            while kept:
                yield from self._take(kept.popleft())

        return read

    def close(self) -> None:
        """Remove all files; what is in memory belongs to those who read it."""
        with self._lock:
            if self._folder is not None:
                self._folder.close()

    def _spill(self, batch: pa.RecordBatch) -> int:
        """Write a batch into a file of its own; return its number."""
        if self._folder is None:
            self._folder = SpillFolder()
        self._folder.write(pa.Table.from_batches([batch]), max(1, batch.num_rows))
        return len(self._folder) - 1

    def _take(self, kept: pa.RecordBatch | int) -> Iterator[pa.RecordBatch]:
        if isinstance(kept, pa.RecordBatch):
            with self._lock:
                self._held -= kept.nbytes
            yield kept
        elif self._folder is not None:
            yield from self._folder.read(kept)


class Stack:
    """Batches that are read in the opposite of the order in which they came.

    Used as a context manager, at the end of which nothing is left of it.

    Parameters
    ----------
    bytes : int
        Most bytes in memory, beside a batch that is read; what is more goes into temporary files.
    """

    def __init__(self, bytes: int) -> None:
        self._most = bytes
        self._held = 0
        self._kept: list[pa.RecordBatch | int] = []
        self._folder: SpillFolder | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._kept.clear()
        if self._folder is not None:
            self._folder.close()

    def push(self, batch: pa.RecordBatch) -> None:
        """Keep a batch."""
        if not batch.num_rows or self._held + batch.nbytes <= self._most:
            self._held += batch.nbytes
            self._kept.append(batch)
            return
        if self._folder is None:
            self._folder = SpillFolder()
        self._folder.write(pa.Table.from_batches([batch]), batch.num_rows)
        self._kept.append(len(self._folder) - 1)

    def popped(self) -> Iterator[pa.RecordBatch]:
        """Yield the batches, the last one first, each once."""
        while self._kept:
            kept = self._kept.pop()
            if isinstance(kept, pa.RecordBatch):
                self._held -= kept.nbytes
                yield kept
            elif self._folder is not None:
                yield from self._folder.read(kept)

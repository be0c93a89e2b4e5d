# SPDX-License-Identifier: Apache-2.0
"""Work on parts of a source in several threads, and batches that wait for their reader."""

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
import threading
import time
from typing import Self, TypeAlias

import pyarrow as pa

from host.errors import FailureError
from host.pipeline.sorting import SpillFolder
from host.runtime import (
    Governor,
    Quantity,
    Quantum,
    Requirements,
    SingleOutputExecStream,
    StreamParams,
    StreamResult,
)

__all__ = [
    "Parallel",
    "ParallelParams",
    "Spools",
    "Stack",
    "Task",
]

# Work on parts of a source in several threads, as one stream.

#: Yields the batches of one part. A task checks the event from time to time and stops when it is
#: set. Its own governor grants it staging buffers.
Task: TypeAlias = Callable[[threading.Event, Governor], Generator[pa.RecordBatch, None, None]]

_BATCHES_AHEAD = 64
_ROWS_AHEAD = 1 << 20
"""How far a part runs ahead of its consumer, in batches and in rows."""

_STOP_SECONDS = 60.0
"""Longest wait for the threads of an execution that is over, whose calls cannot be interrupted."""


@dataclass(frozen=True)
class ParallelParams(StreamParams):
    """Parameters of :class:`Parallel`.

    Parameters
    ----------
    tasks : sequence of callable
        One task for each part.
    threads : int
        Number of threads to request; the governor decides how many are granted.
    ordered : bool
        Whether the batches of an earlier part come before those of a later part.
    buffers : int
        Number of staging buffers to request, for all tasks together.
    """

    tasks: Sequence[Task]
    threads: int
    ordered: bool = True
    buffers: int = 64


@dataclass
class _Part:
    """Batches that a part's task has made and nobody has taken; guarded by the lock."""

    batches: deque[pa.RecordBatch] = field(default_factory=deque)
    rows: int = 0
    error: BaseException | None = None
    is_done: bool = False

    @property
    def is_full(self) -> bool:
        return len(self.batches) >= _BATCHES_AHEAD or self.rows >= _ROWS_AHEAD

    @property
    def has_news(self) -> bool:
        return bool(self.batches) or self.is_done


class Parallel(SingleOutputExecStream[ParallelParams, pa.RecordBatch]):
    """Stream that runs tasks in threads, a few parts ahead of its consumer, and passes on batches.

    A task that is several batches ahead of its consumer waits. Memory therefore stays bounded, and
    a part without an end can be read and stopped. No task waits for one that has not begun: parts
    begin in order, and the earliest one is consumed first. The threads are daemons, so a program
    can end although a reader has not been closed.
    """

    def __init__(self, name: str | None = None) -> None:
        super().__init__(name)
        self._threads: list[threading.Thread] = []
        self._stop = threading.Event()
        self._changed = threading.Condition()
        self._queue: deque[tuple[Task, _Part]] = deque()
        self._running: list[_Part] = []

    def requirements(self) -> Requirements:
        threads = max(1, min(self.params.threads, len(self.params.tasks)))
        buffers = max(threads, self.params.buffers)
        return Requirements(Quantity(1, 1), Quantity(threads, buffers))

    def open(self, restart: bool = False) -> None:
        super().open(restart)
        self._stop = threading.Event()
        self._waiting = iter(self.params.tasks)
        # With fewer buffers than threads, some tasks would have no buffer.
        count = max(1, min(self.allocation.threads, self.allocation.buffers))
        self._share = Quantity(buffers=max(1, self.allocation.buffers // count))
        self._ahead = 2 * count
        with self._changed:
            self._submit()
        self._threads = [
            threading.Thread(
                target=self._serve,
                args=(self._queue, self._stop),
                name=f"splitjoin_{number}",
                daemon=True,
            )
            for number in range(count)
        ]
        for thread in self._threads:
            thread.start()

    def execute(self, quantum: Quantum) -> StreamResult:
        return self.hand_on(quantum, self._take)

    def wait(self, seconds: float) -> bool:
        with self._changed:
            if not self._running:
                return False
            self._changed.wait_for(
                lambda: any(part.has_news for part in self._wanted()), timeout=seconds
            )
        return True

    def _wanted(self) -> list[_Part]:
        """Return the parts whose batches may come next."""
        return self._running[:1] if self.params.ordered else self._running

    def _take(self) -> pa.RecordBatch | StreamResult:
        """Return the next batch, or whether there is none yet, or no more."""
        with self._changed:
            while part := next((each for each in self._wanted() if each.has_news), None):
                if part.batches:
                    batch = part.batches.popleft()
                    part.rows -= batch.num_rows
                    self._changed.notify_all()
                    return batch
                self._running.remove(part)
                if part.error is not None:
                    raise part.error
                self._submit()
        return StreamResult.BUF_UNDERFLOW if self._running else self.finish()

    def _submit(self) -> None:
        """Keep every thread busy, and as many parts again queued."""
        while len(self._running) < self._ahead:
            task = next(self._waiting, None)
            if task is None:
                return
            part = _Part()
            self._running.append(part)
            self._queue.append((task, part))
            self._changed.notify_all()

    def _serve(self, queue: deque[tuple[Task, _Part]], stop: threading.Event) -> None:
        """Run tasks in a thread until its execution is over."""
        while True:
            with self._changed:
                self._changed.wait_for(lambda: stop.is_set() or queue)
                if stop.is_set():
                    return
                task, part = queue.popleft()
            self._work(task, part, stop)

    def _work(self, task: Task, part: _Part, stop: threading.Event) -> None:
        error: BaseException | None = None
        try:
            with closing(task(stop, Governor(self._share))) as batches:
                for batch in batches:
                    if not self._put(batch, part, stop):
                        break
        except BaseException as raised:
            error = raised
        with self._changed:
            part.error, part.is_done = error, True
            self._changed.notify_all()

    def _put(self, batch: pa.RecordBatch, part: _Part, stop: threading.Event) -> bool:
        """Wait for room and add a batch; return False if the batch is no longer wanted."""
        with self._changed:
            self._changed.wait_for(lambda: stop.is_set() or not part.is_full)
            if stop.is_set():
                return False
            part.batches.append(batch)
            part.rows += batch.num_rows
            self._changed.notify_all()
            return True

    def close_impl(self) -> None:
        with self._changed:
            self._stop.set()
            self._changed.notify_all()
        threads, self._threads = self._threads, []
        self._running, self._queue = [], deque()
        end = time.monotonic() + _STOP_SECONDS
        for thread in threads:
            thread.join(max(0.0, end - time.monotonic()))
        stuck = sum(thread.is_alive() for thread in threads)
        if stuck:
            raise FailureError(
                f"{stuck} of {len(threads)} threads of a parallel pipeline did not stop within "
                f"{_STOP_SECONDS:g} s, for a function or generator of the pipeline has not "
                f"returned; they end with it, or with the program."
            )


# Batches that wait for their reader: in memory up to a bound, the others in files.
#
# Parts are read in their own order, or all batches in the opposite one.


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
        self._spools = Spools(bytes)
        self._kept: list[Callable[[], Iterator[pa.RecordBatch]]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._kept.clear()
        self._spools.close()

    def push(self, batch: pa.RecordBatch) -> None:
        """Keep a batch."""
        self._kept.append(self._spools.keep([batch]))

    def popped(self) -> Iterator[pa.RecordBatch]:
        """Yield the batches, the last one first, each once."""
        while self._kept:
            yield from self._kept.pop()()

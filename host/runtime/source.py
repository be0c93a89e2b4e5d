# SPDX-License-Identifier: Apache-2.0
"""The leaves of a graph: a stream of supplied batches, and one that batches are pushed into."""

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Executor, wait
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import pyarrow as pa

from host.errors import UsageError
from host.runtime.buffer import Batch
from host.runtime.stream import Quantum, SingleOutputExecStream, StreamParams, StreamResult

__all__ = [
    "Ahead",
    "ArrowSource",
    "ArrowSourceParams",
    "PushSource",
]

B = TypeVar("B", bound=Batch)
T = TypeVar("T")


class Ahead(Iterator[T]):
    """Iterator over what a generator yields, of which a thread always makes the next one.

    Parameters
    ----------
    elements : generator
        Makes the elements.
    threads : Executor
        Threads that do the work, of this one and of any number of others.
    """

    def __init__(self, elements: Generator[T, None, None], threads: Executor) -> None:
        self._elements, self._threads = elements, threads
        self._next = threads.submit(self._made)

    def _made(self) -> Any:
        return next(self._elements, self)  # itself stands for the end

    def __next__(self) -> T:
        element = self._next.result()
        if element is self:
            raise StopIteration
        self._next = self._threads.submit(self._made)
        made: T = element
        return made

    def close(self) -> None:
        """Wait for the element that is being made, and close the generator."""
        self._next.cancel()
        wait([self._next])
        self._elements.close()


@dataclass(frozen=True)
class ArrowSourceParams(StreamParams, Generic[B]):
    """Parameters of :class:`ArrowSource`.

    Parameters
    ----------
    supply : callable
        Returns the batches; every execution calls it when it needs the first batch.
    rows : int
        Largest number of rows in an output batch; longer batches are cut.
    ahead : bool
        Whether to produce several batches while there is room for them, which the next stream may
        join. If not, a batch is taken only when it is wanted.
    """

    supply: Callable[[], Iterable[B]]
    rows: int = 1 << 17
    ahead: bool = True


class ArrowSource(SingleOutputExecStream[ArrowSourceParams[B], B], Generic[B]):
    """Stream that produces the batches of a supplier, cut to size, without copying them.

    A supplier that is a generator is closed with the stream, wherever it is.
    """

    def __init__(self, name: str | None = None) -> None:
        super().__init__(name)
        self._batches: Iterator[B] | None = None

    def execute(self, quantum: Quantum) -> StreamResult:
        allowed = quantum if self.params.ahead else Quantum(1)  # which is one batch
        return self.hand_on(allowed, self._next, most=self.params.rows)

    def close_impl(self) -> None:
        """Release the supplier; close a generator now instead of when it is collected."""
        batches, self._batches = self._batches, None
        if isinstance(batches, Generator):
            batches.close()

    def _next(self) -> B | StreamResult:
        if self._batches is None:
            self._batches = iter(self.params.supply())
        batch = next(self._batches, None)
        return self.finish() if batch is None else batch


# A source that rows are pushed into.


class PushSource(SingleOutputExecStream[StreamParams, pa.RecordBatch]):
    """Stream that produces the batches pushed into it, without copying them.

    Attributes
    ----------
    ended : bool
        Whether no batch follows.
    """

    def __init__(self, name: str | None = None) -> None:
        super().__init__(name)
        self._queue: deque[pa.RecordBatch] = deque()
        self._starves = False
        self.ended = False

    def push(self, batch: pa.RecordBatch) -> None:
        """Take the next batch.

        Raises
        ------
        UsageError
            If the source has ended.
        """
        if self.ended:
            raise UsageError(f"Source {self.name!r} has ended, so it takes no more rows.")
        if batch.num_rows:
            self._queue.append(batch)

    def end(self) -> None:
        """Declare that no batch follows."""
        self.ended = True

    def execute(self, quantum: Quantum) -> StreamResult:
        return self.hand_on(quantum, self._next)

    def _next(self) -> pa.RecordBatch | StreamResult:
        if self._queue:
            return self._queue.popleft()
        self._starves = not self.ended
        return self.finish() if self.ended else StreamResult.BUF_UNDERFLOW

    def wait(self, seconds: float) -> bool:
        """Return whether rows, or the end, have come since it had none; it never waits."""
        del seconds
        has_come = self._starves and (self.ended or bool(self._queue))
        self._starves = self._starves and not has_come
        return has_come

    def close_impl(self) -> None:
        self.ended = True
        self._queue.clear()

# SPDX-License-Identifier: Apache-2.0
"""The leaf of a graph: a stream of supplied batches."""

from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

from host.runtime.buffer import Batch
from host.runtime.stream import Quantum, SingleOutputExecStream, SingleOutputParams, StreamResult

__all__ = [
    "ArrowSource",
    "ArrowSourceParams",
]

B = TypeVar("B", bound=Batch)


@dataclass(frozen=True)
class ArrowSourceParams(SingleOutputParams, Generic[B]):
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
        self._rest: B | None = None

    def open(self, restart: bool = False) -> None:
        super().open(restart)
        self._stop()

    def execute(self, quantum: Quantum) -> StreamResult:
        done = 0
        while done < quantum.rows:
            room = self.output.provide()
            if not room:
                return StreamResult.BUF_OVERFLOW
            batch = self._next()
            if batch is None:
                return self.finish()
            take = min(room, self.params.rows, batch.num_rows)
            self.output.produce(batch.slice(0, take))
            self._rest = batch.slice(take) if take < batch.num_rows else None
            done += max(1, take) if self.params.ahead else quantum.rows
        return StreamResult.QUANTUM_EXPIRED

    def close_impl(self) -> None:
        self._stop()

    def _stop(self) -> None:
        """Release the supplier; close a generator now instead of when it is collected."""
        batches, self._batches, self._rest = self._batches, None, None
        if isinstance(batches, Generator):
            batches.close()

    def _next(self) -> B | None:
        if self._batches is None:
            self._batches = iter(self.params.supply())
        return self._rest if self._rest is not None else next(self._batches, None)

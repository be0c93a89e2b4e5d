# SPDX-License-Identifier: Apache-2.0
"""Parts of a source worked on by several threads, as one stream."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
import threading
from typing import TypeAlias

import pyarrow as pa

from host.runtime import (
    Governor,
    Quantity,
    Quantum,
    Requirements,
    SingleOutputExecStream,
    SingleOutputParams,
    StreamResult,
)

__all__ = ["Parallel", "ParallelParams", "Task"]

#: Returns the batches of one part; looks at the event now and then, and gives up when it is set.
#: What it needs of staging buffers it gets from the governor, which is its own.
Task: TypeAlias = Callable[[threading.Event, Governor], list[pa.RecordBatch]]


@dataclass(frozen=True)
class ParallelParams(SingleOutputParams):
    """Parameters of :class:`Parallel`.

    Parameters
    ----------
    tasks : sequence of callable
        One for each part.
    threads : int
        Threads that are asked for; how many there are is the governor's decision.
    ordered : bool
        Whether the batches of an earlier part come before those of a later one.
    buffers : int
        Staging buffers that are asked for, for all tasks together.
    """

    tasks: Sequence[Task]
    threads: int
    ordered: bool = True
    buffers: int = 64


class Parallel(SingleOutputExecStream[ParallelParams, pa.RecordBatch]):
    """Runs tasks in threads, a few parts ahead of what has been consumed, and hands on results."""

    def __init__(self, name: str | None = None) -> None:
        super().__init__(name)
        self._pool: ThreadPoolExecutor | None = None
        self._stop = threading.Event()
        self._running: list[Future[list[pa.RecordBatch]]] = []
        self._ready: Iterator[pa.RecordBatch] = iter(())
        self._rest: pa.RecordBatch | None = None

    def prepare(self, params: ParallelParams) -> None:
        super().prepare(params)
        self._params = params

    def requirements(self) -> Requirements:
        threads = max(1, min(self._params.threads, len(self._params.tasks)))
        buffers = max(threads, self._params.buffers)
        return Requirements(Quantity(1, 1), Quantity(threads, buffers))

    def open(self, restart: bool = False) -> None:
        super().open(restart)
        self._end()
        self._stop = threading.Event()
        self._waiting = iter(self._params.tasks)
        # With fewer buffers than threads there would be tasks without any.
        self._threads = max(1, min(self.allocation.threads, self.allocation.buffers))
        self._share = Quantity(buffers=max(1, self.allocation.buffers // self._threads))
        self._pool = ThreadPoolExecutor(self._threads, "splitjoin")
        self._submit()

    def execute(self, quantum: Quantum) -> StreamResult:
        done = 0
        while done < quantum.rows:
            room = self.output.provide()
            if not room:
                return StreamResult.BUF_OVERFLOW
            batch = self._rest if self._rest is not None else next(self._ready, None)
            if batch is not None:
                self.output.produce(batch.slice(0, room))
                self._rest = batch.slice(room) if room < batch.num_rows else None
                done += min(room, batch.num_rows)
            elif not self._running:
                return self.finish()
            elif not self._collect():
                return StreamResult.BUF_UNDERFLOW
        return StreamResult.QUANTUM_EXPIRED

    def wait(self, seconds: float) -> bool:
        if not self._running:
            return False
        wait(self._wanted(), seconds, FIRST_COMPLETED)
        return True

    def close_impl(self) -> None:
        self._end()

    def _wanted(self) -> list[Future[list[pa.RecordBatch]]]:
        """The tasks whose results may come next."""
        return self._running[:1] if self._params.ordered else self._running

    def _collect(self) -> bool:
        """Take the results of a task that is done; false if there is none."""
        done = next((future for future in self._wanted() if future.done()), None)
        if done is None:
            return False
        self._running.remove(done)
        self._submit()
        self._ready = iter(done.result())
        return True

    def _submit(self) -> None:
        """Keep every thread busy, and as many parts again in stock."""
        assert self._pool is not None
        while len(self._running) < 2 * self._threads:
            task = next(self._waiting, None)
            if task is None:
                return
            self._running.append(self._pool.submit(task, self._stop, Governor(self._share)))

    def _end(self) -> None:
        self._stop.set()
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._pool = None
        self._running, self._ready, self._rest = [], iter(()), None

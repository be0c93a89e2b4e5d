# SPDX-License-Identifier: Apache-2.0
"""The scheduler that drives a graph without threads or blocking, over bounded buffers."""

from collections.abc import Callable, Generator
from contextlib import closing
from enum import Enum
from functools import cache
from typing import Any

import numpy as np

from host.runtime.buffer import GraphError
from host.runtime.graph import ExecStreamGraph, Stream, describe
from host.runtime.stream import Quantum, StreamResult, StreamState

__all__ = [
    "OnError",
    "Scheduler",
]

#: Longest wait, in seconds, for one event outside of a graph.
_PATIENCE = 1.0
#: Just below the size from which glibc's allocator gives each freed array back to the system.
_LARGE = 31 << 20


@cache
def _keep_freed_memory() -> None:
    """Let the arrays of a run reuse the memory of those before them, once for each process.

    glibc gives memory back as soon as twice the largest array that was freed so far lies free, and
    the next arrays fault each page in anew, a fifth of the time of a join of small batches. So a
    large array is freed, of which no page was touched; other allocators do not mind.
    """
    np.empty(_LARGE, np.uint8)


class OnError(Enum):
    """Reaction to an error that a stream raises."""

    #: The execution ends with the error.
    RAISE = "raise"
    #: The error is appended to :attr:`Scheduler.errors`, and the stream is executed again. The
    #: stream has skipped the offending row, or repeats the failed request.
    RESUME = "resume"


class Scheduler:
    """Runs a prepared graph to completion.

    Of the streams that can run, the one nearest to the outlet is executed, so that data leaves the
    graph before new data enters it. After YIELD, a stream lets all others that can run go first.
    After BUF_UNDERFLOW, a stream waits until one of its inputs changes; after BUF_OVERFLOW, until
    one of its outputs changes. If every stream waits, the outlet has not ended, and no stream waits
    for an event outside of the graph, nothing can change any more. :exc:`GraphError` then
    names the streams and their states.

    When a stream has ended, its producers are closed at once if they have no other readers and
    allow it (``can_early_close``): a limit that is reached stops the streams before it. What the
    other producers still produce for the ended stream is dropped. An execution has ended when the
    outlet has ended, together with all sinks and all streams that do not allow early closing.

    However an execution ends (by completion, by an error, or because the reader stops), every
    stream is closed. The graph can then be executed again.

    Parameters
    ----------
    graph : ExecStreamGraph
        A prepared graph.
    quantum : Quantum
        Largest amount of work of one ``execute``.
    observe : callable or None
        Called as ``observe(stream, result)`` after every ``execute``, for progress and tests.
    on_error : OnError
        Whether an error ends the execution. With RESUME, an error that recurs while nothing
        around the stream has changed also ends it, so that resuming cannot go on forever.

    Attributes
    ----------
    errors : list of (Stream, Exception)
        Errors of this execution that were resumed from.
    """

    def __init__(
        self,
        graph: ExecStreamGraph,
        quantum: Quantum | None = None,
        observe: Callable[[Stream, StreamResult], None] | None = None,
        on_error: OnError = OnError.RAISE,
    ) -> None:
        self.graph = graph
        self.quantum = quantum if quantum is not None else Quantum()
        self.on_error = on_error
        self.errors: list[tuple[Stream, Exception]] = []
        self._observe = observe
        self._failed: dict[int, tuple[int, ...]] = {}
        self._last: dict[int, StreamResult] = {}
        self._waits: dict[int, tuple[int, ...]] = {}
        self._gave_way: set[int] = set()

    def read(self, restart: bool = False) -> Generator[Any, None, None]:
        """Execute the graph and yield the batches of its outlet as they arrive."""
        try:
            self.open(restart)
            outlet = None if self.graph.outlet is None else self.graph.outlet.outputs[0]
            while not self.ended:
                while outlet is not None and outlet.demand():
                    batch = outlet.access()
                    outlet.consume()
                    yield batch
                if not self.ended:
                    self.step()
        except BaseException as error:
            try:
                self.graph.close()
            except Exception as other:  # the first error is the one to report
                error.add_note(f"while closing, also: {other}")
            raise
        self.graph.close()

    def run(self, restart: bool = False) -> list[Any]:
        """Execute the graph and return all batches of its outlet."""
        return list(self.read(restart))

    def complete(self) -> None:
        """Execute a graph that has only sinks to its end."""
        with closing(self.read()) as reader:
            for _ in reader:
                pass

    def open(self, restart: bool = False) -> None:
        """Open the graph for an execution that the caller drives by :meth:`advance`."""
        _keep_freed_memory()
        self.graph.open(restart)
        self.errors.clear()
        self._last.clear()
        self._waits.clear()
        self._gave_way.clear()
        self._failed.clear()

    @property
    def ended(self) -> bool:
        """Whether the execution has ended."""
        outlet = self.graph.outlet
        return (outlet is None or outlet.outputs[0].at_end) and all(
            stream.state is not StreamState.OPEN
            for stream in self.graph.streams
            if stream.fan_out == 0 or not stream.can_early_close
        )

    def step(self) -> None:
        """Execute the stream nearest to the outlet that can run, or wait for what lets one run."""
        if not self.advance(_PATIENCE):
            lines = [
                f"  {describe(stream)}; last answer {self._answer(stream)}"
                for stream in self.graph.streams
            ]
            raise GraphError("\n".join(["No stream of the graph can move:", *lines]))

    def advance(self, patience: float = 0.0) -> bool:
        """Execute the stream nearest to the outlet that can run; return False if none can.

        Parameters
        ----------
        patience : float
            Seconds to wait for an event outside of the graph, if no stream can run.
        """
        gave_way = None
        for stream in reversed(self.graph.streams):
            if not self._can_move(stream):
                continue
            if id(stream) not in self._gave_way:
                self._execute(stream)
                return True
            gave_way = gave_way or stream
        if gave_way is not None:
            self._gave_way.clear()
            self._execute(gave_way)
            return True
        outside = [stream for stream in self.graph.streams if stream.wait(patience)]
        for stream in outside:
            self._waits.pop(id(stream), None)
        return bool(outside)

    def _answer(self, stream: Stream) -> str:
        result = self._last.get(id(stream))
        return "none" if result is None else result.value

    def _can_move(self, stream: Stream) -> bool:
        if stream.state is not StreamState.OPEN:
            return False
        seen = self._waits.get(id(stream))
        return seen is None or seen != self._watched(stream)

    def _watched(self, stream: Stream) -> tuple[int, ...]:
        """Return the versions of the buffers that a waiting stream waits for."""
        waits = self._last[id(stream)]
        buffers = stream.inputs if waits is StreamResult.BUF_UNDERFLOW else stream.outputs
        return tuple(buffer.version for buffer in buffers)

    def _execute(self, stream: Stream) -> None:
        try:
            result = stream.execute(self.quantum)
        except Exception as error:
            if self.on_error is OnError.RAISE or not self._may_resume(stream):
                raise
            self.errors.append((stream, error))
            result = StreamResult.YIELD
        self._last[id(stream)] = result
        self._waits.pop(id(stream), None)
        if result in (StreamResult.BUF_UNDERFLOW, StreamResult.BUF_OVERFLOW):
            self._waits[id(stream)] = self._watched(stream)
        elif result is StreamResult.YIELD:
            self._gave_way.add(id(stream))
        elif result is StreamResult.EOS:
            for buffer in stream.outputs:
                buffer.finish()
            stream.state = StreamState.ENDED
            self._close_unread(stream)
        if self._observe is not None:
            self._observe(stream, result)

    def _may_resume(self, stream: Stream) -> bool:
        """Return whether anything in or around ``stream`` has changed since its last error."""
        buffers = (*stream.inputs, *stream.outputs)
        versions = (stream.steps, *(buffer.version for buffer in buffers))
        moved = self._failed.get(id(stream)) != versions
        self._failed[id(stream)] = versions
        return moved

    def _close_unread(self, ended: Stream) -> None:
        """Close the streams that produced only for ``ended``, if they allow it."""
        waiting = [ended]
        while waiting:
            for buffer in waiting.pop().inputs:
                buffer.abandon()
                producer = self.graph.producer_of(buffer)
                if self._is_unread(producer) and producer.can_early_close:
                    producer.close()
                    waiting.append(producer)

    def _is_unread(self, stream: Stream) -> bool:
        done = (StreamState.ENDED, StreamState.CLOSED)
        outputs = {id(buffer) for buffer in stream.outputs}
        readers = [
            other
            for other in self.graph.streams
            if any(id(buffer) in outputs for buffer in other.inputs)
        ]
        return stream.state is StreamState.OPEN and all(other.state in done for other in readers)

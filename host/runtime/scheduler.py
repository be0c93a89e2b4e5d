# SPDX-License-Identifier: Apache-2.0
"""One scheduler drives a graph: no thread, no blocking, bounded buffers."""

from collections.abc import Callable, Iterator
from typing import Any

from host.runtime.errors import StuckGraphError
from host.runtime.graph import ExecStreamGraph, Stream, describe
from host.runtime.stream import Quantum, StreamResult, StreamState

__all__ = ["Scheduler"]


class Scheduler:
    """Runs a prepared graph to completion.

    Of the streams that can move, the one nearest to the outlet is executed, so data leaves the
    graph before new data enters it. A stream that answered YIELD lets all others that can move go
    first; one that answered BUF_UNDERFLOW waits until one of its
    inputs changes, one that answered BUF_OVERFLOW until one of its outputs changes. When every
    stream waits and the outlet has not ended, nothing will ever change again:
    :exc:`StuckGraphError` names the streams and their states.

    However an execution ends (completion, error, or a reader that loses interest), every stream
    is closed. The graph can then be executed again.

    Parameters
    ----------
    graph : ExecStreamGraph
        A prepared graph.
    quantum : Quantum
        What one ``execute`` may do.
    observe : callable or None
        ``observe(stream, result)`` after every ``execute``, for progress and for tests.
    """

    def __init__(
        self,
        graph: ExecStreamGraph,
        quantum: Quantum | None = None,
        observe: Callable[[Stream, StreamResult], None] | None = None,
    ) -> None:
        self.graph = graph
        self.quantum = quantum if quantum is not None else Quantum()
        self._observe = observe
        self._last: dict[int, StreamResult] = {}
        self._waits: dict[int, tuple[int, ...]] = {}
        self._gave_way: set[int] = set()

    def read(self, restart: bool = False) -> Iterator[Any]:
        """Execute the graph, yielding the batches of its outlet as they come."""
        try:
            self.graph.open(restart)
            self._last.clear()
            self._waits.clear()
            self._gave_way.clear()
            outlet = self.graph.outlet.output
            while True:
                while outlet.demand():
                    batch = outlet.access()
                    outlet.consume()
                    yield batch
                if outlet.at_end:
                    break
                self.step()
        except BaseException as error:
            try:
                self.graph.close()
            except Exception as other:  # the first error is the one to tell
                error.add_note(f"while closing, also: {other}")
            raise
        self.graph.close()

    def run(self, restart: bool = False) -> list[Any]:
        """Execute the graph and return all batches of its outlet."""
        return list(self.read(restart))

    def step(self) -> None:
        """Execute the stream nearest to the outlet that can move."""
        movable = [stream for stream in reversed(self.graph.streams) if self._can_move(stream)]
        if movable:
            waiting = [stream for stream in movable if id(stream) not in self._gave_way]
            if not waiting:
                self._gave_way.clear()
            self._execute((waiting or movable)[0])
            return
        lines = [
            f"  {describe(stream)}; last answer {self._answer(stream)}"
            for stream in self.graph.streams
        ]
        raise StuckGraphError("\n".join(["No stream of the graph can move:", *lines]))

    def _answer(self, stream: Stream) -> str:
        result = self._last.get(id(stream))
        return "none" if result is None else result.value

    def _can_move(self, stream: Stream) -> bool:
        if stream.state is not StreamState.OPEN:
            return False
        seen = self._waits.get(id(stream))
        return seen is None or seen != self._watched(stream)

    def _watched(self, stream: Stream) -> tuple[int, ...]:
        """Versions of the buffers that a waiting stream waits for."""
        waits = self._last[id(stream)]
        buffers = stream.inputs if waits is StreamResult.BUF_UNDERFLOW else stream.outputs
        return tuple(buffer.version for buffer in buffers)

    def _execute(self, stream: Stream) -> None:
        result = stream.execute(self.quantum)
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
        if self._observe is not None:
            self._observe(stream, result)

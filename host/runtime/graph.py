# SPDX-License-Identifier: Apache-2.0
"""A graph of streams: wiring, and the life cycle of all of them together."""

from typing import Any

from host.runtime.bases import ConfluenceExecStream, SingleOutputExecStream
from host.runtime.buffer import Buffer
from host.runtime.errors import GraphError, LifeCycleError
from host.runtime.stream import ExecStream, StreamParams

__all__ = ["ExecStreamGraph"]

Stream = SingleOutputExecStream[Any, Any]


class ExecStreamGraph:
    """Streams and the buffers between them.

    The stream whose output nobody consumes is the *outlet*; the scheduler reads from it.

    Parameters
    ----------
    buffer_rows : int
        Capacity of a buffer unless :meth:`connect` says otherwise.
    """

    def __init__(self, buffer_rows: int = 1 << 17) -> None:
        self.buffer_rows = buffer_rows
        self.streams: list[Stream] = []  # producers before their consumers, once prepared
        self._params: dict[int, StreamParams] = {}
        self._producer: dict[int, Stream] = {}
        self._outlet: Stream | None = None

    def add(self, stream: Stream, params: StreamParams) -> Stream:
        """Add ``stream``, to be prepared with ``params``; its name is made unique."""
        names = {other.name for other in self.streams}
        base, number = stream.name, 2
        while stream.name in names:
            stream.name = f"{base} {number}"
            number += 1
        self.streams.append(stream)
        self._params[id(stream)] = params
        return stream

    def connect(
        self,
        producer: Stream,
        consumer: ConfluenceExecStream[Any, Any, Any],
        rows: int | None = None,
    ) -> Buffer[Any]:
        """Let ``consumer`` consume what ``producer`` produces, through a buffer of ``rows``."""
        for stream in (producer, consumer):
            if id(stream) not in self._params:
                raise GraphError(f"Stream {stream.name!r} is connected but not part of the graph")
        buffer = self._new_buffer(producer, f"{producer.name} -> {consumer.name}", rows)
        consumer.connect_input(buffer)
        return buffer

    def _new_buffer(self, producer: Stream, name: str, rows: int | None) -> Buffer[Any]:
        buffer: Buffer[Any] = Buffer(self.buffer_rows if rows is None else rows, name)
        producer.connect_output(buffer)
        self._producer[id(buffer)] = producer
        return buffer

    @property
    def outlet(self) -> Stream:
        """The stream whose output the scheduler reads."""
        if self._outlet is None:
            raise LifeCycleError("The graph has not been prepared")
        return self._outlet

    def prepare(self) -> None:
        """Find the outlet, order the streams, and prepare each of them."""
        loose = [stream for stream in self.streams if not stream.outputs]
        if len(loose) != 1:
            names = ", ".join(repr(stream.name) for stream in loose) or "none"
            raise GraphError(f"A graph needs exactly one unconsumed output, but has: {names}")
        self.streams = self._ordered(loose[0])
        self._outlet = loose[0]
        self._new_buffer(loose[0], f"{loose[0].name} -> reader", None)
        for stream in self.streams:
            stream.prepare(self._params[id(stream)])
        self._params.clear()

    def _ordered(self, outlet: Stream) -> list[Stream]:
        """All streams, producers before consumers; by depth, as graphs may be long chains."""
        ordered: list[Stream] = []
        stack: list[tuple[Stream, bool]] = [(outlet, False)]
        seen: set[int] = set()
        while stack:
            stream, done = stack.pop()
            if done:
                ordered.append(stream)
            elif id(stream) not in seen:
                seen.add(id(stream))
                stack.append((stream, True))
                stack.extend((self._producer[id(buffer)], False) for buffer in stream.inputs)
        left = [stream.name for stream in self.streams if id(stream) not in seen]
        if left:
            raise GraphError(f"Streams do not lead to {outlet.name!r}: {', '.join(left)}")
        return ordered

    def open(self, restart: bool = False) -> None:
        """Open every stream, producers last, so that all buffers are clear when data comes."""
        try:
            for stream in reversed(self.streams):
                stream.open(restart)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close every stream in any state; the first error is raised after the last close."""
        errors: list[Exception] = []
        for stream in reversed(self.streams):
            try:
                stream.close()
            except Exception as error:
                errors.append(error)
        if errors:
            for other in errors[1:]:
                errors[0].add_note(f"while closing, also: {other}")
            raise errors[0]

    def plan(self) -> str:
        """One line per buffer: who fills it, who empties it, how much it holds."""
        buffers = [buffer for stream in self.streams for buffer in stream.outputs]
        return "\n".join(f"{buffer.name}: up to {buffer.capacity} rows" for buffer in buffers)

    def describe(self) -> str:
        """One line per stream: its state and that of its buffers."""
        return "\n".join(describe(stream) for stream in self.streams)


def describe(stream: ExecStream[Any]) -> str:
    """State of ``stream`` and of its buffers, on one line."""
    buffers = [f"in {buffer!r}" for buffer in stream.inputs]
    buffers += [f"out {buffer!r}" for buffer in stream.outputs]
    return f"{stream.name}: {stream.state.value}; {', '.join(buffers)}"

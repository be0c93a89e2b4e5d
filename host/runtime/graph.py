# SPDX-License-Identifier: Apache-2.0
"""A graph of streams, and the governor that shares threads and buffers among them."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
import threading
from typing import Any

from host.errors import FailureError
from host.runtime.buffer import Buffer, GraphError, plan_transfers
from host.runtime.stream import Broadcast, ExecStream, Quantity, Requirements, StreamParams

__all__ = [
    "ExecStreamGraph",
    "Governor",
    "Stream",
    "shares",
]

# A budget of threads and staging buffers, shared among the streams that ask for them.


class Governor:
    """Grants every stream of a graph at least its minimum, and a share of what remains.

    Several graphs, in several threads, may share a governor. What a graph was granted returns to
    the budget when the graph's execution ends.

    Parameters
    ----------
    budget : Quantity
        All resources; by default 4 threads and 64 buffers.
    """

    def __init__(self, budget: Quantity | None = None) -> None:
        self.budget = Quantity(threads=4, buffers=64) if budget is None else budget
        self._granted = Quantity()
        self._lock = threading.Lock()

    @property
    def available(self) -> Quantity:
        """Resources that are not granted now."""
        return self.budget - self._granted

    @contextmanager
    def granting(self, streams: Sequence[ExecStream[Any]]) -> Iterator[None]:
        """Set ``allocation`` of all ``streams`` while the block runs.

        Raises
        ------
        FailureError
            If the minima exceed the available resources; then nothing is granted.
        """
        wanted = [(stream.name, stream.requirements()) for stream in streams]
        with self._lending(wanted) as granted:
            for stream, quantity in zip(streams, granted, strict=True):
                stream.allocation = quantity
            try:
                yield
            finally:
                for stream in streams:
                    stream.allocation = Quantity()

    @contextmanager
    def lending(self, name: str, wanted: Requirements) -> Iterator[Quantity]:
        """Grant resources while the block runs to what is no stream, under a name in messages.

        Raises
        ------
        FailureError
            If the minimum exceeds the available resources.
        """
        with self._lending([(name, wanted)]) as [granted]:
            yield granted

    @contextmanager
    def _lending(self, wanted: Sequence[tuple[str, Requirements]]) -> Iterator[list[Quantity]]:
        with self._lock:
            granted = self._share(wanted)
            total = sum(granted, Quantity())
            self._granted += total
        try:
            yield granted
        finally:
            with self._lock:
                self._granted -= total

    def _share(self, named: Sequence[tuple[str, Requirements]]) -> list[Quantity]:
        available, wanted = self.available, [each for _, each in named]
        minimum = sum((each.minimum for each in wanted), Quantity())
        if not available.covers(minimum):
            needs = "; ".join(
                f"{name}: {each.minimum}" for name, each in named if each.minimum != Quantity()
            )
            raise FailureError(
                f"The streams need {minimum} at least, and {available} of {self.budget} are "
                f"available ({needs}); raise the governor's budget, or run fewer graphs at once."
            )
        spare, wishes = available - minimum, [each.optimum - each.minimum for each in wanted]
        threads = shares(spare.threads, [wish.threads for wish in wishes])
        buffers = shares(spare.buffers, [wish.buffers for wish in wishes])
        return [
            each.minimum + Quantity(*more)
            for each, *more in zip(wanted, threads, buffers, strict=True)
        ]


def shares(amount: int, wishes: Sequence[int]) -> list[int]:
    """Divide ``amount`` in proportion to ``wishes``, but give no wish more than it asks for.

    Shares are whole numbers. What rounding leaves is given in units to the largest remainders;
    among equal remainders, the first come first.
    """
    total = sum(wishes)
    if total <= amount:
        return list(wishes)
    exact = [divmod(amount * wish, total) for wish in wishes]
    result = [whole for whole, _ in exact]
    order = sorted(range(len(wishes)), key=lambda index: -exact[index][1])
    for index in order[: amount - sum(result)]:
        result[index] += 1
    return result


# A graph of streams: its connections, its copies, and the common life cycle of its streams.

Stream = ExecStream[Any]


@dataclass(frozen=True)
class _Edge:
    """A connection of two streams; ``rows`` is the capacity of its buffer."""

    producer: Stream
    consumer: Stream
    rows: int | None


class ExecStreamGraph:
    """Streams and the buffers between them.

    The stream whose output has no consumer is the *outlet*; the scheduler reads from it. A graph
    may have sinks (streams without outputs) besides the outlet or instead of it. A stream with one
    output may have several consumers, which are served in the order of connection.

    Parameters
    ----------
    buffer_rows : int
        Capacity of a buffer in rows, unless :meth:`connect` gives another one.
    governor : Governor, optional
        Governor of threads and staging buffers; by default a new one for this graph.
    """

    def __init__(self, buffer_rows: int = 1 << 17, governor: Governor | None = None) -> None:
        self.buffer_rows = buffer_rows
        self.governor = Governor() if governor is None else governor
        self.streams: list[Stream] = []  # producers before their consumers, once prepared
        self._params: dict[int, StreamParams] = {}
        self._edges: list[_Edge] = []
        self._outlet: Stream | None = None
        self._prepared = False
        self._producer: dict[int, Stream] = {}
        self._reasons: dict[int, str] = {}
        self._grant = ExitStack()

    def add(self, stream: Stream, params: StreamParams) -> Stream:
        """Add ``stream``, which will be prepared with ``params``; make its name unique."""
        names = {other.name for other in self.streams}
        base, number = stream.name, 2
        while stream.name in names:
            stream.name = f"{base} {number}"
            number += 1
        self.streams.append(stream)
        self._params[id(stream)] = params
        return stream

    def connect(self, producer: Stream, consumer: Stream, rows: int | None = None) -> None:
        """Connect ``producer`` to ``consumer`` through a buffer of ``rows`` rows."""
        for stream in (producer, consumer):
            if id(stream) not in self._params:
                raise GraphError(f"Stream {stream.name!r} is connected but not part of the graph")
        if producer.fan_out == 0:
            raise GraphError(f"Stream {producer.name!r} has no output")
        taken = sum(edge.consumer is consumer for edge in self._edges)
        if consumer.fan_in is not None and taken >= consumer.fan_in:
            raise GraphError(
                f"Stream {consumer.name!r} has {consumer.fan_in} input(s), all connected"
            )
        self._edges.append(_Edge(producer, consumer, rows))

    @property
    def outlet(self) -> Stream | None:
        """The stream whose output the scheduler reads; None if the graph has sinks only."""
        if not self._prepared:
            raise GraphError("The graph has not been prepared")
        return self._outlet

    @property
    def sinks(self) -> list[Stream]:
        """Streams without outputs."""
        return [stream for stream in self.streams if stream.fan_out == 0]

    @property
    def buffers(self) -> list[Buffer[Any]]:
        """All buffers, those of producers before those of their consumers."""
        return [buffer for stream in self.streams for buffer in stream.outputs]

    def producer_of(self, buffer: Buffer[Any]) -> Stream:
        """Return the stream that fills ``buffer``."""
        return self._producer[id(buffer)]

    def prepare(self) -> None:
        """Find the outlet, decide on copies, order the streams, and prepare each of them."""
        fed = {id(edge.producer) for edge in self._edges}
        loose = [each for each in self.streams if each.fan_out != 0 and id(each) not in fed]
        if len(loose) > 1 or not (loose or self.sinks):
            names = ", ".join(repr(stream.name) for stream in loose) or "none"
            raise GraphError(f"A graph needs exactly one unconsumed output, but has: {names}")
        self._outlet = loose[0] if loose else None
        self._insert_broadcasts()
        buffers: dict[int, Buffer[Any]] = {}
        for stream in self.streams:
            buffers |= self._connect_outputs(stream)
        for edge in self._edges:  # inputs are numbered in the order of connection
            edge.consumer.connect_input(buffers[id(edge)])
        if self._outlet is not None:
            self._new_buffer(self._outlet, f"{self._outlet.name} -> reader", None)
        self.streams = self._ordered([*loose, *self.sinks])
        for stream in self.streams:
            stream.prepare(self._params[id(stream)])
        self._params.clear()
        self._prepared = True

    def _insert_broadcasts(self) -> None:
        """Insert a broadcast behind every single output that has several consumers."""
        for stream in list(self.streams):
            mine = [edge for edge in self._edges if edge.producer is stream]
            if stream.fan_out != 1 or len(mine) < 2:
                continue
            broadcast = Broadcast(f"{stream.name} to all")
            broadcast.mutable_output = stream.mutable_output
            self.add(broadcast, StreamParams())
            self._edges = [
                _Edge(broadcast, edge.consumer, edge.rows) if edge.producer is stream else edge
                for edge in self._edges
            ]
            self._edges.append(_Edge(stream, broadcast, None))

    def _connect_outputs(self, stream: Stream) -> dict[int, Buffer[Any]]:
        """Make a buffer for every edge that leaves ``stream``; return the buffers by edge."""
        edges = [edge for edge in self._edges if edge.producer is stream]
        consumers = [edge.consumer for edge in edges]
        if isinstance(stream, Broadcast) or len(edges) == 1:
            transfers = plan_transfers(
                stream.mutable_output,
                [consumer.mutates_input for consumer in consumers],
                [consumer.retains_input for consumer in consumers],
            )
        else:  # separate outputs: a batch goes into only one of them
            transfers = [
                plan_transfers(stream.mutable_output, [consumer.mutates_input])[0]
                for consumer in consumers
            ]
        buffers = {}
        for edge, transfer in zip(edges, transfers, strict=True):
            name = f"{stream.name} -> {edge.consumer.name}"
            buffers[id(edge)] = buffer = self._new_buffer(stream, name, edge.rows)
            if not isinstance(edge.consumer, Broadcast):
                buffer.passing = transfer.passing
                self._reasons[id(buffer)] = transfer.reason
        return buffers

    def _new_buffer(self, producer: Stream, name: str, rows: int | None) -> Buffer[Any]:
        buffer: Buffer[Any] = Buffer(self.buffer_rows if rows is None else rows, name)
        producer.connect_output(buffer)
        self._producer[id(buffer)] = producer
        return buffer

    def _ordered(self, ends: list[Stream]) -> list[Stream]:
        """Return all streams, producers first; not recursive, because chains may be long."""
        ordered: list[Stream] = []
        stack: list[tuple[Stream, bool]] = [(end, False) for end in reversed(ends)]
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
            names = ", ".join(repr(end.name) for end in ends)
            raise GraphError(f"Streams do not lead to {names}: {', '.join(left)}")
        return ordered

    def open(self, restart: bool = False) -> None:
        """Get resources from the governor, then open every stream, consumers before producers.

        In this order, all buffers are clear before any data arrives.
        """
        self._grant.close()
        self._grant.enter_context(self.governor.granting(self.streams))
        try:
            for stream in reversed(self.streams):
                stream.open(restart)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close every stream, whatever its state; then raise the first error, if any."""
        errors: list[Exception] = []
        for stream in reversed(self.streams):
            try:
                stream.close()
            except Exception as error:
                errors.append(error)
        self._grant.close()
        if errors:
            for other in errors[1:]:
                errors[0].add_note(f"while closing, also: {other}")
            raise errors[0]

    def plan(self) -> str:
        """Return a line per buffer: its producer, consumer and capacity, and how batches pass."""
        return "\n".join(self._planned(buffer) for buffer in self.buffers)

    def _planned(self, buffer: Buffer[Any]) -> str:
        reason = self._reasons.get(id(buffer))
        how = "" if reason is None else f", {buffer.passing.value} ({reason})"
        return f"{buffer.name}: up to {buffer.capacity} rows{how}"

    def describe(self) -> str:
        """Return a line per stream: its state and the states of its buffers."""
        return "\n".join(describe(stream) for stream in self.streams)


def describe(stream: Stream) -> str:
    """Return one line with the state of ``stream`` and of its buffers."""
    buffers = [f"in {buffer!r}" for buffer in stream.inputs]
    buffers += [f"out {buffer!r}" for buffer in stream.outputs]
    return f"{stream.name}: {stream.state.value}; {', '.join(buffers)}"

# SPDX-License-Identifier: Apache-2.0
"""Execution streams: their life cycle, their resources, and base classes by their ports."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from enum import Enum
import sys
from typing import Any, Generic, Self, TypeVar

from host.runtime.buffer import Batch, Buffer, BufferState, GraphError, Passing

__all__ = [
    "BUFFER_BYTES",
    "Broadcast",
    "StreamParams",
    "ConduitExecStream",
    "ConfluenceExecStream",
    "ExecStream",
    "Quantity",
    "Quantum",
    "Requirements",
    "SingleOutputExecStream",
    "StreamResult",
    "StreamState",
]

# Quantities of the resources that a governor shares out: threads and staging buffers.

#: Size of one staging buffer, in bytes.
BUFFER_BYTES = 1 << 20


@dataclass(frozen=True)
class Quantity:
    """A quantity of each resource (Fennel's ``ExecStreamResourceQuantity``).

    Parameters
    ----------
    threads : int
        Number of threads besides the scheduler's own.
    buffers : int
        Number of staging buffers of :data:`BUFFER_BYTES` bytes.
    """

    threads: int = 0
    buffers: int = 0

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if value < 0:
                raise GraphError(f"A quantity of {field.name} cannot be negative: {value}")

    def __add__(self, other: "Quantity") -> Self:
        return type(self)(self.threads + other.threads, self.buffers + other.buffers)

    def __sub__(self, other: "Quantity") -> Self:
        return type(self)(self.threads - other.threads, self.buffers - other.buffers)

    def covers(self, other: "Quantity") -> bool:
        """Return whether every resource is at least as large as in ``other``."""
        return self.threads >= other.threads and self.buffers >= other.buffers

    def __str__(self) -> str:
        return f"{self.threads} threads, {self.buffers} buffers"


@dataclass(frozen=True)
class Requirements:
    """The least and the most resources that a stream can use.

    Parameters
    ----------
    minimum, optimum : Quantity
        Resources without which the stream cannot run, and the most it can use. ``optimum`` must
        cover ``minimum``.
    """

    minimum: Quantity = Quantity()
    optimum: Quantity = Quantity()

    def __post_init__(self) -> None:
        if not self.optimum.covers(self.minimum):
            raise GraphError(
                f"The optimum ({self.optimum}) must cover the minimum ({self.minimum})"
            )


# The life cycle of an execution stream, and the results of one execution.


class StreamResult(Enum):
    """Reason why :meth:`ExecStream.execute` returned."""

    #: The stream lets others go first, and can continue at once.
    YIELD = "YIELD"
    #: An input buffer has no data left; continue when its producer has added some.
    BUF_UNDERFLOW = "BUF_UNDERFLOW"
    #: An output buffer has no room left; continue when its consumer has removed some data.
    BUF_OVERFLOW = "BUF_OVERFLOW"
    #: The quantum is used up; the stream can continue at once.
    QUANTUM_EXPIRED = "QUANTUM_EXPIRED"
    #: Everything has been produced; the stream must be reopened before it is executed again.
    EOS = "EOS"


class StreamState(Enum):
    """State of a stream in its life cycle."""

    NEW = "NEW"
    PREPARED = "PREPARED"
    OPEN = "OPEN"
    ENDED = "ENDED"
    CLOSED = "CLOSED"


@dataclass(frozen=True)
class Quantum:
    """Largest amount of work in one execution.

    Parameters
    ----------
    rows : int
        Rows that a stream may consume or produce; a batch that has been begun is always finished.
    """

    rows: int = 1 << 16

    def __post_init__(self) -> None:
        if self.rows < 1:
            raise GraphError(f"A quantum must allow at least one row, not {self.rows}")


@dataclass(frozen=True)
class StreamParams:
    """Parameters of a stream; every stream class has its own parameter class.

    They are passed to :meth:`ExecStream.prepare`, which copies what it needs.
    """


P = TypeVar("P", bound=StreamParams)


class ExecStream(ABC, Generic[P]):
    """A node of a dataflow graph that is executed in steps and never blocks.

    ``prepare`` is called once. Any number of executions follow: ``open``, then ``execute`` until it
    returns EOS or the result is no longer wanted, then ``close``. ``open`` resets all state that
    could affect the result. ``close`` may be called at any time, even before ``prepare``, and any
    number of times. Derived classes extend ``prepare``, ``open`` and ``close_impl``, and call the
    method of their base class.

    Parameters
    ----------
    name : str or None
        Name in messages; by default the class name. A graph makes names unique.

    Attributes
    ----------
    params : StreamParams
        The parameters, once the stream has been prepared.
    allocation : Quantity
        Resources that the governor has granted for this execution; see :meth:`requirements`.
    """

    params: P

    #: Number of inputs and outputs that the stream must have; None for any number.
    fan_in: int | None = 0
    fan_out: int | None = 1

    #: Whether the stream writes into the batches that it receives, which must then be its own.
    mutates_input = False
    #: Whether a receiver may write into the batches that the stream has produced. If not, the
    #: stream, or one before it, still refers to them.
    mutable_output = False
    #: Whether the stream's state or output may refer to its input's memory after ``execute``.
    retains_input = True
    #: Changes with every step that moves no batch, so that an error behind it is another one.
    steps = 0

    def __init__(self, name: str | None = None) -> None:
        self.name = name if name is not None else type(self).__name__
        self.state = StreamState.NEW
        self.allocation = Quantity()
        self._inputs: list[Buffer[Any]] = []
        self._outputs: list[Buffer[Any]] = []

    @property
    def inputs(self) -> Sequence[Buffer[Any]]:
        """Connected buffers that this stream consumes from, in the order of connection."""
        return self._inputs

    @property
    def outputs(self) -> Sequence[Buffer[Any]]:
        """Connected buffers that this stream produces into, in the order of connection."""
        return self._outputs

    def connect_input(self, buffer: Buffer[Any]) -> None:
        """Add an input buffer."""
        if self.fan_in is not None and len(self._inputs) >= self.fan_in:
            raise GraphError(f"Stream {self.name!r} has {self.fan_in} input(s), all connected")
        self._inputs.append(buffer)

    def connect_output(self, buffer: Buffer[Any]) -> None:
        """Add an output buffer."""
        if self.fan_out is not None and len(self._outputs) >= self.fan_out:
            raise GraphError(f"Stream {self.name!r} has {self.fan_out} output(s), all connected")
        self._outputs.append(buffer)

    def prepare(self, params: P) -> None:
        """Keep ``params`` and compute what all executions need; allocate nothing large."""
        if self.state is not StreamState.NEW:
            raise GraphError(f"Stream {self.name!r} is prepared twice")
        if self.fan_in is not None and len(self._inputs) != self.fan_in:
            raise GraphError(
                f"Stream {self.name!r} needs {self.fan_in} input(s), not {len(self._inputs)}"
            )
        self.params = params
        self.state = StreamState.PREPARED

    def requirements(self) -> Requirements:
        """Return the resources that the stream needs at least and can use at most.

        The governor calls this before every ``open`` and sets :attr:`allocation`. Streams that need
        no resources need not override it.
        """
        return Requirements()

    @property
    def can_early_close(self) -> bool:
        """Whether the stream may be closed as soon as its outputs are no longer read.

        It is False for a stream whose work has other effects than its output and should be
        completed.
        """
        return True

    def open(self, restart: bool = False) -> None:
        """Begin an execution with the first row; one that has not been closed is closed before.

        Parameters
        ----------
        restart : bool
            Whether the current execution starts again; costly resources may then be kept. No
            stream of the kit has any: opening a graph takes less than a hundredth of executing it.
        """
        del restart
        if self.state is StreamState.NEW:
            raise GraphError(f"Stream {self.name!r} is opened before it is prepared")
        if self.state in (StreamState.OPEN, StreamState.ENDED):
            self.close()
        for buffer in self._outputs:
            buffer.clear()
        self.state = StreamState.OPEN

    def finish(self) -> StreamResult:
        """End all outputs and return EOS, for use as ``return self.finish()``."""
        for buffer in self._outputs:
            buffer.finish()
        return StreamResult.EOS

    @abstractmethod
    def execute(self, quantum: Quantum) -> StreamResult:
        """Do at most ``quantum`` work and return why it stopped; never block.

        A stream that raises must first update its state so that another call makes sense: the
        offending row is skipped, or the failed request is repeated.
        """

    def wait(self, seconds: float) -> bool:
        """Wait up to ``seconds`` for an event outside of the graph; False if none is expected.

        The scheduler calls this when no stream can run, before it declares the graph stuck. A
        stream that works with other threads or with a device overrides it.
        """
        del seconds
        return False

    def close(self) -> None:
        """End the current execution, if any, and release what ``prepare`` did not allocate."""
        try:
            self.close_impl()
        finally:
            if self.state is not StreamState.NEW:
                self.state = StreamState.CLOSED

    def close_impl(self) -> None:
        """Release resources. As any state is possible, read only what the constructor set."""


# Base classes of streams by their ports: leaf, conduit, confluence and diffluence.


#: Number of batches without a row that a stream may make before it gives way.
_FRUITLESS = 256

In = TypeVar("In", bound=Batch)
Out = TypeVar("Out", bound=Batch)


class SingleOutputExecStream(ExecStream[P], Generic[P, Out]):
    """A stream with one output; without inputs, it is a leaf of the graph."""

    def __init__(self, name: str | None = None) -> None:
        super().__init__(name)
        self._rest: Out | None = None  # of a batch for which the output had no room

    def close(self) -> None:
        self._rest = None
        super().close()

    @property
    def output(self) -> Buffer[Out]:
        """The output buffer."""
        if not self._outputs:
            raise GraphError(f"Stream {self.name!r} has no output buffer")
        return self._outputs[0]

    def precheck_output_buffer(self) -> StreamResult:
        """Return YIELD if the output has room for at least one row, else BUF_OVERFLOW."""
        return StreamResult.YIELD if self.output.provide() else StreamResult.BUF_OVERFLOW

    def hand_on(
        self,
        quantum: Quantum,
        make: Callable[[], Out | StreamResult],
        done: int = 0,
        most: int = sys.maxsize,
    ) -> StreamResult:
        """Produce batch after batch, cut to the room, until buffers or the quantum say stop.

        For use as ``return self.hand_on(...)``. A batch that was cut goes on in the next call.

        Parameters
        ----------
        quantum : Quantum
            Largest number of rows; a batch without a row counts as some, for it may take long.
        make : callable
            Returns the next batch, which may be empty, or else why there is none.
        done : int
            Rows of the quantum that are used up already.
        most : int
            Largest number of rows in an output batch.
        """
        while done < quantum.rows:
            room = min(self.output.provide(), most)
            if not room:
                return StreamResult.BUF_OVERFLOW
            batch = make() if self._rest is None else self._rest
            if isinstance(batch, StreamResult):
                return batch
            self.output.produce(batch.slice(0, room))
            self._rest = batch.slice(room) if room < batch.num_rows else None
            done += min(room, batch.num_rows) or 1 + quantum.rows // _FRUITLESS
        return StreamResult.QUANTUM_EXPIRED


class ConfluenceExecStream(SingleOutputExecStream[P, Out], Generic[P, In, Out]):
    """A stream with any number of inputs and one output."""

    fan_in: int | None = None

    @property
    def inputs(self) -> Sequence[Buffer[In]]:
        return self._inputs

    def precheck_confluence_buffers(self) -> StreamResult:
        """Check the buffers of a stream that needs data from *every* input that has not ended.

        Returns
        -------
        StreamResult
            BUF_OVERFLOW if the output has no room; EOS, with the output ended, if all inputs are
            at their end; BUF_UNDERFLOW, after a demand on all inputs, if an input has no data and
            is not at its end; else YIELD.
        """
        result = self.precheck_output_buffer()
        if result is not StreamResult.YIELD:
            return result
        if all(buffer.at_end for buffer in self._inputs):
            return self.finish()
        ready = [buffer.demand() or buffer.at_end for buffer in self._inputs]
        return StreamResult.YIELD if all(ready) else StreamResult.BUF_UNDERFLOW


class ConduitExecStream(ConfluenceExecStream[P, In, Out], Generic[P, In, Out]):
    """A stream with exactly one input and one output, such as a filter."""

    fan_in = 1

    @property
    def input(self) -> Buffer[In]:
        """The input buffer."""
        if not self._inputs:
            raise GraphError(f"Stream {self.name!r} has no input buffer")
        return self._inputs[0]

    def precheck_conduit_buffers(self) -> StreamResult:
        """Check the buffers of the stream.

        Returns
        -------
        StreamResult
            EOS, with the output ended, at the end of the input; BUF_UNDERFLOW without data;
            BUF_OVERFLOW without room; else YIELD.
        """
        if self.input.state is BufferState.EOS:
            return self.finish()
        if not self.input.demand():
            return StreamResult.BUF_UNDERFLOW
        return self.precheck_output_buffer()

    def execute(self, quantum: Quantum) -> StreamResult:
        """Let :meth:`take` work until buffers or the quantum say stop."""
        done = 0
        while done < quantum.rows:
            result = self.precheck_conduit_buffers()
            if result is not StreamResult.YIELD:
                return result
            done += self.take(self.input.access(), self.output.provide())
        return StreamResult.QUANTUM_EXPIRED

    def take(self, batch: In, room: int) -> int:
        """Consume rows of ``batch``, and produce what comes of them; return how many were taken.

        What a stream does that has no :meth:`execute` of its own.

        Parameters
        ----------
        batch : Batch
            The first batch of the input, whose consumption is pending.
        room : int
            Rows that the output has room for, at least one.
        """
        raise NotImplementedError


# A stream that serves several consumers from one output.


class Broadcast(ExecStream[StreamParams]):
    """Stream that passes every batch to all consumers, in the order in which they were connected.

    The buffers decide how a batch is passed (by reference, read-only, or copied); see
    :mod:`host.runtime.buffer`. If the last consumer may write into the batch itself, the
    consumer gets the batch only after all others have consumed it.
    """

    fan_in = 1
    fan_out = None
    mutable_output = True

    def __init__(self, name: str | None = None) -> None:
        super().__init__(name)
        self._served = 0  # number of outputs that already have the pending batch

    def open(self, restart: bool = False) -> None:
        super().open(restart)
        self._served = 0

    def execute(self, quantum: Quantum) -> StreamResult:
        done = 0
        (rows,) = self._inputs
        while done < quantum.rows:
            if not self._served:
                if rows.state is BufferState.EOS:
                    return self.finish()
                if not rows.demand():
                    return StreamResult.BUF_UNDERFLOW
                if not all(buffer.provide() for buffer in self._outputs):
                    return StreamResult.BUF_OVERFLOW
            batch = rows.access()
            for buffer in self._outputs[self._served :]:
                others = self._outputs[: self._served]
                own = self._served == len(self._outputs) - 1 and buffer.passing is Passing.REFERENCE
                if own and any(other.rows for other in others):
                    return StreamResult.BUF_OVERFLOW
                if not buffer.produce(batch):
                    return StreamResult.BUF_OVERFLOW
                self._served += 1
            self._served = 0
            rows.consume()
            done += batch.num_rows
        return StreamResult.QUANTUM_EXPIRED

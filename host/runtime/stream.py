# SPDX-License-Identifier: Apache-2.0
"""The life cycle of an execution stream, and the results of one execution."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Generic, TypeVar

from host.runtime.buffer import Buffer
from host.runtime.errors import GraphError, LifeCycleError
from host.runtime.resources import Quantity, Requirements

__all__ = ["ExecStream", "Quantum", "StreamParams", "StreamResult", "StreamState"]


class StreamResult(Enum):
    """Why :meth:`ExecStream.execute` returned."""

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
            raise LifeCycleError(f"A quantum must allow at least one row, not {self.rows}")


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
    allocation : Quantity
        Resources that the governor has granted for this execution; see :meth:`requirements`.
    """

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
        """Record ``params`` and compute what all executions need; allocate nothing large."""
        del params  # nothing to record here
        if self.state is not StreamState.NEW:
            raise LifeCycleError(f"Stream {self.name!r} is prepared twice")
        if self.fan_in is not None and len(self._inputs) != self.fan_in:
            raise GraphError(
                f"Stream {self.name!r} needs {self.fan_in} input(s), not {len(self._inputs)}"
            )
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
        """Begin an execution with the first row, wherever the last one stands.

        Parameters
        ----------
        restart : bool
            Whether the current execution starts again; costly resources may then be kept. No
            stream of the kit has any: opening a graph takes less than a hundredth of executing it.
        """
        del restart
        if self.state is StreamState.NEW:
            raise LifeCycleError(f"Stream {self.name!r} is opened before it is prepared")
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

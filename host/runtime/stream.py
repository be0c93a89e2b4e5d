# SPDX-License-Identifier: Apache-2.0
"""The life cycle of an execution stream, and what one execution may answer."""

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

    #: The stream gives way of its own accord and can go on at once.
    YIELD = "YIELD"
    #: An input buffer has no data left; go on when its producer has provided some.
    BUF_UNDERFLOW = "BUF_UNDERFLOW"
    #: An output buffer has no room left; go on when its consumer has consumed some.
    BUF_OVERFLOW = "BUF_OVERFLOW"
    #: The quantum is used up; the stream can go on at once.
    QUANTUM_EXPIRED = "QUANTUM_EXPIRED"
    #: Everything has been produced; the stream is not executed again before it is reopened.
    EOS = "EOS"


class StreamState(Enum):
    """Where a stream stands in its life cycle."""

    NEW = "NEW"
    PREPARED = "PREPARED"
    OPEN = "OPEN"
    ENDED = "ENDED"
    CLOSED = "CLOSED"


@dataclass(frozen=True)
class Quantum:
    """How much one execution may do before it gives way.

    Parameters
    ----------
    rows : int
        Rows that a stream may take in or produce; a batch under way is always finished.
    """

    rows: int = 1 << 16

    def __post_init__(self) -> None:
        if self.rows < 1:
            raise LifeCycleError(f"A quantum must allow at least one row, not {self.rows}")


@dataclass(frozen=True)
class StreamParams:
    """Parameters of a stream; every stream class has a parameter class of its own.

    They are handed to :meth:`ExecStream.prepare`, which copies out what it needs.
    """


P = TypeVar("P", bound=StreamParams)


class ExecStream(ABC, Generic[P]):
    """A node of a dataflow graph that is executed piecewise and never blocks.

    ``prepare`` is called once. Then follow any number of executions: ``open``, ``execute`` until
    it answers EOS (or for as long as anyone cares), ``close``. ``open`` resets all state that
    could affect the result; ``close`` may come at any time, even before ``prepare``, and any
    number of times. Derived classes extend ``prepare``, ``open`` and ``close_impl`` and call the
    method of their base.

    Parameters
    ----------
    name : str or None
        Name in messages; the class name if left out. A graph makes names unique.

    Attributes
    ----------
    allocation : Quantity
        What the governor has granted for this execution; see :meth:`requirements`.
    """

    #: Inputs and outputs that the stream must have; None: any number.
    fan_in: int | None = 0
    fan_out: int | None = 1

    #: Whether the stream writes into the batches it is given. If so it gets batches of its own.
    mutates_input = False
    #: Whether a receiver may write into the batches that the stream has produced. If not, the
    #: stream, or somebody before it, still refers to them.
    mutable_output = False
    #: Whether state or output of the stream may refer to its input's memory after ``execute``.
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
        """Record ``params`` and precompute what all executions need; allocate nothing big."""
        del params  # nothing to record here
        if self.state is not StreamState.NEW:
            raise LifeCycleError(f"Stream {self.name!r} is prepared twice")
        if self.fan_in is not None and len(self._inputs) != self.fan_in:
            raise GraphError(
                f"Stream {self.name!r} needs {self.fan_in} input(s), not {len(self._inputs)}"
            )
        self.state = StreamState.PREPARED

    def requirements(self) -> Requirements:
        """Costly resources without which the stream cannot run, and those it can make use of.

        The governor asks before every ``open`` and answers in :attr:`allocation`. Streams that
        need none leave this as it is.
        """
        return Requirements()

    @property
    def can_early_close(self) -> bool:
        """Whether the stream may be closed as soon as nobody reads its outputs any more.

        False for a stream whose work has an effect besides its output and should be completed.
        """
        return True

    def open(self, restart: bool = False) -> None:
        """Begin an execution.

        Parameters
        ----------
        restart : bool
            True when the execution under way is begun again: what is costly to get may be kept.
        """
        del restart  # nothing costly here
        if self.state is StreamState.NEW:
            raise LifeCycleError(f"Stream {self.name!r} is opened before it is prepared")
        for buffer in self._outputs:
            buffer.clear()
        self.state = StreamState.OPEN

    def finish(self) -> StreamResult:
        """End all outputs, for ``return self.finish()``."""
        for buffer in self._outputs:
            buffer.finish()
        return StreamResult.EOS

    @abstractmethod
    def execute(self, quantum: Quantum) -> StreamResult:
        """Do up to ``quantum`` work and say why no more; never block.

        A stream that raises has first updated its state so that executing it again is
        meaningful: the offending row is skipped, or a failed request is made again.
        """

    def wait(self, seconds: float) -> bool:
        """Wait up to ``seconds`` for something outside of the graph; false if there is nothing.

        The scheduler calls this when no stream can move, before it declares the graph stuck. A
        stream that works in other threads, or with a device, extends it.
        """
        del seconds
        return False

    def close(self) -> None:
        """End the execution, if there is one, and let go of what ``prepare`` did not allocate."""
        try:
            self.close_impl()
        finally:
            if self.state is not StreamState.NEW:
                self.state = StreamState.CLOSED

    def close_impl(self) -> None:
        """Release resources. Called in every state; what it reads is set in the constructor."""

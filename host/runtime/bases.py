# SPDX-License-Identifier: Apache-2.0
"""Base classes of streams by their ports: leaf, conduit, confluence and diffluence."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from host.runtime.buffer import Batch, Buffer, BufferState
from host.runtime.errors import GraphError
from host.runtime.stream import ExecStream, StreamParams, StreamResult

__all__ = [
    "ConduitExecStream",
    "ConduitParams",
    "ConfluenceExecStream",
    "ConfluenceParams",
    "DiffluenceExecStream",
    "DiffluenceParams",
    "SingleOutputExecStream",
    "SingleOutputParams",
]


@dataclass(frozen=True)
class SingleOutputParams(StreamParams):
    """Parameters of a stream with one output."""


@dataclass(frozen=True)
class ConduitParams(SingleOutputParams):
    """Parameters of a stream with one input and one output."""


@dataclass(frozen=True)
class ConfluenceParams(SingleOutputParams):
    """Parameters of a stream with several inputs and one output."""


@dataclass(frozen=True)
class DiffluenceParams(StreamParams):
    """Parameters of a stream with one input and several outputs."""


P = TypeVar("P", bound=StreamParams)
In = TypeVar("In", bound=Batch)
Out = TypeVar("Out", bound=Batch)


class SingleOutputExecStream(ExecStream[P], Generic[P, Out]):
    """A stream with one output; without inputs, it is a leaf of the graph."""

    @property
    def output(self) -> Buffer[Out]:
        """The output buffer."""
        if not self._outputs:
            raise GraphError(f"Stream {self.name!r} has no output buffer")
        return self._outputs[0]

    def precheck_output_buffer(self) -> StreamResult:
        """Return YIELD if the output has room for at least one row, else BUF_OVERFLOW."""
        return StreamResult.YIELD if self.output.provide() else StreamResult.BUF_OVERFLOW


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


class DiffluenceExecStream(ExecStream[P], Generic[P, In, Out]):
    """A stream with exactly one input and any number of outputs, such as a broadcast."""

    fan_in = 1
    fan_out = None

    @property
    def input(self) -> Buffer[In]:
        """The input buffer."""
        if not self._inputs:
            raise GraphError(f"Stream {self.name!r} has no input buffer")
        return self._inputs[0]

    def precheck_diffluence_buffers(self) -> StreamResult:
        """Check the buffers of a stream that serves *every* output at once.

        Returns
        -------
        StreamResult
            EOS, with the outputs ended, at the end of the input; BUF_UNDERFLOW without data;
            BUF_OVERFLOW if an output has no room; else YIELD.
        """
        if self.input.state is BufferState.EOS:
            return self.finish()
        if not self.input.demand():
            return StreamResult.BUF_UNDERFLOW
        rooms = [buffer.provide() for buffer in self._outputs]
        return StreamResult.YIELD if all(rooms) else StreamResult.BUF_OVERFLOW

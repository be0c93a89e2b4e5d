# SPDX-License-Identifier: Apache-2.0
"""Streams for tests, whose answer a list knows."""

from dataclasses import dataclass, field

import numpy as np

from host.runtime import ConduitExecStream, ConfluenceExecStream, StreamParams, StreamResult
from host.runtime.testing import MockProducerParams

__all__ = [
    "Concatenate",
    "Fault",
    "FaultParams",
    "Repeat",
    "RepeatParams",
    "given_values",
]


def given_values(values, batch_rows=3):
    """Parameters of a mock producer of these values."""
    array = np.array(values, np.int64)
    return MockProducerParams(
        rows=len(array), generate=lambda rows: array[rows], batch_rows=batch_rows
    )


@dataclass(frozen=True)
class RepeatParams(StreamParams):
    times: int = 2


class Repeat(ConduitExecStream):
    """Produces every value several times; the pending batch guides it after an overflow."""

    def prepare(self, params):
        super().prepare(params)
        self.times = params.times

    def open(self, restart=False):
        super().open(restart)
        self.emitted = 0

    def execute(self, quantum):
        for _ in range(quantum.rows):
            if not self.input.consumption_pending:
                result = self.precheck_conduit_buffers()
                if result is not StreamResult.YIELD:
                    return result
            head = self.input.access().slice(0, 1)
            while self.emitted < self.times:
                if not self.output.produce(head):
                    return StreamResult.BUF_OVERFLOW
                self.emitted += 1
            self.emitted = 0
            self.input.consume(1)
        return StreamResult.QUANTUM_EXPIRED


class Concatenate(ConfluenceExecStream):
    """All rows of the first input, then all rows of the second, and so on."""

    def execute(self, quantum):
        done = 0
        for buffer in self.inputs:
            while not buffer.at_end:
                if done >= quantum.rows:
                    return StreamResult.QUANTUM_EXPIRED
                if not buffer.demand():
                    return StreamResult.BUF_UNDERFLOW
                room = self.output.provide()
                if not room:
                    return StreamResult.BUF_OVERFLOW
                batch = buffer.access().slice(0, room)
                self.output.produce(batch)
                buffer.consume(batch.num_rows)
                done += batch.num_rows
        return self.finish()


@dataclass(frozen=True)
class FaultParams(StreamParams):
    after: int = 0
    error: Exception = field(default_factory=lambda: ValueError("broken"))


class Fault(ConduitExecStream):
    """Passes some batches on, then raises."""

    def open(self, restart=False):
        super().open(restart)
        self.left = self.params.after

    def execute(self, quantum):
        result = self.precheck_conduit_buffers()
        if result is not StreamResult.YIELD:
            return result
        if not self.left:
            raise self.params.error
        self.left -= 1
        self.output.produce(self.input.access())
        self.input.consume()
        return StreamResult.YIELD

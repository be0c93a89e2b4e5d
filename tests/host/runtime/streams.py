# SPDX-License-Identifier: Apache-2.0
"""Streams for tests: a mock producer, the seed's Uniq, and others whose answer a list knows."""

from dataclasses import dataclass, field

import numpy as np

from host.runtime import (
    Columns,
    ConduitExecStream,
    ConduitParams,
    ConfluenceExecStream,
    ConfluenceParams,
    SingleOutputExecStream,
    SingleOutputParams,
    StreamResult,
)

__all__ = [
    "Concatenate",
    "ConfluenceParams",
    "Fault",
    "FaultParams",
    "MockProducer",
    "MockProducerParams",
    "Repeat",
    "RepeatParams",
    "Uniq",
    "UniqParams",
    "values_of",
]


def values_of(batches):
    """All values of the only column."""
    return [int(value) for batch in batches for value in batch["value"]]


@dataclass(frozen=True)
class MockProducerParams(SingleOutputParams):
    values: tuple = ()
    rows: int = 3


class MockProducer(SingleOutputExecStream):
    """Produces given values, a few rows at a time, and gives way now and then."""

    def __init__(self, name=None):
        super().__init__(name)
        self.position = 0
        self.closed = 0

    def prepare(self, params):
        super().prepare(params)
        self.values = params.values
        self.rows = params.rows

    def open(self, restart=False):
        super().open(restart)
        self.position = 0

    def execute(self, quantum):
        result = self.precheck_output_buffer()
        if result is not StreamResult.YIELD:
            return result
        if self.position == len(self.values):
            return self.finish()
        count = min(self.rows, quantum.rows, self.output.provide())
        part = self.values[self.position : self.position + count]
        self.output.produce(Columns({"value": np.array(part, np.int64)}))
        self.position += len(part)
        return StreamResult.YIELD

    def close_impl(self):
        self.closed += 1


@dataclass(frozen=True)
class UniqParams(ConduitParams):
    fail_on_duplicate: bool = False


class Uniq(ConduitExecStream):
    """The seed's example: removes duplicates from sorted input."""

    def __init__(self, name=None):
        super().__init__(name)
        self.previous = None

    def prepare(self, params):
        super().prepare(params)
        self.fail_on_duplicate = params.fail_on_duplicate

    def open(self, restart=False):
        super().open(restart)
        self.previous = None

    def execute(self, quantum):
        done = 0
        while done < quantum.rows:
            result = self.precheck_conduit_buffers()
            if result is not StreamResult.YIELD:
                return result
            batch = self.input.access()
            count = min(batch.num_rows, self.output.provide())
            values = batch["value"][:count]
            fresh = np.ones(count, bool)
            fresh[1:] = values[1:] != values[:-1]
            fresh[0] = self.previous is None or values[0] != self.previous
            self.previous = values[-1]
            self.output.produce(Columns({"value": values[fresh]}))
            self.input.consume(count)
            if self.fail_on_duplicate and not fresh.all():
                raise ValueError(f"duplicate {values[~fresh][0]}")
            done += count
        return StreamResult.QUANTUM_EXPIRED


@dataclass(frozen=True)
class RepeatParams(ConduitParams):
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
class FaultParams(ConduitParams):
    after: int = 0
    error: Exception = field(default_factory=lambda: ValueError("broken"))


class Fault(ConduitExecStream):
    """Passes some batches on, then raises."""

    def prepare(self, params):
        super().prepare(params)
        self.params = params

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

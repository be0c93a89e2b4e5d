# SPDX-License-Identifier: Apache-2.0
"""Streams of columns that write, keep, skip and stumble, for random graphs."""

from dataclasses import dataclass, field

import numpy as np

from host.runtime import (
    Columns,
    ConduitExecStream,
    ConfluenceExecStream,
    SingleOutputExecStream,
    StreamParams,
    StreamResult,
)

__all__ = [
    "Add",
    "AddParams",
    "Gather",
    "Keep",
    "Skip",
    "SkipParams",
    "Stumble",
    "Values",
    "ValuesParams",
]


@dataclass(frozen=True)
class ValuesParams(StreamParams):
    values: list = field(default_factory=list)
    batch_rows: int = 1


class Values(SingleOutputExecStream):
    """Produces batches of the given values, and lets go of them."""

    mutable_output = True

    def open(self, restart=False):
        super().open(restart)
        self.row = 0

    def execute(self, quantum):
        result = self.precheck_output_buffer()
        if result is not StreamResult.YIELD:
            return result
        part = self.params.values[self.row : self.row + self.params.batch_rows]
        if not part:
            return self.finish()
        self.output.produce(Columns({"x": np.array(part, np.int64)}))
        self.row += len(part)
        return StreamResult.YIELD


class Keep(ConduitExecStream):
    """Passes batches on and keeps them, with what it read in them."""

    def open(self, restart=False):
        super().open(restart)
        self.kept = []

    def execute(self, quantum):
        result = self.precheck_conduit_buffers()
        if result is not StreamResult.YIELD:
            return result
        batch = self.input.access()
        self.kept.append((batch, batch["x"].tolist()))
        self.output.produce(batch)
        self.input.consume()
        return StreamResult.YIELD

    @property
    def unchanged(self):
        """Whether all that it keeps still is what it read."""
        return all(batch["x"].tolist() == read for batch, read in self.kept)


@dataclass(frozen=True)
class AddParams(StreamParams):
    amount: int = 0


class Add(ConduitExecStream):
    """Adds in place."""

    mutates_input = mutable_output = True

    def prepare(self, params):
        super().prepare(params)
        self.amount = params.amount

    def execute(self, quantum):
        result = self.precheck_conduit_buffers()
        if result is not StreamResult.YIELD:
            return result
        batch = self.input.access()
        batch["x"][:] += self.amount
        self.output.produce(batch)
        self.input.consume()
        return StreamResult.YIELD


@dataclass(frozen=True)
class SkipParams(StreamParams):
    bad: int = 0


class Skip(ConduitExecStream):
    """Raises for multiples of seven and a rest, having skipped the row."""

    def prepare(self, params):
        super().prepare(params)
        self.bad = params.bad

    def execute(self, quantum):
        result = self.precheck_conduit_buffers()
        if result is not StreamResult.YIELD:
            return result
        batch = self.input.access()
        is_bad = batch["x"] % 7 == self.bad
        good = int(np.argmax(is_bad)) if is_bad.any() else batch.num_rows
        if not good:
            value = int(batch["x"][0])
            self.input.consume(1)
            raise ValueError(f"{value} is bad")
        self.output.produce(batch.slice(0, good))
        self.input.consume(good)
        return StreamResult.YIELD


class Stumble(ConduitExecStream):
    """Fails once for each batch, as a request that has to be made again."""

    def open(self, restart=False):
        super().open(restart)
        self.failed = False

    def execute(self, quantum):
        result = self.precheck_conduit_buffers()
        if result is not StreamResult.YIELD:
            return result
        batch = self.input.access()
        self.failed = not self.failed
        if self.failed:
            raise TimeoutError("no answer")
        self.output.produce(batch)
        self.input.consume()
        return StreamResult.YIELD


class Gather(ConfluenceExecStream):
    """Passes on what comes, from any input."""

    def execute(self, quantum):
        for buffer in self.inputs:
            while buffer.demand():
                if not self.output.produce(buffer.access()):
                    return StreamResult.BUF_OVERFLOW
                buffer.consume()
        if all(buffer.at_end for buffer in self.inputs):
            return self.finish()
        return StreamResult.BUF_UNDERFLOW

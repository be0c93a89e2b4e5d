# SPDX-License-Identifier: Apache-2.0
"""Fused operators as a stream: filter, project, map, flat-map, in one pass over each batch."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from host.operators import CopyCounters, Fused, Operator, Rows
from host.runtime import ConduitExecStream, ConduitParams, Quantum, StreamResult

__all__ = ["FusedStage", "FusedStageParams"]


@dataclass(frozen=True)
class FusedStageParams(ConduitParams):
    """Parameters of :class:`FusedStage`.

    Parameters
    ----------
    operators : sequence of Operator
        Applied one after the other.
    counters : CopyCounters
        Where batches and copies are counted.
    """

    operators: Sequence[Operator]
    counters: CopyCounters = field(default_factory=CopyCounters)


class FusedStage(ConduitExecStream[FusedStageParams, pa.RecordBatch, pa.RecordBatch]):
    """Pushes every input batch through all operators, and makes a batch of what comes out.

    No batch is made in between. An operator that raises has consumed its batch, so executing the
    stream again goes on behind it.
    """

    def __init__(self, name: str | None = None) -> None:
        super().__init__(name)
        self._ready: deque[pa.RecordBatch] = deque()

    def prepare(self, params: FusedStageParams) -> None:
        super().prepare(params)
        self._counters = params.counters
        self.fused = Fused.chain(params.operators, mutable_input=False, leave=self._leave)

    def open(self, restart: bool = False) -> None:
        super().open(restart)
        self._ready.clear()

    def execute(self, quantum: Quantum) -> StreamResult:
        done = 0
        while self._hand_on():
            if done >= quantum.rows:
                return StreamResult.QUANTUM_EXPIRED
            result = self.precheck_conduit_buffers()
            if result is not StreamResult.YIELD:
                return result
            batch = self.input.access().slice(0, self.output.provide())
            self.input.consume(batch.num_rows)
            self._counters.batches_in += 1
            done += batch.num_rows
            self.fused.push(Rows.of_batch(batch, self._counters))
        return StreamResult.BUF_OVERFLOW

    def close_impl(self) -> None:
        self._ready.clear()

    def _leave(self, rows: Rows) -> None:
        self._counters.batches_out += 1
        self._ready.append(rows.batch())

    def _hand_on(self) -> bool:
        """Produce what is ready; false if there is no room for all of it."""
        while self._ready:
            room = self.output.provide()
            if not room:
                return False
            batch = self._ready.popleft()
            self.output.produce(batch.slice(0, room))
            if room < batch.num_rows:
                self._ready.appendleft(batch.slice(room))
        return True

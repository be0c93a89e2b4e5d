# SPDX-License-Identifier: Apache-2.0
"""Fused operators as a stream: filter, project, map and flat-map in one pass over each batch."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from host.operators import CopyCounters, Fused, Operator, Rows, Submitted
from host.runtime import ConduitExecStream, ConduitParams, Quantum, StreamResult

__all__ = ["FusedStage", "FusedStageParams"]

_FRUITLESS = 256
"""Number of times an operator may be pulled without a row before the stream gives way."""


@dataclass(frozen=True)
class FusedStageParams(ConduitParams):
    """Parameters of :class:`FusedStage`.

    Parameters
    ----------
    operators : sequence of Operator
        Operators, which are applied one after another.
    counters : CopyCounters
        Counters of batches and copies.
    ahead : bool
        Whether to produce several batches while there is room for them. If not, a batch is made
        only when it is wanted.
    """

    operators: Sequence[Operator]
    counters: CopyCounters = field(default_factory=CopyCounters)
    ahead: bool = True


class FusedStage(ConduitExecStream[FusedStageParams, pa.RecordBatch, pa.RecordBatch]):
    """Stream that pulls every input batch through all operators and makes a batch of the results.

    No batch is made between operators. Closing the stream closes the generators in its operators
    wherever they are. If an operator raises, its batch has been consumed, and the next execution
    continues behind the batch.
    """

    def __init__(self, name: str | None = None) -> None:
        super().__init__(name)
        self._pulled: Submitted | None = None
        self._rest: pa.RecordBatch | None = None

    def prepare(self, params: FusedStageParams) -> None:
        super().prepare(params)
        self._counters = params.counters
        self._ahead = params.ahead
        self.fused = Fused.chain(params.operators, mutable_input=False)

    def open(self, restart: bool = False) -> None:
        super().open(restart)
        self._stop()

    def execute(self, quantum: Quantum) -> StreamResult:
        done = 0
        while done < quantum.rows:
            if self._rest is None and self._pulled is None:
                result = self.precheck_conduit_buffers()
                if result is not StreamResult.YIELD:
                    return result
                batch = self.input.access().slice(0, self.output.provide())
                self.input.consume(batch.num_rows)
                self._counters.batches_in += 1
                done += batch.num_rows
                self._pulled = self.fused.pull(Rows.of_batch(batch, self._counters))
            room = self.output.provide()
            if not room:
                return StreamResult.BUF_OVERFLOW
            leaving = self._next()
            if leaving is not None:
                self.output.produce(leaving.slice(0, room))
                self._rest = leaving.slice(room) if room < leaving.num_rows else None
                done += min(room, leaving.num_rows) if self._ahead else quantum.rows
            else:  # an operator may work for a long time without producing a row
                done += 1 + quantum.rows // _FRUITLESS
        return StreamResult.QUANTUM_EXPIRED

    def close_impl(self) -> None:
        self._stop()

    def _next(self) -> pa.RecordBatch | None:
        """Return the next result of the pass; None if there is none, or none yet."""
        if self._rest is not None:
            return self._rest
        assert self._pulled is not None
        try:
            rows = next(self._pulled)
        except BaseException as end:
            self._pulled = None
            if isinstance(end, StopIteration):
                return None
            raise
        if rows is None or not rows.num_rows:
            return None
        self._counters.batches_out += 1
        return rows.batch()

    def _stop(self) -> None:
        """Stop the current pass, and close the generators that run in it."""
        pulled, self._pulled, self._rest = self._pulled, None, None
        if pulled is not None:
            pulled.close()

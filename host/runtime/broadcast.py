# SPDX-License-Identifier: Apache-2.0
"""A stream that serves several consumers from one output."""

from dataclasses import dataclass

from host.runtime.bases import DiffluenceExecStream, DiffluenceParams
from host.runtime.buffer import Batch
from host.runtime.mutability import Passing
from host.runtime.stream import Quantum, StreamResult

__all__ = ["Broadcast", "BroadcastParams"]


@dataclass(frozen=True)
class BroadcastParams(DiffluenceParams):
    """Parameters of :class:`Broadcast`."""


class Broadcast(DiffluenceExecStream[BroadcastParams, Batch, Batch]):
    """Stream that passes every batch to all consumers, in the order in which they were connected.

    The buffers decide how a batch is passed (by reference, read-only, or copied); see
    :mod:`host.runtime.mutability`. If the last consumer may write into the batch itself, the
    consumer gets the batch only after all others have consumed it.
    """

    mutable_output = True

    def __init__(self, name: str | None = None) -> None:
        super().__init__(name)
        self._served = 0  # number of outputs that already have the pending batch

    def open(self, restart: bool = False) -> None:
        super().open(restart)
        self._served = 0

    def execute(self, quantum: Quantum) -> StreamResult:
        done = 0
        while done < quantum.rows:
            if not self._served:
                result = self.precheck_diffluence_buffers()
                if result is not StreamResult.YIELD:
                    return result
            batch = self.input.access()
            for buffer in self._outputs[self._served :]:
                others = self._outputs[: self._served]
                own = self._served == len(self._outputs) - 1 and buffer.passing is Passing.REFERENCE
                if own and any(other.rows for other in others):
                    return StreamResult.BUF_OVERFLOW
                if not buffer.produce(batch):
                    return StreamResult.BUF_OVERFLOW
                self._served += 1
            self._served = 0
            self.input.consume()
            done += batch.num_rows
        return StreamResult.QUANTUM_EXPIRED

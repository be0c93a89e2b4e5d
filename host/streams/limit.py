# SPDX-License-Identifier: Apache-2.0
"""The first rows of a stream."""

from dataclasses import dataclass

import pyarrow as pa

from host.runtime import ConduitExecStream, ConduitParams, Quantum, StreamResult

__all__ = ["Limit", "LimitParams"]


@dataclass(frozen=True)
class LimitParams(ConduitParams):
    """Parameters of :class:`Limit`.

    Parameters
    ----------
    rows : int
        Number of rows that pass.
    skip : int
        Number of rows that are skipped before.
    """

    rows: int
    skip: int = 0


class Limit(ConduitExecStream[LimitParams, pa.RecordBatch, pa.RecordBatch]):
    """Stream that passes rows on without copying, and ends as soon as it has enough.

    The scheduler then closes the streams before it.
    """

    def __init__(self, name: str | None = None) -> None:
        super().__init__(name)
        self._left = 0
        self._skip = 0

    def prepare(self, params: LimitParams) -> None:
        super().prepare(params)
        self._params = params

    def open(self, restart: bool = False) -> None:
        super().open(restart)
        self._left, self._skip = self._params.rows, self._params.skip

    def execute(self, quantum: Quantum) -> StreamResult:
        done = 0
        while done < quantum.rows:
            if not self._left:
                return self.finish()
            result = self.precheck_conduit_buffers()
            if result is not StreamResult.YIELD:
                return result
            batch = self.input.access()
            if self._skip:
                taken = min(self._skip, batch.num_rows)
                self._skip -= taken
            else:
                taken = min(self._left, self.output.provide(), batch.num_rows)
                self._left -= taken
                self.output.produce(batch.slice(0, taken))
            self.input.consume(taken)
            done += taken
        return StreamResult.QUANTUM_EXPIRED

# SPDX-License-Identifier: Apache-2.0
"""A stream that numbers rows."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from host.runtime import ConduitExecStream, ConduitParams, Quantum, StreamResult

__all__ = ["Number", "NumberParams"]


@dataclass(frozen=True)
class NumberParams(ConduitParams):
    """Parameters of :class:`Number`.

    Parameters
    ----------
    column : str
        Name of the new last column.
    """

    column: str


class Number(ConduitExecStream[NumberParams, pa.RecordBatch, pa.RecordBatch]):
    """Stream that adds the number of each row, counted from zero over the whole stream."""

    def prepare(self, params: NumberParams) -> None:
        super().prepare(params)
        self._column = params.column

    def open(self, restart: bool = False) -> None:
        super().open(restart)
        self._row = 0

    def execute(self, quantum: Quantum) -> StreamResult:
        done = 0
        while done < quantum.rows:
            result = self.precheck_conduit_buffers()
            if result is not StreamResult.YIELD:
                return result
            batch = self.input.access().slice(0, self.output.provide())
            count = batch.num_rows
            numbers = pa.array(np.arange(self._row, self._row + count))
            self.output.produce(batch.append_column(self._column, numbers))
            self._row += count
            self.input.consume(count)
            done += count
        return StreamResult.QUANTUM_EXPIRED

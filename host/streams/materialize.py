# SPDX-License-Identifier: Apache-2.0
"""Pairs of row numbers as the rows themselves."""

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from host.runtime import Columns, ConduitExecStream, ConduitParams, Quantum, StreamResult

__all__ = ["Materialize", "MaterializeParams"]


@dataclass(frozen=True)
class MaterializeParams(ConduitParams):
    """Parameters of :class:`Materialize`.

    Parameters
    ----------
    left, right : pa.Table
        The rows.
    schema : pa.Schema
        Of the result: the left columns, then the right columns.
    rows : int
        Most rows of an output batch.
    observe : callable or None
        Is given the pairs of every output batch.
    """

    left: pa.Table
    right: pa.Table
    schema: pa.Schema
    rows: int = 1 << 16
    observe: Callable[[Columns], None] | None = None


class Materialize(ConduitExecStream[MaterializeParams, Columns, pa.RecordBatch]):
    """Takes the rows that ``left`` and ``right`` of its input name, and puts them side by side."""

    def __init__(self, name: str | None = None) -> None:
        super().__init__(name)
        self._p: MaterializeParams | None = None

    def prepare(self, params: MaterializeParams) -> None:
        super().prepare(params)
        self._p = params

    def execute(self, quantum: Quantum) -> StreamResult:
        assert self._p is not None
        done = 0
        while done < quantum.rows:
            result = self.precheck_conduit_buffers()
            if result is not StreamResult.YIELD:
                return result
            pairs = self.input.access()
            count = min(pairs.num_rows, self._p.rows, self.output.provide())
            part = pairs.slice(0, count)
            self.output.produce(self._rows(part, self._p))
            if self._p.observe is not None:
                self._p.observe(part)
            self.input.consume(count)
            done += count
        return StreamResult.QUANTUM_EXPIRED

    @staticmethod
    def _rows(pairs: Columns, params: MaterializeParams) -> pa.RecordBatch:
        columns = []
        for table, name in ((params.left, "left"), (params.right, "right")):
            taken = table.take(pa.array(pairs[name]))
            columns += [_contiguous(column) for column in taken.columns]
        if not columns:
            raise ValueError("A result needs at least one column")
        return pa.RecordBatch.from_arrays(columns, schema=params.schema)


def _contiguous(column: pa.ChunkedArray) -> pa.Array:
    if column.num_chunks == 1:
        return column.chunk(0)
    array = column.combine_chunks()
    if isinstance(array, pa.ChunkedArray):
        return pa.concat_arrays(array.chunks)
    return array

# SPDX-License-Identifier: Apache-2.0
"""Pairs of row numbers as the rows themselves."""

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from host.runtime import Columns, ConduitExecStream, ConduitParams, Quantum, StreamResult
from host.streams.row_store import Rows

__all__ = ["Materialize", "MaterializeParams"]


@dataclass(frozen=True)
class MaterializeParams(ConduitParams):
    """Parameters of :class:`Materialize`.

    Parameters
    ----------
    store : tuple of Rows
        The rows of both sides.
    schema : pa.Schema
        Of the result: the left columns, then the right columns.
    rows : int
        Most rows of an output batch.
    observe : callable or None
        Is given the pairs of every output batch.
    """

    store: tuple[Rows, Rows]
    schema: pa.Schema
    rows: int = 1 << 16
    observe: Callable[[Columns], None] | None = None


class Materialize(ConduitExecStream[MaterializeParams, Columns, pa.RecordBatch]):
    """Takes the rows that ``left`` and ``right`` of its input name, and puts them side by side.

    What it observes has the rows' original numbers.
    """

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
                left, right = self._p.store
                numbers = {
                    "left": left.original(part["left"]),
                    "right": right.original(part["right"]),
                }
                self._p.observe(Columns({**part.arrays, **numbers}))
            self.input.consume(count)
            done += count
        return StreamResult.QUANTUM_EXPIRED

    @staticmethod
    def _rows(pairs: Columns, params: MaterializeParams) -> pa.RecordBatch:
        columns = [
            column
            for rows, name in zip(params.store, ("left", "right"), strict=True)
            for column in rows.take(pairs[name])
        ]
        if not columns:
            raise ValueError("A result needs at least one column")
        return pa.RecordBatch.from_arrays(columns, schema=params.schema)

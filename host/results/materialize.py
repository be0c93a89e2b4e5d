# SPDX-License-Identifier: Apache-2.0
"""Turn pairs of row numbers into the rows themselves."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from host.reference.join_type import NO_ROW
from host.runtime import Columns, ConduitExecStream, ConduitParams, Quantum, StreamResult
from host.tuples.row_store import Rows

__all__ = ["Materialize", "MaterializeParams"]

Int64s = npt.NDArray[np.int64]


@dataclass(frozen=True)
class MaterializeParams(ConduitParams):
    """Parameters of :class:`Materialize`.

    Parameters
    ----------
    store : tuple of Rows
        Stores of the rows of both sides.
    schema : pa.Schema
        Schema of the result: the left columns, then the right columns, or the left columns only.
    widths : tuple of int
        Number of the result's columns that come from the left side, and from the right side.
    rows : int
        Largest number of rows in an output batch.
    observe : callable or None
        Called with the pairs of every output batch.
    """

    store: tuple[Rows, Rows]
    schema: pa.Schema
    widths: tuple[int, int]
    rows: int = 1 << 16
    observe: Callable[[Columns], None] | None = None


class Materialize(ConduitExecStream[MaterializeParams, Columns, pa.RecordBatch]):
    """Stream that puts the rows given by columns ``left`` and ``right`` side by side.

    Where a row number stands for no row, the columns are null. ``observe`` gets the original row
    numbers of the user's inputs.
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
                numbers = {
                    name: _original(rows, part[name])
                    for rows, name in zip(self._p.store, ("left", "right"), strict=True)
                }
                self._p.observe(Columns({**part.arrays, **numbers}))
            self.input.consume(count)
            done += count
        return StreamResult.QUANTUM_EXPIRED

    @staticmethod
    def _rows(pairs: Columns, params: MaterializeParams) -> pa.RecordBatch:
        columns: list[pa.Array] = []
        types = params.schema.types
        for rows, name, width in zip(params.store, ("left", "right"), params.widths, strict=True):
            if width:
                begin = len(columns)
                columns += _taken(rows, pairs[name], types[begin : begin + width])
        if not columns:
            raise ValueError("A result needs at least one column")
        return pa.RecordBatch.from_arrays(columns, schema=params.schema)


def _taken(rows: Rows, numbers: Int64s, types: Sequence[pa.DataType]) -> list[pa.Array]:
    """Return columns of rows, of the given ``types``, with nulls where there is no row."""
    there = numbers != NO_ROW
    if there.all():
        return rows.take(numbers)
    if not there.any():
        return [pa.nulls(len(numbers), kind) for kind in types]
    places = pa.array(np.cumsum(there) - 1, mask=~there)
    return [column.take(places) for column in rows.take(numbers[there])]


def _original(rows: Rows, numbers: Int64s) -> Int64s:
    known = numbers.copy()
    there = numbers != NO_ROW
    known[there] = rows.original(numbers[there])
    return known

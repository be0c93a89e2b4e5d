# SPDX-License-Identifier: Apache-2.0
"""Pairs of row numbers as the rows themselves."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from host.join_type import NO_ROW
from host.runtime import Columns, ConduitExecStream, ConduitParams, Quantum, StreamResult
from host.streams.row_store import Rows

__all__ = ["Materialize", "MaterializeParams"]

Int64s = npt.NDArray[np.int64]


@dataclass(frozen=True)
class MaterializeParams(ConduitParams):
    """Parameters of :class:`Materialize`.

    Parameters
    ----------
    store : tuple of Rows
        The rows of both sides.
    schema : pa.Schema
        Of the result: the left columns, then the right columns, or the left columns only.
    widths : tuple of int
        How many of its columns are of the left side, and of the right side.
    rows : int
        Most rows of an output batch.
    observe : callable or None
        Is given the pairs of every output batch.
    """

    store: tuple[Rows, Rows]
    schema: pa.Schema
    widths: tuple[int, int]
    rows: int = 1 << 16
    observe: Callable[[Columns], None] | None = None


class Materialize(ConduitExecStream[MaterializeParams, Columns, pa.RecordBatch]):
    """Takes the rows that ``left`` and ``right`` of its input name, and puts them side by side.

    Where there is no row, by its number, nulls take its place.

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
    """Columns of rows, of these ``types``; nulls where there is no row."""
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

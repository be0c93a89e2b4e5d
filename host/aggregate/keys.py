# SPDX-License-Identifier: Apache-2.0
"""Keys of rows as numbers, in batches, and the keys of the numbers again."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from host.encode.dictionary import GrowingCodes, IntegerCodes
from host.encode.kinds import ColumnType, Kind, column_type, validity
from host.windowed.runs import run_begins

__all__ = ["KeyNumbers"]

Int64s = npt.NDArray[np.int64]


class KeyNumbers:
    """Numbers distinct keys from zero, in the order of their first appearance.

    A null is a value like any other here: rows with nulls in the same columns can have one key.
    Floats are grouped as Spark does: all NaNs are one value, and 0.0 and -0.0 are.

    Parameters
    ----------
    schema : pa.Schema
        Columns of the input.
    names : sequence of str
        Columns that make up a key; may be empty, then there is one key.

    Raises
    ------
    UsageError
        If there is no such column, or its values cannot be compared.
    """

    def __init__(self, schema: pa.Schema, names: Sequence[str]) -> None:
        found = [column_type(schema, name, "input") for name in names]
        self._types: list[ColumnType] = [one.whole() if one.is_wide else one for one in found]
        self.schema = pa.schema([schema.field(name) for name in names])
        self._codes = [
            GrowingCodes() if one.kind.is_coded or one.kind is Kind.DECIMAL else IntegerCodes()
            for one in self._types
        ]
        self._numbers: dict[tuple[int, ...], int] = {}  # by codes, if there are several columns
        self._table = np.zeros(0, np.int64)  # by code, if there is one column; -1 is no number
        self._count = 0
        self._rows: list[pa.RecordBatch] = []  # one row for each number
        self._ranks: Int64s | None = None  # of all keys so far, once somebody has asked

    def __len__(self) -> int:
        """Return the number of distinct keys so far."""
        return self._count if self._types else 1

    def of_rows(self, batch: pa.RecordBatch) -> Int64s:
        """Return the number of each row's key."""
        if not self._types:
            return np.zeros(batch.num_rows, np.int64)
        columns = [self._column(at, batch) for at in range(len(self._types))]
        one = len(columns) == 1
        return self._of_codes(columns[0], batch) if one else self._numbered(columns, batch)

    def _column(self, at: int, batch: pa.RecordBatch) -> Int64s:
        """Return the codes of a column of the keys; that of a null is 0."""
        found, codes = self._types[at], self._codes[at]
        values = found.read(batch)
        if isinstance(codes, IntegerCodes):
            code = codes.of_integers(values)
        else:
            code = codes.of_values(values).astype(np.int64)
        valid = validity(values)
        return code + 1 if valid is None else np.where(valid, code + 1, 0)

    def rows(self, numbers: Int64s) -> list[pa.Array]:
        """Return the columns of the keys with these numbers."""
        if not self._types:
            return []
        self._rows = [pa.concat_batches(self._rows)] if len(self._rows) > 1 else self._rows
        if not self._rows:
            return [pa.nulls(0, field.type) for field in self.schema]
        return list(self._rows[0].take(pa.array(numbers)).columns)

    def ranks(self) -> Int64s:
        """Return the place of each number's key among all keys sorted, nulls last."""
        if not self._types or not self._rows:
            return np.zeros(len(self), np.int64)
        if self._ranks is None:
            self._ranks = self._sorted_places()
        return self._ranks

    def _sorted_places(self) -> Int64s:
        columns = [
            column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
            for column in self.rows(np.arange(len(self), dtype=np.int64))
        ]
        columns = [getattr(column, "storage", column) for column in columns]
        names = [str(at) for at in range(len(columns))]
        columns = [
            column.cast(pa.float32()) if pa.types.is_float16(column.type) else column
            for column in columns  # Arrow does not sort 16 bits
        ]
        order = pc.sort_indices(
            pa.table(columns, names=names), sort_keys=[(name, "ascending") for name in names]
        )
        places = np.empty(len(self), np.int64)
        places[order.to_numpy()] = np.arange(len(self))
        return places

    def _of_codes(self, codes: Int64s, batch: pa.RecordBatch) -> Int64s:
        """Return the numbers of keys of one column; remember a row of each new one."""
        more = len(self._codes[0]) + 1 - len(self._table)
        self._table = np.concatenate([self._table, np.full(max(more, 0), -1, np.int64)])
        unknown = np.flatnonzero(self._table[codes] < 0)
        if len(unknown):
            fresh, first = np.unique(codes[unknown], return_index=True)
            self._table[fresh] = np.arange(self._count, self._count + len(fresh))
            self._remember(batch, unknown[first])
        return self._table[codes]

    def _remember(self, batch: pa.RecordBatch, rows: Int64s) -> None:
        """Keep the keys of rows, which get the next numbers."""
        keys = batch.select(self.schema.names).take(pa.array(rows))
        columns = [_shown(column) for column in keys.columns]
        self._rows.append(pa.RecordBatch.from_arrays(columns, schema=self.schema))
        self._count += len(rows)
        self._ranks = None

    def _numbered(self, columns: Sequence[Int64s], batch: pa.RecordBatch) -> Int64s:
        """Return the number of each combination of codes; remember a row of each new one."""
        order = np.lexsort(tuple(columns))
        ordered = [column[order] for column in columns]
        begins = run_begins(ordered)
        firsts = np.flatnonzero(begins)
        known = self._numbers
        fresh: list[int] = []
        numbers = np.empty(len(firsts), np.int64)
        parts = zip(*(column[firsts].tolist() for column in ordered), strict=True)
        for at, (row, codes) in enumerate(zip(order[firsts].tolist(), parts, strict=True)):
            if codes not in known:
                known[codes] = self._count + len(fresh)
                fresh.append(row)
            numbers[at] = known[codes]
        if fresh:
            self._remember(batch, np.array(fresh, np.int64))
        result = np.empty(len(order), np.int64)
        result[order] = numbers[np.cumsum(begins) - 1]
        return result


def _shown(column: pa.Array) -> pa.Array:
    """Return values as results show them: -0.0 as 0.0, whichever of the two came first."""
    if not pa.types.is_floating(column.type):
        return column
    if pa.types.is_float16(column.type):  # which Arrow does not add
        return pc.add(column.cast(pa.float32()), pa.scalar(0, pa.float32())).cast(column.type)
    return pc.add(column, pa.scalar(0, column.type))

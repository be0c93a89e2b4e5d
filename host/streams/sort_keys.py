# SPDX-License-Identifier: Apache-2.0
"""Order rows by several columns: comparison of neighbours, and the stable sorting permutation."""

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from host.errors import UnknownColumnError, UsageError

__all__ = ["Bools", "falls", "key_columns", "repeats", "sorting_permutation"]

Bools = npt.NDArray[np.bool_]
Rows: TypeAlias = pa.RecordBatch | pa.Table


def key_columns(schema: pa.Schema, by: Sequence[str] | None) -> tuple[str, ...]:
    """Return the names in ``by``, or all names if None, after checking them against ``schema``.

    Raises
    ------
    UsageError
        If a column is missing, or there is no column.
    """
    names = tuple(schema.names) if by is None else tuple(by)
    for name in names:
        if name not in schema.names:
            raise UnknownColumnError(name, schema.names)
    if not names:
        raise UsageError("Rows are compared by at least one column, but there is none.")
    return names


def repeats(rows: pa.RecordBatch, by: Sequence[str]) -> Bools:
    """Return whether each row but the first equals the row before it; nulls equal nulls."""
    count = max(rows.num_rows - 1, 0)
    result = np.ones(count, np.bool_)
    for name in by:
        result &= _same(*_neighbours(rows.column(name)))
    return result


def falls(rows: pa.RecordBatch, by: Sequence[str]) -> Bools:
    """Return whether each row but the first is less than the row before it; nulls come last."""
    count = max(rows.num_rows - 1, 0)
    result, undecided = np.zeros(count, np.bool_), np.ones(count, np.bool_)
    for number, name in enumerate(by, 1):
        first, second = _neighbours(rows.column(name))
        result |= undecided & _less(second, first)
        if number < len(by):
            undecided &= _same(first, second)
    return result


def sorting_permutation(rows: Rows, by: Sequence[str]) -> pa.Array:
    """Return the permutation that sorts ``rows``; equal rows keep their order, nulls come last."""
    return pc.sort_indices(rows, sort_keys=[(name, "ascending") for name in by])


def _neighbours(column: pa.Array) -> tuple[pa.Array, pa.Array]:
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    return column.slice(0, max(len(column) - 1, 0)), column.slice(1)


def _less(values: pa.Array, bounds: pa.Array) -> Bools:
    """Return whether each value is less than its bound; nulls are greater than all values."""
    if pa.types.is_timestamp(values.type):
        values, bounds = values.view(pa.int64()), bounds.view(pa.int64())
    plain = pa.types.is_integer(values.type) or pa.types.is_floating(values.type)
    if plain and not (values.null_count or bounds.null_count):
        less: Bools = np.less(values.to_numpy(), bounds.to_numpy())
        return less
    less = _mask(pc.less(values, bounds))
    if bounds.null_count:
        less |= _mask(bounds.is_null()) & ~_mask(values.is_null())
    return less


def _same(first: pa.Array, second: pa.Array) -> Bools:
    same = _mask(pc.equal(first, second))
    if first.null_count or second.null_count:
        same |= _mask(first.is_null()) & _mask(second.is_null())
    return same


def _mask(values: Any) -> Bools:
    filled: Bools = pc.fill_null(values, False).to_numpy(zero_copy_only=False)
    return filled

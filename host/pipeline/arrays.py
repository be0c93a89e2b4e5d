# SPDX-License-Identifier: Apache-2.0
"""The rows of a pipeline as one NumPy array for each column."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from host.errors import FailureError, UnsupportedTypeError, UsageError
from host.pipeline.execution import Execution

__all__ = ["arrays_of"]

Array = npt.NDArray[Any]


def arrays_of(execution: Execution) -> dict[str, Array]:
    """Run and return each column as one array; SIZED rows are written to it directly.

    Raises
    ------
    UnsupportedTypeError
        If a column does not consist of numbers, booleans, dates or times.
    """
    dtypes = {field.name: _dtype(field) for field in execution.schema}
    rows = execution.traits.rows
    if rows is None:
        parts: dict[str, list[Array]] = {name: [] for name in dtypes}
        for batch in execution.batches():
            for name, column in zip(parts, batch.columns, strict=True):
                parts[name].append(_filled(name, column))
        return {
            name: np.concatenate([np.zeros(0, dtypes[name]), *arrays])
            for name, arrays in parts.items()
        }
    result: dict[str, Array] = {name: np.empty(rows, dtype) for name, dtype in dtypes.items()}
    place = 0
    for batch in execution.batches():
        if place + batch.num_rows > rows:
            raise FailureError(f"A pipeline that declares {rows} rows has more of them.")
        for name, column in zip(result, batch.columns, strict=True):
            result[name][place : place + batch.num_rows] = _filled(name, column)
        place += batch.num_rows
    if place != rows:
        raise FailureError(f"A pipeline that declares {rows} rows has {place}.")
    return result


def _dtype(field: pa.Field) -> np.dtype[Any]:
    if not pa.types.is_primitive(field.type):
        raise UnsupportedTypeError(field.name, field.type, "numbers, booleans, dates, times")
    empty: Array = pa.array([], field.type).to_numpy(zero_copy_only=False)
    return empty.dtype


def _filled(name: str, column: pa.Array) -> Array:
    if column.null_count:
        raise UsageError(f"Column {name!r} has nulls, which an array has no place for; fill them.")
    array: Array = column.to_numpy(zero_copy_only=False)
    return array

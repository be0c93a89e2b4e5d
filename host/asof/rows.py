# SPDX-License-Identifier: Apache-2.0
"""Put rows of two tables side by side."""

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from host.encode.contiguous import contiguous
from host.reference.join_type import NO_ROW

__all__ = ["joined_rows"]

Int64s = npt.NDArray[np.int64]


def joined_rows(
    tables: tuple[pa.Table, pa.Table], numbers: tuple[Int64s, Int64s], schema: pa.Schema
) -> pa.RecordBatch:
    """Return the given rows of two tables as one batch.

    Parameters
    ----------
    tables : tuple of pa.Table
        The left and the right table.
    numbers : tuple of array of int64
        Row numbers of each; ``NO_ROW`` for nulls.
    schema : pa.Schema
        Schema of the batch: the left columns, then the right ones.
    """
    columns = []
    for table, rows in zip(tables, numbers, strict=True):
        missing = rows == NO_ROW
        places = pa.array(rows, mask=missing if missing.any() else None)
        columns += [contiguous(column) for column in table.take(places).columns]
    return pa.RecordBatch.from_arrays(columns, schema=schema)

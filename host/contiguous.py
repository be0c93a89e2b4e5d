# SPDX-License-Identifier: Apache-2.0
"""Columns of a table as one array."""

import pyarrow as pa

__all__ = ["contiguous"]


def contiguous(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return a column as one array; it is copied only if it lies in several chunks."""
    if isinstance(column, pa.Array):
        return column
    if column.num_chunks == 1:
        return column.chunk(0)
    # Large columns may stay in chunks even so, by the offsets of their type.
    array = column.combine_chunks()
    return pa.concat_arrays(array.chunks) if isinstance(array, pa.ChunkedArray) else array

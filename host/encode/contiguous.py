# SPDX-License-Identifier: Apache-2.0
"""Turn a table's column into one array."""

import pyarrow as pa

__all__ = ["contiguous"]


def contiguous(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return a column as one array, copied only if the column has several chunks."""
    if isinstance(column, pa.Array):
        return column
    if column.num_chunks == 1:
        return column.chunk(0)
    # Large columns may stay chunked even after combining, because of the width of their offsets.
    array = column.combine_chunks()
    return pa.concat_arrays(array.chunks) if isinstance(array, pa.ChunkedArray) else array

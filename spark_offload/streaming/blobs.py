# SPDX-License-Identifier: Apache-2.0
"""Rows as bytes: an Arrow stream with its schema, in which every type comes back as it was.

Spark hands rows to a stateful processor as pandas frames, where a whole number beside a null
becomes a float; so rows travel past pandas inside a binary column.
"""

from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from spark_offload.tasks.task import declared

__all__ = ["from_blob", "microseconds", "to_blob", "whole_table"]


def to_blob(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> bytes:
    """Return rows of ``schema`` as bytes."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return bytes(sink.getvalue())


def from_blob(blob: bytes | pa.Buffer, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield the rows that :func:`to_blob` made bytes, with exactly the declared types."""
    with pa.ipc.open_stream(blob) as reader:
        for batch in reader:
            yield declared(batch, schema)


def whole_table(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> pa.Table:
    """Return the rows as one table."""
    return pa.Table.from_batches(list(batches), schema)


def microseconds(table: pa.Table, column: str) -> npt.NDArray[np.int64]:
    """Return the timestamps of a column without nulls as whole numbers."""
    values: npt.NDArray[np.int64] = table.column(column).cast(pa.int64()).to_numpy()
    return values

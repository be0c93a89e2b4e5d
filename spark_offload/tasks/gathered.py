# SPDX-License-Identifier: Apache-2.0
"""Fewer and larger batches than Spark sends, since a task works batch by batch."""

from collections.abc import Iterator

import pyarrow as pa

from host.session.rows import joined

__all__ = ["MOST_BYTES", "gathered"]

MOST_BYTES = 1 << 23
"""Bytes at which a batch is large enough, however few rows it has."""


def gathered(batches: Iterator[pa.RecordBatch], rows: int) -> Iterator[pa.RecordBatch]:
    """Yield the rows of ``batches`` in the same order, in batches of about ``rows`` rows.

    Spark sends batches of 10,000 rows (``spark.sql.execution.arrow.maxRecordsPerBatch``). What a
    task does for a batch takes milliseconds besides what it does for the rows.

    The first batch passes as it is, and the next ones grow with the rows that have passed, so that
    the device begins as early as without gathering. No batch is cut. Batches that are joined are
    copied, and are let go then.

    Parameters
    ----------
    batches : iterator of RecordBatch
        Batches of one schema.
    rows : int
        A batch with so many rows is large enough.
    """
    waiting: list[pa.RecordBatch] = []
    count = size = passed = 0
    for batch in batches:
        waiting.append(batch)
        count += batch.num_rows
        size += batch.nbytes
        if count >= min(rows, passed) or size >= MOST_BYTES:
            passed += count
            yield _one(waiting)
            waiting, count, size = [], 0, 0
    if waiting:
        yield _one(waiting)


def _one(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    return batches[0] if len(batches) == 1 else joined(batches)

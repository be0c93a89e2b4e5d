# SPDX-License-Identifier: Apache-2.0
"""Rows that come alone as rows of the answer, with nulls for the columns of the other side."""

import pyarrow as pa

from spark_offload.layout.tagged import LEFT
from spark_offload.streaming.task import StreamTask

__all__ = ["as_results"]


def as_results(task: StreamTask, side: int, rows: pa.Table) -> list[pa.RecordBatch]:
    """Return rows of one side as rows of the answer.

    Parameters
    ----------
    task : StreamTask
        What is joined.
    side : int
        Of the rows.
    rows : Table
        The rows.
    """
    columns = rows.combine_chunks().columns
    if task.query.how.has_pairs:
        own = len(task.schema(side))
        types = task.output.types[own:] if side == LEFT else task.output.types[:-own]
        nulls = [pa.nulls(rows.num_rows, kind) for kind in types]
        columns = [*columns, *nulls] if side == LEFT else [*nulls, *columns]
    batches: list[pa.RecordBatch] = pa.Table.from_arrays(columns, schema=task.output).to_batches()
    return batches

# SPDX-License-Identifier: Apache-2.0
"""Rows on their way into the processor and out of it: a few rows that carry many as bytes.

A packed input row is ``group, side, rows``. A task that has rows also sends one for the group
:data:`~spark_offload.stream.groups.REGISTRY`, without any, which makes the processor compare
the question with the one that the checkpoint was begun with.
"""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from host.columns.kinds import row_at
from host.errors import OrderError
from spark_offload.stream.groups import REGISTRY
from spark_offload.stream.task import GroupedTask, from_blob, to_blob
from spark_offload.task.task import ArrowFunction, declared, spare_modules, task_function

__all__ = [
    "INPUT_TYPES",
    "pack_function",
    "unpack_function",
]

INPUT_TYPES = "group int not null, side tinyint not null, rows binary"
"""Columns of the packed input, for Spark."""

PACKED_ROWS = 1 << 16
"""Rows that are gathered, at least, before they are packed; fewer at the end of a partition."""

_INPUT = pa.schema([("group", pa.int32()), ("side", pa.int8()), ("rows", pa.binary())])


def pack_function(task: GroupedTask, side: int) -> ArrowFunction:
    """Return the function that packs the rows of one side by their groups.

    It reads a hash of the equal columns, which gives the number of the group, and then the columns
    of the side.
    """
    name = ("left", "right")[side]
    return task_function(
        f"splitjoin_pack_{name}",
        lambda batches, _: _packed(batches, task.in_query(), side, name),
    )


def unpack_function(task: GroupedTask, name: str) -> ArrowFunction:
    """Return the function that takes the pairs out of what the processor returned.

    Spark shows its ``name`` in plans.
    """

    def unpack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for blob in batch.column("pairs"):
                if blob.is_valid:
                    yield from from_blob(blob.as_buffer(), task.output)
        spare_modules()

    unpack.__name__ = unpack.__qualname__ = name
    return unpack


def _packed(
    batches: Iterator[pa.RecordBatch], task: GroupedTask, side: int, name: str
) -> Iterator[pa.RecordBatch]:
    gathered: list[pa.RecordBatch] = []
    before = count = 0
    for batch in batches:
        if not batch.num_rows:
            continue
        if not before + count:
            yield _input_rows([REGISTRY], side, [None])
        rows = declared(batch.select(range(1, batch.num_columns)), task.schema(side))
        _require_times(rows, task.times[side], name)
        names = ["group", *map(str, range(rows.num_columns))]
        gathered.append(pa.RecordBatch.from_arrays([batch.column(0), *rows.columns], names=names))
        count += batch.num_rows
        if count >= PACKED_ROWS:
            yield _by_group(gathered, task, side)
            before, count, gathered = before + count, 0, []
    if gathered:
        yield _by_group(gathered, task, side)


def _by_group(gathered: list[pa.RecordBatch], task: GroupedTask, side: int) -> pa.RecordBatch:
    """Return one packed row for each group that the gathered rows belong to."""
    table = pa.Table.from_batches(gathered)
    numbers = np.mod(table.column(0).to_numpy(), len(task.groups))
    order = np.argsort(numbers, kind="stable")
    if len(task.groups) > 1:
        table = table.take(pa.array(order))
    found, begins = np.unique(numbers[order], return_index=True)
    ends = [*begins[1:].tolist(), len(numbers)]
    schema = task.schema(side)
    rows = pa.Table.from_arrays(table.columns[1:], schema=schema)
    blobs = [
        to_blob(rows.slice(begin, end - begin).to_batches(), schema)
        for begin, end in zip(begins.tolist(), ends, strict=True)
    ]
    return _input_rows([task.groups[number] for number in found.tolist()], side, blobs)


def _input_rows(groups: list[int], side: int, blobs: list[bytes] | list[None]) -> pa.RecordBatch:
    columns = [
        pa.array(groups, pa.int32()),
        pa.array([side] * len(groups), pa.int8()),
        pa.array(blobs, pa.binary()),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=_INPUT)


def _require_times(rows: pa.RecordBatch, order: str, name: str) -> None:
    """Raise if a row has no place in time."""
    column = rows.column(order)
    if column.null_count:
        at = int(np.argmax(column.is_null().to_numpy(zero_copy_only=False)))
        raise OrderError.null(f"{name}.{order}", row=row_at(rows, at))

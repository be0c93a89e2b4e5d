# SPDX-License-Identifier: Apache-2.0
"""What the Spark tasks of a described operator do, in two phases.

The first phase finds keys, and reduces the rows at hand. The second one makes windows and pairs of
all parts of some keys.
"""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass

import pyarrow as pa

from host.operators.operate import OperatorColumns, OperatorQuery, engine_of
from spark_offload.cluster.machines import local_device_uri
from spark_offload.measures import Stopwatch, TaskMetrics, TaskReport
from spark_offload.partitioning.tagged import LEFT, RIGHT
from spark_offload.task.join import ArrowFunction, declared, task_function
from spark_offload.task.operators import PIECE_ROWS
from spark_offload.task.rows import gathered

__all__ = [
    "OperatorTask",
    "operator_function",
]


@dataclass(frozen=True)
class OperatorTask:
    """All that a task of one phase needs to know; shipped with the function.

    Parameters
    ----------
    query : OperatorQuery
        What is computed.
    given : tuple of pa.Schema
        Columns of the rows of each input.
    output : pa.Schema
        Columns of what the phase gives.
    side : int or None
        The input whose rows the first phase reads. None for the second phase, which reads parts: of
        two inputs, those with their side before them, and with nulls for the other side's columns.
    device : str or None
        Address of the accelerator, shipped; None for software.
    device_name : str
        Its address as given.
    """

    query: OperatorQuery
    given: tuple[pa.Schema, ...]
    output: pa.Schema
    side: int | None = None
    device: str | None = None
    device_name: str = ""


def operator_function(task: OperatorTask, name: str, report: TaskReport | None) -> ArrowFunction:
    """Return the function for ``mapInArrow``; Spark shows its ``name`` in plans.

    Parameters
    ----------
    report : callable or None
        Told what a task has measured.
    """
    return task_function(
        name, lambda batches, partition: _operated(batches, task, partition, report)
    )


def _operated(
    batches: Iterator[pa.RecordBatch],
    task: OperatorTask,
    partition: int,
    report: TaskReport | None,
) -> Iterator[pa.RecordBatch]:
    """Yield what a phase gives for a partition; report at the end."""
    watch = Stopwatch()
    columns = OperatorColumns(task.given, task.query)
    rows = results = 0
    device = None if task.device is None else local_device_uri(task.device)
    with closing(engine_of(task.query.operator, device)) as engine:
        if task.side is None:
            parts = _parts_of(watch.reading(batches), columns)
            tables = [columns.second(parts, engine)[0]] if parts is not None else []
            for batch in watch.giving(at for table in tables for at in table.to_batches()):
                results += batch.num_rows
                yield declared(batch, task.output)
        else:
            none = [schema.empty_table() for schema in task.given]
            for batch in gathered(watch.reading(batches), PIECE_ROWS):
                found = pa.Table.from_batches([declared(batch, task.given[task.side])])
                sides = [found if at == task.side else table for at, table in enumerate(none)]
                begins = [rows] * len(sides)
                rows += batch.num_rows
                given = columns.first(sides, engine, begins)
                table = given[0 if len(given) == 1 else task.side]
                results += 0 if columns.has_parts else table.num_rows
                yield from watch.giving(declared(at, task.output) for at in table.to_batches())
        work = engine.work
    if report is not None:
        report(
            TaskMetrics(
                partition=partition,
                device=task.device_name,
                left_rows=rows if task.side == LEFT else 0,
                right_rows=rows if task.side == RIGHT else 0,
                results=results,
                seconds=watch.seconds,
                device_seconds=work.seconds,
                waited_seconds=work.waited,
                cycles=work.cycles,
            )
        )


def _parts_of(batches: Iterator[pa.RecordBatch], columns: OperatorColumns) -> list[pa.Table] | None:
    """Return the parts of each input of a partition; None if there is none."""
    gathered_ = list(batches)
    if not gathered_:
        return None
    table = pa.Table.from_batches(gathered_)
    if len(columns.parts) == 1:
        return [_named(table, columns.parts[0])]
    sides = table.column(0).to_numpy()
    shared = 1 + len(columns.part_keys)
    width = len(columns.parts[LEFT]) - shared
    found = []
    for side, schema in enumerate(columns.parts):
        own = table.filter(pa.array(sides == side))
        first = 1 + shared + (width if side == RIGHT else 0)
        places = [*range(1, 1 + shared), *range(first, first + len(schema) - shared)]
        found.append(_named(own.select(places), schema))
    return found


def _named(table: pa.Table, schema: pa.Schema) -> pa.Table:
    batches = [declared(batch, schema) for batch in table.to_batches()]
    return pa.Table.from_batches(batches, schema).combine_chunks()

# SPDX-License-Identifier: Apache-2.0
"""The rows of a micro-batch as panes: what its tasks do for an aggregation of a stream.

A task reduces the rows at hand, and keeps nothing. Panes of several tasks and micro-batches are put
together by Spark, whose state store keeps them.
"""

from collections.abc import Iterator

import pyarrow as pa

from spark_offload.measures.stopwatch import Stopwatch
from spark_offload.tasks.aggregate_task import AggregateTask, results_of
from spark_offload.tasks.task import ArrowFunction, task_function

__all__ = ["NUMBERS", "panes_function", "panes_schema"]

NUMBERS = {
    "rows": "bigint",
    "seconds": "double",
    "cycles": "bigint",
    "device_seconds": "double",
}
"""What is measured of a task in a micro-batch, with its type in Spark; beside its first pane."""


def panes_schema(panes: pa.Schema, question: pa.Field) -> pa.Schema:
    """Return the columns of panes: those of their aggregation, the question, and the numbers.

    Parameters
    ----------
    panes : pa.Schema
        Columns of the aggregation by panes.
    question : pa.Field
        See :func:`~spark_offload.streaming.question.question_type`; all its values are null.
    """
    kinds = {"bigint": pa.int64(), "double": pa.float64()}
    numbers = [pa.field(name, kinds[kind]) for name, kind in NUMBERS.items()]
    return pa.schema([*panes, question, *numbers])


def panes_function(task: AggregateTask, name: str) -> ArrowFunction:
    """Return the function for ``mapInArrow``; Spark shows its ``name`` in plans.

    Parameters
    ----------
    task : AggregateTask
        The aggregation by panes; ``output`` is what :func:`panes_schema` returned.
    name : str
        Of the function.
    """
    return task_function(name, lambda batches, _: _panes(batches, task))


def _panes(batches: Iterator[pa.RecordBatch], task: AggregateTask) -> Iterator[pa.RecordBatch]:
    watch = Stopwatch()
    with task.begun() as doing:
        (panes,) = results_of(watch.reading(batches), task, doing)
        device = doing.watch
    if not panes.num_rows:
        return
    measured = {
        "rows": doing.work.rows,
        "seconds": watch.seconds,
        "cycles": doing.cycles,
        "device_seconds": 0.0 if device is None else device.seconds,
    }
    columns = list(panes.columns)
    for field in list(task.output)[len(columns) :]:
        values = [measured.get(field.name), *[None] * (panes.num_rows - 1)]
        columns.append(pa.array(values, field.type))
    yield pa.RecordBatch.from_arrays(columns, schema=task.output)

# SPDX-License-Identifier: Apache-2.0
"""What every Spark task of this kit is: rows in, rows out, and what it measured at its end."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
import gc
from typing import Any, TypeAlias

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from host import JoinError
from spark_offload.cluster.machines import cluster_of, ship_packages
from spark_offload.errors import in_partition, task_partition
from spark_offload.measures import JoinMetrics, Stopwatch, TaskMetrics, TaskReport

__all__ = [
    "Answer",
    "ArrowFunction",
    "BUFFER_ROWS",
    "Task",
    "declared",
    "in_utc",
    "spare_modules",
    "task_function",
]

# What Spark's Python workers do with their memory between two tasks.
#
# Spark lets a worker collect garbage behind every task. The collector then visits every object of
# the modules that are loaded, some 90,000 with pandas, PyArrow and this kit: 50 ms of processor
# time, as much as a small task takes.


def spare_modules() -> None:
    """Keep what is loaded by now out of later collections, once in a worker.

    To be called at the end of a task, when everything that a task needs has been loaded. Outside of
    a worker nothing happens.
    """
    if TaskContext.get() is not None:
        _spare()


@cache
def _spare() -> None:
    gc.collect()  # what is garbage now would stay
    gc.freeze()


# What a task is.

ArrowFunction = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
"""What ``mapInArrow`` takes."""

Answer: TypeAlias = tuple[DataFrame, Callable[[], JoinMetrics]]
"""The rows of an answer, and what reads the measurements of its tasks."""

BUFFER_ROWS = 1 << 16
"""Rows that a task reads ahead, at most, besides a batch and the window; rows of a piece, about."""


@dataclass(frozen=True, kw_only=True)
class Task(ABC):
    """Description of the tasks of a step of a plan; shipped with their function.

    Parameters
    ----------
    output : Schema
        Columns of the answer.
    """

    output: pa.Schema

    @abstractmethod
    def work(
        self, batches: Iterator[pa.RecordBatch], told: dict[str, Any]
    ) -> Iterator[pa.RecordBatch]:
        """Yield the answer of a partition.

        Parameters
        ----------
        batches : iterator of RecordBatch
            Its rows.
        told : dict
            What is measured, to be added by the end: fields of :class:`TaskMetrics`. Results are
            the rows that are yielded, unless it tells others.
        """

    def function(self, name: str, report: TaskReport | None = None) -> ArrowFunction:
        """Return the function for ``mapInArrow``.

        Parameters
        ----------
        name : str
            What Spark shows in plans.
        report : callable, optional
            Told what a task has measured, when all its rows have been taken.
        """
        return task_function(
            name, lambda batches, partition: self._reported(batches, partition, report)
        )

    def answer(self, frame: DataFrame, name: str, schema: StructType) -> Answer:
        """Return what the tasks make of a frame, and what reads their measurements."""
        cluster = cluster_of(frame.sparkSession)
        ship_packages(cluster)
        report, read = cluster.gather_tasks()
        return frame.mapInArrow(self.function(name, report), schema), read

    def _reported(
        self, batches: Iterator[pa.RecordBatch], partition: int, report: TaskReport | None
    ) -> Iterator[pa.RecordBatch]:
        watch = Stopwatch()
        told: dict[str, Any] = {}
        results = 0
        found = self.work(watch.reading(batches), told)
        for batch in watch.giving(declared(batch, self.output) for batch in found):
            results += batch.num_rows
            yield batch
        if report is not None:
            context = TaskContext.get()
            stage = None if context is None else context.stageId()
            measured = {"results": results, "stage": stage, **told}
            report(TaskMetrics(partition=partition, seconds=watch.seconds, **measured))


def task_function(
    name: str, work: Callable[[Iterator[pa.RecordBatch], int], Iterator[pa.RecordBatch]]
) -> ArrowFunction:
    """Return the function for ``mapInArrow`` that does the work of a task.

    Parameters
    ----------
    name : str
        What Spark shows in plans.
    work : callable
        Takes the batches and the number of the partition, which errors of this kit then name.
    """

    def function(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        partition = task_partition()
        try:
            yield from work(in_utc(batches), partition)
        except JoinError as error:
            raise in_partition(error, partition) from None
        spare_modules()

    function.__name__ = function.__qualname__ = name
    return function


def in_utc(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield batches of Spark with all instants in UTC, nested ones too.

    Spark names the zone of the session in the types, and Java knows zones, such as ``GMT+8``, that
    Python does not. The numbers are those of UTC in every zone, and the answer's types, which the
    driver has declared, are in UTC, so no task has to know a zone.
    """
    for batch in batches:
        kinds = [_in_utc(kind) for kind in batch.schema.types]
        columns = [
            column if column.type == kind else column.cast(kind)
            for column, kind in zip(batch.columns, kinds, strict=True)
        ]
        fields = [field.with_type(kind) for field, kind in zip(batch.schema, kinds, strict=True)]
        yield pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields))


def _in_utc(kind: pa.DataType) -> pa.DataType:
    def inside(field: pa.Field) -> pa.Field:
        return field.with_type(_in_utc(field.type))

    if pa.types.is_timestamp(kind):
        return kind if kind.tz is None else pa.timestamp(kind.unit, "UTC")
    if pa.types.is_list(kind):
        return pa.list_(inside(kind.value_field))
    if pa.types.is_struct(kind):
        return pa.struct([inside(field) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(inside(kind.key_field), inside(kind.item_field))
    return kind


def declared(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return ``batch`` with exactly the declared columns and types.

    Spark takes what ``mapInArrow`` yields by position and believes its types, so a difference
    would become wrong values instead of an error.
    """
    if batch.num_columns != len(schema):
        raise TypeError(f"The join has {batch.num_columns} columns, not the {len(schema)} declared")
    columns = [
        column if column.type == field.type else column.cast(field.type)
        for column, field in zip(batch.columns, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)

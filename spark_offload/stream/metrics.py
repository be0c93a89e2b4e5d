# SPDX-License-Identifier: Apache-2.0
"""What a query over streams measures in each micro-batch: panes, what is observed, its name."""

from collections.abc import Callable, Iterator, Mapping
import hashlib
import json
import re

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from host import UsageError
from spark_offload.cluster.machines import is_connect
from spark_offload.cluster.query_plans import analysed
from spark_offload.measures import JOINS, NUMBERS, PANE_NUMBERS, RESULTS, JoinMetrics, Stopwatch
from spark_offload.task.operators import AggregateTask
from spark_offload.task.task import ArrowFunction, task_function

__all__ = [
    "measured_by",
    "metrics_name",
    "observed_columns",
    "observed_panes",
    "observed_results",
    "panes_function",
    "panes_schema",
]

# The rows of a micro-batch as panes: what its tasks do for an aggregation of a stream.
#
# A task reduces the rows at hand, and keeps nothing. Panes of several tasks and micro-batches are
# put together by Spark, whose state store keeps them.


def panes_schema(panes: pa.Schema, question: pa.Field) -> pa.Schema:
    """Return the columns of panes: those of their aggregation, the question, and the numbers.

    Parameters
    ----------
    panes : pa.Schema
        Columns of the aggregation by panes.
    question : pa.Field
        See :func:`~spark_offload.stream.task.question_type`; all its values are null.
    """
    kinds = {"bigint": pa.int64(), "double": pa.float64()}
    numbers = [pa.field(name, kinds[kind]) for name, kind in PANE_NUMBERS.items()]
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
        (panes,) = task.results(watch.reading(batches), doing)
        device = doing.device_work
    if not panes.num_rows:
        return
    measured = {
        "rows": doing.rows,
        "seconds": watch.seconds,
        "cycles": device.cycles,
        "device_seconds": device.seconds,
    }
    columns = list(panes.columns)
    for field in list(task.output)[len(columns) :]:
        values = [measured.get(field.name), *[None] * (panes.num_rows - 1)]
        columns.append(pa.array(values, field.type))
    yield pa.RecordBatch.from_arrays(columns, schema=task.output)


def observed_columns() -> list[Column]:
    """Return what is observed over the output of the processor: sums."""
    return [F.coalesce(F.sum(name), F.lit(0)).alias(name) for name in NUMBERS]


def observed_panes() -> list[Column]:
    """Return what is observed over panes."""
    sums = [F.coalesce(F.sum(name), F.lit(0)).alias(name) for name in PANE_NUMBERS]
    return [*sums, F.count(F.lit(1)).alias("panes")]


def observed_results() -> list[Column]:
    """Return what is observed over results."""
    return [F.count(F.lit(1)).alias(RESULTS)]


def measured_by(function: str) -> Callable[[], JoinMetrics]:
    """Return what a plan of streams has for metrics: an error, as a query is measured, no frame.

    Parameters
    ----------
    function : str
        The function that reads the numbers of a query.
    """

    def refuse() -> JoinMetrics:
        raise UsageError(
            f"A streaming frame has no metrics before a query runs it; read "
            f"spark_offload.{function}(query), query being what start() returned."
        )

    return refuse


# Names under which the progress of a query has the numbers of its joins and aggregations.

_CHANGING = re.compile(r"#\d+L?|@[0-9a-f]+|\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")
"""What differs between two plans of the same frame: numbers of columns, addresses, identities."""


def metrics_name(question: Mapping[str, str], *inputs: DataFrame, kind: str = JOINS) -> str:
    """Return a name that tells a join from others, and is the same when a query starts again.

    Parameters
    ----------
    question : mapping of str to str
        What the join asks; see :func:`~spark_offload.stream.task.question_of`.
    inputs : DataFrame
        By what they are read from and what is done to them.
    kind : str
        First part of the name.
    """
    text = json.dumps([dict(question), *map(_described, inputs)], sort_keys=True)
    return f"{kind}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def _described(frame: DataFrame) -> str:
    """Return the plan of a frame as a text that does not depend on the process."""
    if is_connect(frame):
        plan = frame._explain_string(mode="extended")  # type: ignore[operator]
        plan = plan.partition("== Analyzed Logical Plan ==")[2].partition("== Optimized")[0]
    else:
        plan = analysed(frame).toString()
    return _CHANGING.sub("", plan)

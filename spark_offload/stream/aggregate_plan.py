# SPDX-License-Identifier: Apache-2.0
"""The aggregation of a stream over windows of time as a plan.

The rows of a micro-batch become panes in Python, without any state. Spark's own
``groupBy(window(...))`` puts windows together from panes, with its own state, watermark and rules
for late rows; so these are the same as without the kit. A pane stands at its beginning, which is in
the same windows as its rows are; the watermark is taken from the rows.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import DecimalType, StructField, StructType

from host import UsageError
from host.errors import AcceleratorLimitError
from host.operators.aggregate import WindowAggregation
from host.operators.states import Phases
from host.query.queries import BOUNDARIES, Aggregate, AggregateQuery
from spark_offload.cluster.by_value import carrying
from spark_offload.cluster.machines import cluster_of, ship_bundle, ship_packages
from spark_offload.errors import raised
from spark_offload.measures import AGGREGATES, RESULTS
from spark_offload.partitioning.columns import (
    arrow_schema,
    check_frame,
    read_names,
    rows_with_a_time,
)
from spark_offload.plan.aggregate import aggregate_plan
from spark_offload.plan.plan import Options, Plan
from spark_offload.stream.metrics import (
    measured_by,
    metrics_name,
    observed_panes,
    observed_results,
    panes_function,
    panes_schema,
)
from spark_offload.stream.plans import delay, require_watermark
from spark_offload.stream.task import (
    SHUFFLE_PARTITIONS,
    question_of_aggregation,
    question_type,
    state_partitions,
)
from spark_offload.task.operators import AggregateTask
from spark_offload.task.task import Answer
from spark_offload.verification.own_queries import own_windows

__all__ = [
    "make_aggregate_stream_plan",
]

QUESTION = "question"
"""Column of panes whose type is what the aggregation asks."""


def _of_panes(
    plan: Plan,
    device: str | None,
    *,
    query: AggregateQuery,
    name: str,
    question: Mapping[str, str],
    goes_on: bool,
) -> Answer:
    """Reduce rows to panes in tasks, and panes to windows by Spark.

    Parameters
    ----------
    plan : Plan
        Of the aggregation.
    device : str or None
        Address of the accelerator that reduces rows to panes; None for the host.
    query : AggregateQuery
        What is asked.
    name : str
        Under which the progress of a query has the numbers of this aggregation.
    question : mapping of str to str
        What must stay the same for as long as a checkpoint is used.
    goes_on : bool
        Whether the host goes on from the first rows for which an accelerator has no room.
    """
    (frame,) = plan.inputs
    cluster = cluster_of(frame.sparkSession, streaming=True)
    ship_packages(cluster)
    # Names of its own: none of the user's can clash or need quoting.
    renamed, rows = _renamed(frame, query)
    phases = Phases(renamed)
    first = phases.panes
    given = arrow_schema(rows.schema, "frame")
    asked = pa.field(QUESTION, question_type(question))
    schema = panes_schema(WindowAggregation(given, first).schema, asked)
    shipped = None if device is None else ship_bundle(cluster, device)
    task = AggregateTask(query=first, input=given, output=schema, device=shipped, goes_on=goes_on)
    event_time = {BOUNDARIES[0]: frame.schema[query.time].metadata}
    panes = rows.mapInArrow(
        carrying(cluster.luggage, panes_function(task, plan.name)),
        StructType(
            [
                StructField(field.name, field.dataType, True, event_time.get(field.name))
                for field in from_arrow_schema(schema)
            ]
        ),
    ).observe(name, *observed_panes())
    second = replace(phases.windows, on=(*renamed.on, QUESTION))
    values = {result: _combined(one, phases) for result, one in renamed.aggregates.items()}
    windows = own_windows(panes, second, values)
    names = [*BOUNDARIES, *renamed.on, *renamed.aggregates]
    columns = [
        _of_type(windows[given_name], windows.schema[given_name], field)
        for given_name, field in zip(names, plan.schema, strict=True)
    ]
    observed = windows.select(*columns).observe(f"{name}-{RESULTS}", *observed_results())
    return observed, measured_by("stream_aggregate_metrics")


def make_aggregate_stream_plan(
    frame: DataFrame,
    query: AggregateQuery,
    options: Options,
) -> Plan:
    """Check everything that can be checked without reading a row, and decide where to run.

    Raises
    ------
    UsageError
        If the input, a column, a type, the watermark, the windows or the device will not do.
    """
    check_frame(frame, "frame")
    if options.partitions is not None:
        raise UsageError(
            f"partitions={options.partitions} is for batch frames; the windows of a stream lie in "
            f"as many partitions as its state has: set {SHUFFLE_PARTITIONS} before the query's "
            f"first start."
        )
    require_watermark(frame.schema, "frame", query.time)
    question = question_of_aggregation(query, frame.schema.simpleString())
    metrics = metrics_name(question, frame, kind=AGGREGATES)
    late = delay(frame.schema, query.time)

    strategy = partial(
        _of_panes, query=query, name=metrics, question=question, goes_on=not options.strict
    )
    return aggregate_plan(
        frame,
        query,
        options,
        strategy,
        side="frame",
        reduced=Phases(query).panes,
        read=measured_by("stream_aggregate_metrics"),
        partitions=state_partitions(frame.sparkSession),
        partitioning=f"as Spark spreads windows and keys over its state ({SHUFFLE_PARTITIONS})",
        ordering="in no order within a micro-batch; no column carries a watermark",
        watermark=(
            f"{late:,} ms behind {query.time!r}; the results of a window come when the watermark "
            f"reaches its end; a late row counts in those of its windows that have not ended"
        ),
        metrics=(
            f"observedMetrics[{metrics!r}] of a query's progress; stream_aggregate_metrics(query)"
        ),
    )


def _renamed(frame: DataFrame, query: AggregateQuery) -> tuple[AggregateQuery, DataFrame]:
    """Return the query and its rows, those with a time, with numbers for names of columns."""
    rows = rows_with_a_time(frame, query)
    called = dict(zip(read_names(query), rows.columns, strict=True))
    aggregates = {
        f"result{at}": Aggregate(one.function, None if one.column is None else called[one.column])
        for at, one in enumerate(query.aggregates.values())
    }
    keys = tuple(called[key] for key in query.on)
    return replace(query, time=called[query.time], on=keys, aggregates=aggregates), rows


def _combined(one: Aggregate, phases: Phases) -> Column:
    """Return what Spark computes of panes for an aggregate of their rows."""

    def state(function: str) -> Column:
        return F.col(phases.state_column(Aggregate(function, one.column)))

    if one.function == "mean":
        count = F.sum(state("count"))
        return F.sum(state("sum")).cast("double") / F.when(count > 0, count)
    again = {"count": F.sum, "sum": F.sum, "min": F.min, "max": F.max}
    return again[one.function](state(one.function))


def _of_type(column: Column, given: StructField, field: StructField) -> Column:
    """Return a column of the answer; sums of integers come as decimals, and may be too large."""
    if not isinstance(given.dataType, DecimalType):
        return column.cast(field.dataType).alias(field.name)
    least, most = (F.lit(limit).cast("decimal(38,0)") for limit in (-(1 << 63), (1 << 63) - 1))
    beyond = raised(
        AcceleratorLimitError,
        f"Column {field.name!r} holds ",
        column,
        ", which is no integer of 64 bits; sum fewer rows, or ask for the mean, which is floating "
        "point.",
    )
    fits = column.isNull() | column.between(least, most)
    return F.when(fits, column.cast(field.dataType)).otherwise(beyond).alias(field.name)

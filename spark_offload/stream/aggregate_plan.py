# SPDX-License-Identifier: Apache-2.0
"""The aggregation of a stream over windows of time as a plan.

The rows of a micro-batch become panes in Python, without any state. Spark's own
``groupBy(window(...))`` puts windows together from panes, with its own state, watermark and rules
for late rows; so these are the same as without the kit. A pane stands at its beginning, which is in
the same windows as its rows are; the watermark is taken from the rows.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
import logging

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import DecimalType, StructField, StructType

from host import UsageError
from host.errors import AcceleratorLimitError, KeyRangeError, UnsupportedTypeError
from host.operators.aggregate import WindowAggregation
from host.operators.phases import Phases
from host.query.queries import BOUNDARIES, Aggregate, AggregateQuery
from spark_offload.cluster.by_value import carrying
from spark_offload.cluster.machines import cluster_of, ship_bundle, ship_packages
from spark_offload.errors import raised
from spark_offload.explanation.explanations import Cause, StreamAggregateExplanation
from spark_offload.measures import JoinMetrics
from spark_offload.partitioning.columns import (
    answer_schema,
    arrow_schema,
    check_columns,
    check_frame,
    told_apart,
)
from spark_offload.plan.accelerator import OWN, device_text
from spark_offload.plan.aggregate import AggregatePlan, unsupported
from spark_offload.stream.checks import delay, require_watermark, without_watermarks
from spark_offload.stream.metrics import (
    AGGREGATES,
    RESULTS,
    metrics_name,
    observed_panes,
    observed_results,
    panes_function,
    panes_schema,
)
from spark_offload.stream.task import (
    SHUFFLE_PARTITIONS,
    question_of_aggregation,
    question_type,
    state_partitions,
)
from spark_offload.task.operators import AggregateTask
from spark_offload.verification.own_operators import own_aggregate, own_windows

__all__ = [
    "AggregateStreamPlan",
    "OwnAggregateStreamPlan",
    "make_aggregate_stream_plan",
]

_LOG = logging.getLogger("spark_offload")

QUESTION = "question"
"""Column of panes whose type is what the aggregation asks."""


@dataclass(frozen=True, kw_only=True)
class AggregateStreamPlan(AggregatePlan):
    """An aggregation of a stream that is ready to run.

    Parameters
    ----------
    name : str
        Under which the progress of a query has the numbers of this aggregation.
    question : mapping of str to str
        What must stay the same for as long as a checkpoint is used.
    device : str or None
        Address of the accelerator that reduces rows to panes; None for the host.
    goes_on : bool
        Whether the host goes on from the first rows for which an accelerator has no room.
    """

    name: str
    question: Mapping[str, str]
    device: str | None = None
    goes_on: bool = False

    def metrics(self) -> JoinMetrics:
        """Raise: the query that runs it is measured, not its frame."""
        raise UsageError(
            "A streaming frame has no metrics before a query runs it; read "
            "spark_offload.stream_aggregate_metrics(query), query being what start() returned."
        )

    def _run(self) -> tuple[DataFrame, Callable[[], JoinMetrics]]:
        cluster = cluster_of(self.frame.sparkSession, streaming=True)
        ship_packages(cluster)
        # Names of its own: none of the user's can clash or need quoting.
        query, rows = _renamed(self.frame, self.query)
        phases = Phases(query)
        first = phases.panes
        given = arrow_schema(rows.schema, "frame")
        question = pa.field(QUESTION, question_type(self.question))
        schema = panes_schema(WindowAggregation(given, first).schema, question)
        device = None if self.device is None else ship_bundle(cluster, self.device)
        task = AggregateTask(first, given, schema, device=device, goes_on=self.goes_on)
        function = panes_function(task, self.explanation.name)
        event_time = {BOUNDARIES[0]: self.frame.schema[self.query.time].metadata}
        panes = rows.mapInArrow(
            carrying(cluster.luggage, function),
            StructType(
                [
                    StructField(field.name, field.dataType, True, event_time.get(field.name))
                    for field in from_arrow_schema(schema)
                ]
            ),
        ).observe(self.name, *observed_panes())
        second = replace(phases.windows, keys=(*query.keys, QUESTION))
        values = {name: _combined(one, phases) for name, one in query.aggregates.items()}
        windows = own_windows(panes, second, values)
        names = [*BOUNDARIES, *query.keys, *query.aggregates]
        columns = [
            _of_type(windows[name], windows.schema[name], field)
            for name, field in zip(names, self.schema, strict=True)
        ]
        answer = windows.select(*columns)
        return answer.observe(f"{self.name}-{RESULTS}", *observed_results()), self.metrics


@dataclass(frozen=True, kw_only=True)
class OwnAggregateStreamPlan(AggregateStreamPlan):
    """An aggregation of a stream that Spark does by itself."""

    def _run(self) -> tuple[DataFrame, Callable[[], JoinMetrics]]:
        return self.own_answer(), self.metrics


def make_aggregate_stream_plan(
    frame: DataFrame,
    query: AggregateQuery,
    *,
    device: str | None = None,
    partitions: int | None = None,
    strict: bool = False,
) -> AggregateStreamPlan:
    """Check everything that can be checked without reading a row, and decide where to run.

    Raises
    ------
    UsageError
        If the input, a column, a type, the watermark, the windows or the device will not do.
    """
    check_frame(frame, "frame")
    if partitions is not None:
        raise UsageError(
            f"partitions={partitions} is for batch frames; the windows of a stream lie in as many "
            f"partitions as its state has: set {SHUFFLE_PARTITIONS} before the query's first start."
        )
    require_watermark(frame.schema, "frame", query.time)
    cause = None
    try:
        given = check_columns(frame, query, "frame")
        description = device_text(device, given, Phases(query).panes, goes_on=not strict)
        schema = without_watermarks(answer_schema(frame.schema, query))
    except (UnsupportedTypeError, AcceleratorLimitError) as error:
        if strict or device is not None:
            raise
        schema = own_aggregate(frame, query).schema  # raises if Spark cannot compute it either
        description = OWN
        _LOG.warning("The aggregation is done by Spark itself: %s", error)
        cause = unsupported(error)
    question = question_of_aggregation(query, frame.schema.simpleString())
    name = metrics_name(question, frame, kind=AGGREGATES)
    kind = AggregateStreamPlan if cause is None else OwnAggregateStreamPlan
    return kind(
        query=query,
        schema=schema,
        explanation=_explanation(frame, query, schema, name, description, cause),
        frame=frame,
        device=device,
        goes_on=not strict,
        name=name,
        question=question,
    )


def _renamed(frame: DataFrame, query: AggregateQuery) -> tuple[AggregateQuery, DataFrame]:
    """Return the query and its rows, those with a time, with other names of columns."""
    keys = {name: f"key{at}" for at, name in enumerate(query.keys)}
    values = {name: f"value{at}" for at, name in enumerate(query.columns)}
    given, called = told_apart(frame)
    time = F.col(called[query.time])
    named = [("time", time)]
    named += [(new, F.col(called[name])) for name, new in (*keys.items(), *values.items())]
    rows = given.where(time.isNotNull()).select(*(column.alias(name) for name, column in named))
    aggregates = {
        f"result{at}": Aggregate(one.function, None if one.column is None else values[one.column])
        for at, one in enumerate(query.aggregates.values())
    }
    renamed = replace(query, time="time", keys=tuple(keys.values()), aggregates=aggregates)
    return renamed, rows


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
        KeyRangeError,
        f"Column {field.name!r} holds ",
        column,
        ", which is no integer of 64 bits; sum fewer rows, or ask for the mean, which is floating "
        "point.",
    )
    fits = column.isNull() | column.between(least, most)
    return F.when(fits, column.cast(field.dataType)).otherwise(beyond).alias(field.name)


def _explanation(
    frame: DataFrame,
    query: AggregateQuery,
    schema: StructType,
    name: str,
    device: str,
    cause: Cause | None,
) -> StreamAggregateExplanation:
    late = delay(frame.schema, query.time)
    return StreamAggregateExplanation(
        device=device,
        partitions=state_partitions(frame.sparkSession),
        partitioning=f"as Spark spreads windows and keys over its state ({SHUFFLE_PARTITIONS})",
        aggregates=tuple(f"{name} = {one}" for name, one in query.aggregates.items()),
        window=f"{query.window} of {query.time!r}, every {query.advance}; null times are left out",
        ordering="in no order within a micro-batch; no column carries a watermark",
        columns=tuple(schema.names),
        name=f"{'Spark' if cause else 'splitjoin'} aggregate: {query}",
        causes=() if cause is None else (cause,),
        watermark=(
            f"{late:,} ms behind {query.time!r}; the results of a window come when the watermark "
            f"reaches its end; a late row counts in those of its windows that have not ended"
        ),
        metrics=(
            "none: Spark's own progress"
            if cause
            else f"observedMetrics[{name!r}] of a query's progress; stream_aggregate_metrics(query)"
        ),
    )

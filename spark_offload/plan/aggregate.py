# SPDX-License-Identifier: Apache-2.0
"""The aggregation of a batch frame over windows of time as a plan."""

from collections.abc import Callable
from dataclasses import dataclass
import logging

from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from host import UsageError
from host.errors import AcceleratorLimitError, UnsupportedTypeError
from host.operators.aggregate import WindowAggregation
from host.operators.phases import Phases
from host.query.queries import AggregateQuery
from spark_offload.cluster.machines import cluster_of, ship_bundle, ship_packages
from spark_offload.explanation.explanations import AggregateExplanation, Cause
from spark_offload.measures import JoinMetrics
from spark_offload.partitioning.columns import (
    answer_schema,
    arrow_schema,
    check_batch_frame,
    check_columns,
    numbered,
    read_schema,
    rows_with_a_time,
)
from spark_offload.partitioning.placement import require_partitions
from spark_offload.plan.accelerator import HOST, OWN, device_text
from spark_offload.plan.plan import Plan
from spark_offload.task.operators import AggregateTask, aggregate_function
from spark_offload.verification.own_operators import own_aggregate

__all__ = [
    "AggregatePlan",
    "DeviceAggregatePlan",
    "OwnAggregatePlan",
    "make_aggregate_plan",
    "unsupported",
]

_LOG = logging.getLogger("spark_offload")


@dataclass(frozen=True, kw_only=True)
class AggregatePlan(Plan):
    """An aggregation of a batch frame that is ready to run.

    Parameters
    ----------
    query : AggregateQuery
        What is computed.
    schema : StructType
        Columns of the answer.
    explanation : AggregateExplanation
        How it is run and why.
    frame : DataFrame
        The input.
    """

    query: AggregateQuery
    schema: StructType
    explanation: AggregateExplanation
    frame: DataFrame

    def own_answer(self) -> DataFrame:
        """Return the answer by Spark itself, in no order."""
        return own_aggregate(self.frame, self.query)

    def _run(self) -> tuple[DataFrame, Callable[[], JoinMetrics]]:
        cluster = cluster_of(self.frame.sparkSession)
        ship_packages(cluster)
        phases = Phases(self.query)
        rows = rows_with_a_time(self.frame, self.query)
        arrow = arrow_schema(read_schema(self.frame.schema, self.query), "given")
        panes = WindowAggregation(arrow, phases.panes).schema
        pane_columns = numbered(from_arrow_schema(panes))
        first, read_first = cluster.gather_tasks()
        task = AggregateTask(phases.panes, arrow, panes)
        name = self.explanation.name
        parts = rows.mapInArrow(aggregate_function(task, f"{name}, panes", first), pane_columns)
        keys = [pane_columns.names[panes.names.index(key)] for key in self.query.keys]
        placed = parts.repartition(self.explanation.partitions, *keys)
        second, read_second = cluster.gather_tasks()
        task = AggregateTask(
            phases.windows,
            panes,
            arrow_schema(self.schema, "output"),
            phases,
            ends=True,
        )
        answer = placed.mapInArrow(aggregate_function(task, name, second), self.schema)
        return answer, lambda: JoinMetrics((*read_first().tasks, *read_second().tasks))


@dataclass(frozen=True, kw_only=True)
class DeviceAggregatePlan(AggregatePlan):
    """An aggregation whose windows accelerators keep, one in each task.

    Parameters
    ----------
    device : str
        Address of the accelerator.
    goes_on : bool
        Whether the host goes on from the first rows for which an accelerator has no room.
    """

    device: str
    goes_on: bool = False

    def _run(self) -> tuple[DataFrame, Callable[[], JoinMetrics]]:
        cluster = cluster_of(self.frame.sparkSession)
        ship_packages(cluster)
        rows = rows_with_a_time(self.frame, self.query)
        given = read_schema(self.frame.schema, self.query)
        time, *keys = (
            rows.columns[given.names.index(name)] for name in (self.query.time, *self.query.keys)
        )
        placed = rows.repartition(self.explanation.partitions, *keys).sortWithinPartitions(time)
        report, read = cluster.gather_tasks()
        task = AggregateTask(
            self.query,
            arrow_schema(given, "given"),
            arrow_schema(self.schema, "output"),
            in_order=True,
            device=ship_bundle(cluster, self.device),
            device_name=self.device,
            ends=True,
            goes_on=self.goes_on,
        )
        function = aggregate_function(task, self.explanation.name, report)
        return placed.mapInArrow(function, self.schema), read


@dataclass(frozen=True, kw_only=True)
class OwnAggregatePlan(AggregatePlan):
    """An aggregation that Spark does by itself."""

    def _run(self) -> tuple[DataFrame, Callable[[], JoinMetrics]]:
        return self.own_answer(), lambda: JoinMetrics(())


def make_aggregate_plan(
    frame: DataFrame,
    query: AggregateQuery,
    *,
    device: str | None = None,
    partitions: int | None = None,
    strict: bool = False,
) -> AggregatePlan:
    """Check everything that can be checked without reading a row, and decide where to run.

    Raises
    ------
    UsageError
        If the input, a column, a type, the windows or the device will not do.
    """
    check_batch_frame(frame, "given")
    require_partitions(partitions)
    if not query.keys and partitions not in (None, 1):
        raise UsageError(
            f"partitions={partitions} needs keys: without any, each window has one result; leave "
            f"partitions out."
        )
    try:
        given = check_columns(frame, query, "given")
        description = device_text(device, given, query, goes_on=not strict)
    except (UnsupportedTypeError, AcceleratorLimitError) as error:
        if strict or device is not None:
            raise
        own = own_aggregate(frame, query)  # raises if Spark cannot compute it either
        _LOG.warning("The aggregation is done by Spark itself: %s", error)
        explanation = _explanation(frame, query, partitions, own.schema, OWN, unsupported(error))
        return OwnAggregatePlan(
            query=query, schema=own.schema, explanation=explanation, frame=frame
        )
    schema = answer_schema(frame.schema, query)
    explanation = _explanation(frame, query, partitions, schema, description)
    if device is not None:
        return DeviceAggregatePlan(
            query=query,
            schema=schema,
            explanation=explanation,
            frame=frame,
            device=device,
            goes_on=not strict,
        )
    return AggregatePlan(query=query, schema=schema, explanation=explanation, frame=frame)


def unsupported(error: UnsupportedTypeError | AcceleratorLimitError) -> Cause:
    """Return why Spark itself computes an aggregation of a type that the host refuses."""
    if isinstance(error, AcceleratorLimitError):
        return Cause(error.reason, (), error.remedy)
    return Cause(
        f"values of type {error.type_name} are not aggregated on the host",
        (error.column,),
        f"cast it to one of: {error.supported}",
    )


def _explanation(
    frame: DataFrame,
    query: AggregateQuery,
    partitions: int | None,
    schema: StructType,
    device: str,
    cause: Cause | None = None,
) -> AggregateExplanation:
    count = partitions or (cluster_of(frame.sparkSession).cores if query.keys else 1)
    where = f"by the keys {', '.join(query.keys)}" if query.keys else "there are no keys"
    what = "of panes of all rows at hand" if device == HOST else "all rows, sorted by time"
    return AggregateExplanation(
        device=device,
        partitions=count,
        partitioning="as Spark decides" if cause else f"{where}, {what}",
        aggregates=tuple(f"{name} = {one}" for name, one in query.aggregates.items()),
        window=f"{query.window} of {query.time!r}, every {query.advance}; null times are left out",
        ordering="in no order" if cause else "in each partition by window, then by keys",
        columns=tuple(schema.names),
        name=f"{'Spark' if cause else 'splitjoin'} aggregate: {query}",
        causes=() if cause is None else (cause,),
    )

# SPDX-License-Identifier: Apache-2.0
"""The aggregation of a batch frame over windows of time as a plan."""

from functools import partial
import logging
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from host import UsageError
from host.errors import AcceleratorLimitError, UnsupportedTypeError
from host.operators.aggregate import WindowAggregation
from host.operators.states import Phases
from host.query.queries import BOUNDARIES, AggregateQuery
from spark_offload.cluster.machines import cluster_of, ship_bundle, ship_packages
from spark_offload.explanation.explanations import Cause, Explanation
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
from spark_offload.plan.plan import Answer, Plan, Strategy, by_spark_itself
from spark_offload.task.operators import AggregateTask, aggregate_function
from spark_offload.verification.own_operators import own_aggregate

__all__ = [
    "aggregate_plan",
    "make_aggregate_plan",
    "unsupported",
]

_LOG = logging.getLogger("spark_offload")


def _on_host(
    frame: DataFrame, *, query: AggregateQuery, schema: StructType, partitions: int, name: str
) -> Answer:
    """Reduce rows to panes where they are, and panes to windows where their keys are."""
    cluster = cluster_of(frame.sparkSession)
    ship_packages(cluster)
    phases = Phases(query)
    rows = rows_with_a_time(frame, query)
    arrow = arrow_schema(read_schema(frame.schema, query), "given")
    panes = WindowAggregation(arrow, phases.panes).schema
    pane_columns = numbered(from_arrow_schema(panes))
    first, read_first = cluster.gather_tasks()
    task = AggregateTask(phases.panes, arrow, panes)
    parts = rows.mapInArrow(aggregate_function(task, f"{name}, panes", first), pane_columns)
    keys = [pane_columns.names[panes.names.index(key)] for key in query.on]
    placed = parts.repartition(partitions, *keys)
    second, read_second = cluster.gather_tasks()
    task = AggregateTask(
        phases.windows,
        panes,
        arrow_schema(schema, "output"),
        phases,
        ends=True,
    )
    answer = placed.mapInArrow(aggregate_function(task, name, second), schema)
    return answer, lambda: JoinMetrics((*read_first().tasks, *read_second().tasks))


def _on_devices(
    frame: DataFrame,
    *,
    query: AggregateQuery,
    schema: StructType,
    partitions: int,
    name: str,
    device: str,
    goes_on: bool,
) -> Answer:
    """Let accelerators keep the windows, one in each task.

    Parameters
    ----------
    device : str
        Address of the accelerator.
    goes_on : bool
        Whether the host goes on from the first rows for which an accelerator has no room.
    """
    cluster = cluster_of(frame.sparkSession)
    ship_packages(cluster)
    rows = rows_with_a_time(frame, query)
    given = read_schema(frame.schema, query)
    time, *keys = (rows.columns[given.names.index(column)] for column in (query.time, *query.on))
    placed = rows.repartition(partitions, *keys).sortWithinPartitions(time)
    report, read = cluster.gather_tasks()
    task = AggregateTask(
        query,
        arrow_schema(given, "given"),
        arrow_schema(schema, "output"),
        in_order=True,
        device=ship_bundle(cluster, device),
        device_name=device,
        ends=True,
        goes_on=goes_on,
    )
    return placed.mapInArrow(aggregate_function(task, name, report), schema), read


def make_aggregate_plan(
    frame: DataFrame,
    query: AggregateQuery,
    *,
    device: str | None = None,
    partitions: int | None = None,
    strict: bool = False,
) -> Plan:
    """Check everything that can be checked without reading a row, and decide where to run.

    Raises
    ------
    UsageError
        If the input, a column, a type, the windows or the device will not do.
    """
    check_batch_frame(frame, "given")
    require_partitions(partitions)
    if not query.on and partitions not in (None, 1):
        raise UsageError(
            f"partitions={partitions} needs keys (on): without any, each window has one result; "
            "leave partitions out."
        )
    try:
        given = check_columns(frame, query, "given")
        description = device_text(device, given, query, goes_on=not strict)
    except (UnsupportedTypeError, AcceleratorLimitError) as error:
        if strict or device is not None:
            raise
        schema = own_aggregate(frame, query).schema  # raises if Spark cannot compute it either
        _LOG.warning("The aggregation is done by Spark itself: %s", error)
        explanation = _explanation(frame, query, partitions, schema, OWN, unsupported(error))
        return aggregate_plan(frame, query, explanation, schema)
    schema = answer_schema(frame.schema, query)
    explanation = _explanation(frame, query, partitions, schema, description)
    known: dict[str, Any] = {
        "query": query,
        "schema": schema,
        "partitions": explanation.partitions,
        "name": explanation.name,
    }
    strategy = (
        partial(_on_host, **known)
        if device is None
        else partial(_on_devices, **known, device=device, goes_on=not strict)
    )
    return aggregate_plan(frame, query, explanation, schema, strategy)


def aggregate_plan(
    frame: DataFrame,
    query: AggregateQuery,
    explanation: Explanation,
    schema: StructType,
    strategy: Strategy | None = None,
) -> Plan:
    """Return the plan of an aggregation; without a strategy Spark itself computes it."""
    own = partial(own_aggregate, query=query)
    return Plan(
        query=query,
        inputs=(frame,),
        schema=schema,
        explanation=explanation,
        strategy=by_spark_itself(own) if strategy is None else strategy,
        own=own,
        keys=len(BOUNDARIES) + len(query.on),
    )


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
) -> Explanation:
    count = partitions or (cluster_of(frame.sparkSession).cores if query.on else 1)
    where = f"by the keys {', '.join(query.on)}" if query.on else "there are no keys"
    what = "of panes of all rows at hand" if device == HOST else "all rows, sorted by time"
    return Explanation(
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

# SPDX-License-Identifier: Apache-2.0
"""The aggregation of a batch frame over windows of time as a plan."""

from collections.abc import Callable
from functools import partial
import logging
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from host import UsageError
from host.errors import AcceleratorLimitError, UnsupportedTypeError
from host.operators.aggregate import WindowAggregation, accelerator_of
from host.operators.states import Phases
from host.query.queries import BOUNDARIES, AggregateQuery
from spark_offload.cluster.machines import cluster_of, ship_bundle
from spark_offload.explanation.explanations import Explanation
from spark_offload.measures import JoinMetrics
from spark_offload.partitioning.columns import (
    answer_schema,
    arrow_schema,
    check_batch_frame,
    check_columns,
    numbered,
    read_names,
    read_schema,
    rows_with_a_time,
)
from spark_offload.partitioning.placement import require_partitions
from spark_offload.partitioning.stored import StoredRows, stored_rows
from spark_offload.plan.accelerator import OWN, device_text
from spark_offload.plan.options import Options
from spark_offload.plan.plan import Plan, Strategy, by_spark_itself
from spark_offload.task.operators import AggregateTask
from spark_offload.task.task import Answer
from spark_offload.verification.own_operators import own_aggregate

__all__ = [
    "aggregate_plan",
    "make_aggregate_plan",
]

_LOG = logging.getLogger("spark_offload")


def _on_host(
    frame: DataFrame,
    *,
    query: AggregateQuery,
    schema: StructType,
    partitions: int,
    name: str,
    stored: StoredRows | None,
) -> Answer:
    """Reduce rows to panes where they are, and panes to windows where their keys are."""
    phases = Phases(query)
    rows = rows_with_a_time(frame, query) if stored is None else stored.frame(frame.sparkSession)
    arrow = arrow_schema(read_schema(frame.schema, query), "given")
    panes = WindowAggregation(arrow, phases.panes).schema
    pane_columns = numbered(from_arrow_schema(panes))
    first = AggregateTask(query=phases.panes, input=arrow, output=panes, stored=stored)
    parts, read_first = first.answer(rows, f"{name}, panes", pane_columns)
    keys = [pane_columns.names[panes.names.index(key)] for key in query.on]
    placed = parts.repartition(partitions, *keys)
    second = AggregateTask(
        query=phases.windows,
        input=panes,
        output=arrow_schema(schema, "output"),
        whole=phases,
        ends=True,
    )
    answer, read_second = second.answer(placed, name, schema)
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
    rows = rows_with_a_time(frame, query)
    given = read_schema(frame.schema, query)
    time, *keys = (rows.columns[given.names.index(column)] for column in (query.time, *query.on))
    placed = rows.repartition(partitions, *keys).sortWithinPartitions(time)
    task = AggregateTask(
        query=query,
        input=arrow_schema(given, "given"),
        output=arrow_schema(schema, "output"),
        in_order=True,
        device=ship_bundle(cluster, device),
        device_name=device,
        ends=True,
        goes_on=goes_on,
    )
    return task.answer(placed, name, schema)


def make_aggregate_plan(
    frame: DataFrame,
    query: AggregateQuery,
    options: Options,
) -> Plan:
    """Check everything that can be checked without reading a row, and decide where to run.

    Raises
    ------
    UsageError
        If the input, a column, a type, the windows or the device will not do.
    """
    check_batch_frame(frame, "given")
    require_partitions(options.partitions)
    if not query.on and options.partitions not in (None, 1):
        raise UsageError(
            f"partitions={options.partitions} needs keys (on): without any, each window has one "
            f"result; leave partitions out."
        )
    number = options.partitions or (cluster_of(frame.sparkSession).cores if query.on else 1)
    where = f"by the keys {', '.join(query.on)}" if query.on else "there are no keys"
    on_host = options.device is None
    stored = _stored(frame, query) if on_host else None
    what = "of panes of all rows at hand" if on_host else "all rows, sorted by time"
    if stored is not None:
        what = "of panes of all rows, which tasks read from Parquet files"

    def strategy(schema: StructType, name: str, device: str | None) -> Strategy:
        known: dict[str, Any] = {
            "query": query, "schema": schema, "partitions": number, "name": name
        }  # fmt: skip
        if device is None:
            return partial(_on_host, **known, stored=stored)
        return partial(_on_devices, **known, device=device, goes_on=not options.strict)

    return aggregate_plan(
        frame,
        query,
        options,
        strategy,
        partitions=number,
        partitioning=f"{where}, {what}",
        ordering="in each partition by window, then by keys",
    )


def _stored(frame: DataFrame, query: AggregateQuery) -> StoredRows | None:
    names = read_names(query)
    if not set(names) <= set(frame.columns):
        return None  # to be complained of
    cores = cluster_of(frame.sparkSession).cores
    found = stored_rows(frame, names, query.time, cores)
    return None if isinstance(found, str) else found


def aggregate_plan(
    frame: DataFrame,
    query: AggregateQuery,
    options: Options,
    strategy: Callable[[StructType, str, str | None], Strategy],
    *,
    side: str = "given",
    reduced: AggregateQuery | None = None,
    schema_of: Callable[[StructType, AggregateQuery], StructType] = answer_schema,
    read: Callable[[], JoinMetrics] = JoinMetrics,
    **words: Any,
) -> Plan:
    """Return the plan of an aggregation, which Spark itself computes where the host cannot.

    Parameters
    ----------
    strategy : callable
        Takes the columns of the answer, what the aggregation is called in Spark's plan, and the
        address of its accelerator, if it has one.
    side : str
        What messages call the input.
    reduced : AggregateQuery, optional
        What an accelerator computes, if that is not all of the query.
    schema_of : callable
        Returns the columns of the answer.
    read : callable
        Reads what was measured where Spark itself computes it.
    words
        What only this way to run has to say in the explanation.
    """
    device, own = options.device, partial(own_aggregate, query=query)
    assert device is None or isinstance(device, str)
    refusal = None
    try:
        given = check_columns(frame, query, side)
        computed = reduced or query
        device = None if device is None else accelerator_of(given, computed, device)
        text = device_text(device, given, computed, goes_on=not options.strict)
        schema = schema_of(frame.schema, query)
    except (UnsupportedTypeError, AcceleratorLimitError) as error:
        if options.strict or device is not None:
            raise
        text, schema = OWN, own(frame).schema  # raises if Spark cannot compute it either
        _LOG.warning("The aggregation is done by Spark itself: %s", error)
        refusal = error
    explanation = Explanation(
        device=text,
        aggregates=tuple(f"{name} = {one}" for name, one in query.aggregates.items()),
        window=f"{query.window} of {query.time!r}, every {query.advance}; null times are left out",
        columns=tuple(schema.names),
        name=f"splitjoin aggregate: {query}",
        **words,
    )
    if refusal is not None:
        explanation = explanation.by_spark(OWN, "Spark aggregate", refusal)
    return Plan(
        query=query,
        inputs=(frame,),
        schema=schema,
        explanation=explanation,
        strategy=(
            strategy(schema, explanation.name, device)
            if refusal is None
            else by_spark_itself(own, read)
        ),
        own=own,
        keys=len(BOUNDARIES) + len(query.on),
    )

# SPDX-License-Identifier: Apache-2.0
"""The aggregation of a batch frame over windows of time as a plan."""

from collections.abc import Callable
from functools import partial
import logging
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema

from host import UsageError
from host.devices import device_kind
from host.errors import AcceleratorLimitError, UnsupportedTypeError, unusable_uri
from host.operators.aggregate import WindowAggregation, accelerator_of
from host.operators.states import Phases
from host.protocol.manifest import AggregateManifest
from host.query.queries import BOUNDARIES, AggregateQuery
from spark_offload.cluster.machines import cluster_of, ship_bundle
from spark_offload.explanation import Explanation
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
from spark_offload.plan.plan import Options, Plan
from spark_offload.task.operators import AggregateTask
from spark_offload.task.task import Answer
from spark_offload.verification.own_queries import own_aggregate

__all__ = [
    "aggregate_plan",
    "make_aggregate_plan",
]

_LOG = logging.getLogger("spark_offload")


def _on_host(
    plan: Plan, query: AggregateQuery, partitions: int, stored: StoredRows | None
) -> Answer:
    """Reduce rows to panes where they are, and panes to windows where their keys are."""
    (frame,) = plan.inputs
    phases = Phases(query)
    rows = rows_with_a_time(frame, query) if stored is None else stored.frame(frame.sparkSession)
    arrow = arrow_schema(read_schema(frame.schema, query), "given")
    panes = WindowAggregation(arrow, phases.panes).schema
    pane_columns = numbered(from_arrow_schema(panes))
    first = AggregateTask(query=phases.panes, input=arrow, output=panes, stored=stored)
    parts, read_first = first.answer(rows, f"{plan.name}, panes", pane_columns)
    keys = [pane_columns.names[panes.names.index(key)] for key in query.on]
    placed = parts.repartition(partitions, *keys)
    second = AggregateTask(
        query=phases.windows,
        input=panes,
        output=arrow_schema(plan.schema, "output"),
        whole=phases,
        ends=True,
    )
    answer, read_second = second.answer(placed, plan.name, plan.schema)
    return answer, lambda: JoinMetrics((*read_first().tasks, *read_second().tasks))


def _on_devices(
    plan: Plan, query: AggregateQuery, partitions: int, device: str, *, goes_on: bool
) -> Answer:
    """Let accelerators keep the windows, one in each task.

    ``goes_on``: the host does from the first rows on for which an accelerator has no room.
    """
    (frame,) = plan.inputs
    cluster = cluster_of(frame.sparkSession)
    rows = rows_with_a_time(frame, query)
    given = read_schema(frame.schema, query)
    time, *keys = (rows.columns[given.names.index(column)] for column in (query.time, *query.on))
    placed = rows.repartition(partitions, *keys).sortWithinPartitions(time)
    task = AggregateTask(
        query=query,
        input=arrow_schema(given, "given"),
        output=arrow_schema(plan.schema, "output"),
        in_order=True,
        device=ship_bundle(cluster, device),
        device_name=device,
        ends=True,
        goes_on=goes_on,
    )
    return task.answer(placed, plan.name, plan.schema)


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

    def strategy(plan: Plan, device: str | None) -> Answer:
        if device is None:
            return _on_host(plan, query, number, stored)
        return _on_devices(plan, query, number, device, goes_on=not options.strict)

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
    strategy: Callable[..., Answer],
    *,
    side: str = "given",
    reduced: AggregateQuery | None = None,
    read: Callable[[], JoinMetrics] = JoinMetrics,
    **words: Any,
) -> Plan:
    """Return the plan of an aggregation, which Spark itself computes where the host cannot.

    Parameters
    ----------
    strategy : callable
        Answers the plan; takes the address of its accelerator too, or None, as ``device``.
    side : str
        What messages call the input.
    reduced : AggregateQuery, optional
        What an accelerator computes, if that is not all of the query.
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
        text = _device_text(device, given, computed, goes_on=not options.strict)
        schema = answer_schema(frame.schema, query)
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
            partial(strategy, device=device)
            if refusal is None
            else lambda plan: (plan.own_answer(), read)
        ),
        own=own,
        keys=len(BOUNDARIES) + len(query.on),
    )


# Who keeps the windows of an aggregation: Spark, the host, or an accelerator that suits it.

HOST = "none: panes on the host"
"""Nobody but the host."""

OWN = "Spark's own groupBy(window(...))"
"""Spark itself."""


def _device_text(
    device: str | None, schema: pa.Schema, query: AggregateQuery, *, goes_on: bool = False
) -> str:
    """Return what keeps the windows of a query, in words.

    Parameters
    ----------
    device : str or None
        Address of the accelerator; None for the host.
    schema : pa.Schema
        Columns of the input.
    query : AggregateQuery
        What the accelerator would compute.
    goes_on : bool
        Whether the host goes on from the first rows for which the accelerator has no room.

    Raises
    ------
    AcceleratorLimitError
        If the accelerator does not compute what the query needs.
    UsageError, ManifestError
        If there is no such accelerator.
    """
    if device is None:
        return HOST
    _, _, place = device.partition(":")
    if device_kind(device) != "sim" or not place:
        raise unusable_uri(device, "cannot aggregate, as only 'sim:BUNDLE' can")
    manifest = AggregateManifest.load(place)
    WindowAggregation(schema, query).lanes(manifest)  # raises if it does not suit
    return (
        f"{device}: {manifest.cores} core{'s' if manifest.cores > 1 else ''} with room for "
        f"{manifest.keys:,} keys and windows of {manifest.panes} panes; each task makes one of its "
        f"own; {manifest.hash[:12]}{'; for what it has no room, the host goes on' * goes_on}"
    )

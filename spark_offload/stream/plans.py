# SPDX-License-Identifier: Apache-2.0
"""Joins of two streams as plans: everything checked and decided, no query started."""

from dataclasses import replace
from functools import partial

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from host import Ordering, UsageError
from host.operators.asof import AsofStream
from host.query.quantities import Duration
from host.query.queries import AsofQuery, Query
from host.reference.arrivals import Side
from spark_offload.cluster.machines import cluster_of, ship_bundle, ship_packages
from spark_offload.partitioning.columns import (
    arrow_schema,
    equal_columns,
    joined_schema,
    output_schema,
    require_columns,
    require_equal_bytes,
    task_columns,
)
from spark_offload.partitioning.tagged import LEFT, RIGHT
from spark_offload.plan.accelerator import (
    SOFTWARE,
    Choice,
    serving,
    software_serves,
)
from spark_offload.plan.asof import key_terms
from spark_offload.plan.options import Options
from spark_offload.plan.plan import Plan
from spark_offload.stream.checks import (
    arrival_text,
    check_streams,
    delay,
    late_text,
    require_streams,
    require_watermarks,
    watermark_text,
    width,
    window_text,
    without_watermarks,
)
from spark_offload.stream.graph import Grouping, StreamInput
from spark_offload.stream.task import (
    AsofStreamTask,
    StreamTask,
    question_of,
)
from spark_offload.task.task import Answer
from spark_offload.verification.own_join import own_join
from spark_offload.verification.own_operators import own_asof

__all__ = [
    "make_asof_stream_plan",
    "make_stream_plan",
]

# The streaming join as a plan: everything checked and decided, no query started.

_JOIN = "spark_offload.stream.processor:GroupJoin"
"""What joins a group of rows."""

SLICES = 8
"""Slices of the span of time for which rows are kept."""


def _over_windows(
    left: DataFrame,
    right: DataFrame,
    *,
    query: Query,
    schema: StructType,
    grouping: Grouping,
    choice: Choice,
    title: str,
    goes_on: bool,
) -> Answer:
    """Join group by group on devices; ``goes_on``: software joins what a device cannot hold."""
    cluster = cluster_of(left.sparkSession, streaming=True)
    ship_packages(cluster)
    delays = delay(left.schema, query.time[0]), delay(right.schema, query.time[1])
    task = StreamTask(
        query=replace(query, ordering=Ordering.none()),
        devices=choice.source.shipped(cluster),
        width=width(query),
        slice_length=max(1000, (width(query) + 1000 * max(delays)) // SLICES),
        software=ship_bundle(cluster, SOFTWARE) if goes_on else None,
        **task_columns(left, right, schema),
        **grouping.known,
    )
    equal = equal_columns(query)
    compared = [(term.left, term.right) for term in query.terms]

    def rows(frame: DataFrame, side: int) -> StreamInput:
        """Return the rows of one side that can be in the answer."""
        # A null in a compared column matches nothing.
        matched_only = query.how.wants_matched or not query.how.tracks(Side(side))
        required = [pair[side] for pair in compared] if matched_only else []
        return StreamInput(frame, [pair[side] for pair in equal], required)

    inputs = rows(left, LEFT), rows(right, RIGHT)
    return grouping.answer(inputs, task, _JOIN, title, schema, cluster)


def make_stream_plan(
    left: DataFrame,
    right: DataFrame,
    query: Query,
    options: Options,
) -> Plan:
    """Check everything that can be checked without reading a row, and decide where to run.

    The session stays as it is.

    Raises
    ------
    UsageError
        If an input, a column, a type, a watermark, the window, the state store or the device will
        not do.
    """
    check_streams(left, right, query, options)
    require_columns(left, right, query)
    equal = equal_columns(query)
    require_equal_bytes(left.schema, right.schema, equal)
    schema = without_watermarks(joined_schema(left.schema, right.schema, query))
    schemas = arrow_schema(left.schema, "left"), arrow_schema(right.schema, "right")
    choice, terms, causes = serving(query, options, left.sparkSession, schemas)
    goes_on = not options.strict and choice.has_limits and software_serves(query, choice, *schemas)
    question = question_of(query, left.schema.simpleString(), right.schema.simpleString())
    keys = [own for own, _ in equal]
    grouping = Grouping.of((left, right), question, keys, options.partitions)
    explanation = grouping.explained(
        device=choice.uri,
        chosen=choice.reason,
        accelerator=choice.description,
        join=f"{query.how}: {query.how.answer}",
        terms=terms,
        window=window_text(query, goes_on=goes_on),
        arrival=arrival_text(query),
        columns=tuple(schema.names),
        name=choice.name(query),
        watermark=watermark_text(query, left, right),
        causes=causes,
    )
    return Plan(
        query=query,
        inputs=(left, right),
        schema=schema,
        explanation=explanation,
        strategy=partial(
            _over_windows,
            query=query,
            schema=schema,
            grouping=grouping,
            choice=choice,
            title=explanation.name,
            goes_on=goes_on,
        ),
        own=partial(own_join, query=query),
        manifest=choice.manifest,
    )


# The as-of join of two streams as a plan.

_ASOF_JOIN = "spark_offload.stream.processor:AsofGroups"
"""What joins a group of rows."""


def _closest(
    left: DataFrame,
    right: DataFrame,
    *,
    query: AsofQuery,
    schema: StructType,
    grouping: Grouping,
    title: str,
) -> Answer:
    """Join group by group with the closest rows, without a device."""
    cluster = cluster_of(left.sparkSession, streaming=True)
    ship_packages(cluster)
    tolerance = _microseconds(query)
    task = AsofStreamTask(
        query=query,
        ahead=(tolerance or 0) if query.direction.looks_ahead else 0,
        tolerance=tolerance,
        **task_columns(left, right, schema),
        **grouping.known,
    )
    lefts, rights = ([pair[side] for pair in query.on] for side in (0, 1))
    # A left row with a null key comes with no right row.
    inputs = StreamInput(left, lefts, ()), StreamInput(right, rights, rights)
    return grouping.answer(inputs, task, _ASOF_JOIN, title, schema, cluster)


def make_asof_stream_plan(
    left: DataFrame, right: DataFrame, query: AsofQuery, options: Options
) -> Plan:
    """Check everything that can be checked without reading a row.

    Raises
    ------
    UsageError
        If an input, a column, a type, a watermark, the tolerance or the state store will not do.
    """
    require_streams(left, right)
    if query.sorted:
        raise UsageError(
            "sorted=True cannot be kept by streams, whose rows come in the order in which their "
            "sources are read; leave it out."
        )
    if query.within is None and query.direction.looks_ahead:
        raise UsageError(
            f"An as-of join of streams with direction={query.direction.value!r} needs "
            f"within=…: without it, a left row could wait for ever for a later right row."
        )
    require_columns(left, right, query.pairs)
    require_equal_bytes(left.schema, right.schema, query.on)
    require_watermarks(left, right, query.time)
    schema = without_watermarks(output_schema(left.schema, right.schema, query.suffix, query.how))
    # Raises if the columns or the tolerance do not suit.
    AsofStream(arrow_schema(left.schema, "left"), arrow_schema(right.schema, "right"), query)
    columns = left.schema.simpleString(), right.schema.simpleString()
    question = question_of(query.pairs, *columns) | {"how": str(query)}
    keys = [own for own, _ in query.on]
    grouping = Grouping.of((left, right), question, keys, options.partitions)
    explanation = grouping.explained(
        device="none: the software engine",
        chosen="no accelerator has a walk that ends with the closest row",
        accelerator="none",
        join=str(query),
        terms=key_terms(query),
        window=(
            "no limit to the distance in time; the newest right row of each key is kept for ever"
            if query.within is None
            else f"at most {query.within} away in time"
        ),
        arrival=(
            f"by left {query.time[0]!r} and right {query.time[1]!r}; a left row comes when the "
            f"watermark has passed every right row that could be closer"
        ),
        columns=tuple(schema.names),
        name=f"splitjoin as-of: {query}",
        watermark=late_text(query.time, left, right),
    )
    return Plan(
        query=query,
        inputs=(left, right),
        schema=schema,
        explanation=explanation,
        strategy=partial(
            _closest, query=query, schema=schema, grouping=grouping, title=explanation.name
        ),
        own=partial(own_asof, query=query),
    )


def _microseconds(query: AsofQuery) -> int | None:
    """Return the tolerance in whole microseconds."""
    if isinstance(query.within, Duration):
        return query.within.nanoseconds // 1000
    return None if query.within is None else 0  # the only number that timestamps take

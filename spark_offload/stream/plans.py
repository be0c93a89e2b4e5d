# SPDX-License-Identifier: Apache-2.0
"""Joins of two streams as plans: everything checked and decided, no query started."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from host import Ordering, UsageError
from host.operators.asof import AsofStream
from host.query.quantities import Duration
from host.query.queries import AsofQuery, Query
from host.reference.arrivals import Side
from spark_offload.cluster.devices import Devices
from spark_offload.cluster.machines import cluster_of, ship_bundle, ship_packages
from spark_offload.explanation.explanations import Explanation
from spark_offload.partitioning.columns import (
    arrow_schema,
    find_column,
    output_schema,
    require_columns,
    require_equal_bytes,
)
from spark_offload.partitioning.placement import require_partitions
from spark_offload.partitioning.tagged import LEFT, RIGHT
from spark_offload.plan.accelerator import (
    SOFTWARE,
    Choice,
    check_query,
    choose_device,
    software_serves,
)
from spark_offload.plan.asof import key_terms
from spark_offload.plan.plan import Answer, Plan
from spark_offload.stream.checks import (
    arrival_text,
    check_streams,
    delay,
    late_text,
    require_streams,
    require_watermarks,
    state_text,
    watermark_text,
    width,
    window_text,
    without_watermarks,
)
from spark_offload.stream.graph import StreamInput, StreamNames, key_types, stream_frame
from spark_offload.stream.groups import group_keys
from spark_offload.stream.metrics import measured_by, metrics_name
from spark_offload.stream.task import (
    AsofStreamTask,
    StreamTask,
    question_of,
    question_of_groups,
    require_state_store,
    state_partitions,
)
from spark_offload.verification.own_join import own_join
from spark_offload.verification.own_operators import own_asof

__all__ = [
    "Setting",
    "grouping_of",
    "make_asof_stream_plan",
    "make_stream_plan",
]

# The streaming join as a plan: everything checked and decided, no query started.

_JOIN = "spark_offload.stream.processor:GroupJoin"
"""What joins a group of rows."""

SLICES = 8
"""Slices of the span of time for which rows are kept."""


@dataclass(frozen=True)
class Setting:
    """What the plans of all joins of streams settle in the same way, before any is made.

    Parameters
    ----------
    groups : tuple of int
        Keys of the groups of rows; empty: one for each partition of the state.
    number : int
        Groups there are.
    grouping : str
        What rows are grouped by, and why into so many.
    state : str
        Where rows are kept.
    question : mapping of str to str
        What must stay the same for as long as a checkpoint is used.
    name : str
        Under which the progress of a query has the numbers of the join.
    """

    groups: tuple[int, ...]
    number: int
    grouping: str
    state: str
    question: Mapping[str, str]
    name: str

    @classmethod
    def of(
        cls,
        left: DataFrame,
        right: DataFrame,
        query: Query,
        partitions: int | None,
        how: str = "",
    ) -> "Setting":
        """Settle it for a join; raises if the state store or the number of groups will not do.

        Parameters
        ----------
        how : str
            What is asked beyond the pairs of the query, which must stay the same as well.
        """
        require_partitions(partitions)
        session = left.sparkSession
        groups, grouping = grouping_of(query, partitions)
        store = require_state_store(session)
        number = len(groups) or state_partitions(session)
        question = question_of(query, left.schema.simpleString(), right.schema.simpleString())
        if how:
            question |= {"how": how}
        name = metrics_name(question, left, right)
        if groups:
            question |= question_of_groups(len(groups))
        state = f"{store}; {state_text(session, number)}"
        return cls(groups, number, grouping, state, question, name)

    def explained(self, **words: Any) -> Explanation:
        """Return the explanation of a join, from what only this join has to say."""
        return Explanation(
            partitions=self.number,
            partitioning=self.grouping,
            state=self.state,
            ordering="in no order within a micro-batch; no column carries a watermark",
            metrics=f"observedMetrics[{self.name!r}] of a query's progress; stream_metrics(query)",
            **words,
        )

    def shared(self, left: DataFrame, right: DataFrame, schema: StructType) -> dict[str, Any]:
        """Return what the tasks of any join of streams need to know."""
        return {
            "left": arrow_schema(left.schema, "left"),
            "right": arrow_schema(right.schema, "right"),
            "output": arrow_schema(schema, "output"),
            "groups": self.groups,
            "question": self.question,
            "partitions": state_partitions(left.sparkSession),
        }


def _over_windows(
    left: DataFrame,
    right: DataFrame,
    *,
    query: Query,
    schema: StructType,
    setting: Setting,
    choice: Choice,
    title: str,
    goes_on: bool,
) -> Answer:
    """Join group by group on devices; ``goes_on``: software joins what a device cannot hold."""
    cluster = cluster_of(left.sparkSession, streaming=True)
    ship_packages(cluster)
    delays = delay(left.schema, query.time[0]), delay(right.schema, query.time[1])
    task = StreamTask(
        # Devices of the pool are what may come and go, not cores of a device.
        query=replace(query, ordering=Ordering.none(), elastic=None),
        devices=choice.source.shipped(cluster),
        width=width(query),
        slice_length=max(1000, (width(query) + 1000 * max(delays)) // SLICES),
        software=ship_bundle(cluster, SOFTWARE) if goes_on else None,
        **setting.shared(left, right, schema),
    )
    equal = [(term.left, term.right) for term in query.terms if term.is_equality]
    compared = [(term.left, term.right) for term in query.terms]

    def rows(frame: DataFrame, side: int) -> StreamInput:
        """Return the rows of one side that can be in the answer."""
        # A null in a compared column matches nothing.
        matched_only = query.how.wants_matched or not query.how.tracks(Side(side))
        required = [pair[side] for pair in compared] if matched_only else []
        return StreamInput(frame, [pair[side] for pair in equal], required)

    frame = stream_frame(
        (rows(left, LEFT), rows(right, RIGHT)),
        key_types(left.schema, right.schema, equal),
        task,
        StreamNames(_JOIN, setting.name, title),
        schema,
        cluster.luggage,
    )
    return frame, measured_by("stream_metrics")


def make_stream_plan(
    left: DataFrame,
    right: DataFrame,
    query: Query,
    *,
    device: Devices = None,
    partitions: int | None = None,
    trace: bool = False,
    progress: str | None = None,
    build: bool = False,
    strict: bool = False,
) -> Plan:
    """Check everything that can be checked without reading a row, and decide where to run.

    The session stays as it is.

    Raises
    ------
    UsageError
        If an input, a column, a type, a watermark, the window, the state store or the device will
        not do.
    """
    check_streams(left, right, query, trace=trace, progress=progress)
    require_columns(left, right, query)
    equal = [(term.left, term.right) for term in query.terms if term.is_equality]
    require_equal_bytes(left.schema, right.schema, equal)
    schema = without_watermarks(output_schema(left.schema, right.schema, query.suffix, query.how))
    schemas = arrow_schema(left.schema, "left"), arrow_schema(right.schema, "right")
    needs = "a trace of cycles" if trace else None
    choice = choose_device(device, query, left.sparkSession, needs=needs, build=build)
    terms = check_query(query, choice, *schemas)
    goes_on = not strict and choice.has_limits and software_serves(query, choice, *schemas)
    setting = Setting.of(left, right, query, partitions)
    if query.elastic is not None:
        choice = replace(choice, source=choice.source.with_elastic(query.elastic, setting.name))
    explanation = setting.explained(
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
            setting=setting,
            choice=choice,
            title=explanation.name,
            goes_on=goes_on,
        ),
        own=partial(own_join, query=query),
        manifest=choice.manifest,
    )


def grouping_of(query: Query, wanted: int | None) -> tuple[tuple[int, ...], str]:
    """Return the keys of the groups, none if the state says how many, and the reason."""
    equalities = [term for term in query.terms if term.is_equality]
    if not equalities:
        return group_keys(1), "no column must be equal, so any two rows may meet"
    by = f"by a hash of the equal columns {', '.join(term.left for term in equalities)}"
    if wanted is not None:
        return group_keys(wanted), f"{by}; the number as asked for"
    return (), f"{by}; one for each partition of the state"


# The as-of join of two streams as a plan.

_ASOF_JOIN = "spark_offload.stream.asof_processor:AsofGroups"
"""What joins a group of rows."""


def _closest(
    left: DataFrame,
    right: DataFrame,
    *,
    query: AsofQuery,
    schema: StructType,
    setting: Setting,
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
        **setting.shared(left, right, schema),
    )
    lefts, rights = ([pair[side] for pair in query.on] for side in (0, 1))
    frame = stream_frame(
        # A left row with a null key comes with no right row.
        (StreamInput(left, lefts, ()), StreamInput(right, rights, rights)),
        key_types(left.schema, right.schema, query.on),
        task,
        StreamNames(_ASOF_JOIN, setting.name, title),
        schema,
        cluster.luggage,
    )
    return frame, measured_by("stream_metrics")


def make_asof_stream_plan(
    left: DataFrame, right: DataFrame, query: AsofQuery, *, partitions: int | None = None
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
    for own, other in query.on:
        find_column(left.schema, own, "left")
        find_column(right.schema, other, "right")
    require_equal_bytes(left.schema, right.schema, query.on)
    require_watermarks(left, right, query.time)
    schema = without_watermarks(output_schema(left.schema, right.schema, query.suffix, query.how))
    # Raises if the columns or the tolerance do not suit.
    AsofStream(arrow_schema(left.schema, "left"), arrow_schema(right.schema, "right"), query)
    setting = Setting.of(left, right, query.pairs, partitions, how=str(query))
    explanation = setting.explained(
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
            _closest, query=query, schema=schema, setting=setting, title=explanation.name
        ),
        own=partial(own_asof, query=query),
    )


def _microseconds(query: AsofQuery) -> int | None:
    """Return the tolerance in whole microseconds."""
    if isinstance(query.within, Duration):
        return query.within.nanoseconds // 1000
    return None if query.within is None else 0  # the only number that timestamps take

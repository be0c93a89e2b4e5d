# SPDX-License-Identifier: Apache-2.0
"""Joins of two streams as plans: everything checked and decided, no query started."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame

from host import Ordering, UsageError
from host.operators.asof import AsofStream
from host.query.quantities import Duration
from host.query.queries import AsofQuery, JoinQuery, Term
from host.reference.arrivals import Side
from spark_offload.cluster.devices import Devices, DeviceSource
from spark_offload.cluster.machines import cluster_of, ship_bundle, ship_packages
from spark_offload.explanation.explanations import Explanation
from spark_offload.measures import JoinMetrics
from spark_offload.partitioning.columns import (
    arrow_schema,
    find_column,
    output_schema,
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
from spark_offload.plan.join import WindowPlan
from spark_offload.plan.plan import JoinPlan
from spark_offload.stream.checks import (
    StreamExplanation,
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
from spark_offload.stream.metrics import metrics_name
from spark_offload.stream.task import (
    AsofStreamTask,
    StreamTask,
    question_of,
    question_of_groups,
    require_state_store,
    state_partitions,
)
from spark_offload.verification.own_operators import own_asof

__all__ = [
    "AsofStreamPlan",
    "GroupedPlan",
    "StreamJoinPlan",
    "grouping_of",
    "make_asof_stream_plan",
    "make_stream_plan",
]

# What the plans of all joins of streams have in common.


@dataclass(frozen=True, kw_only=True)
class GroupedPlan(JoinPlan):
    """A join of streams that is ready to run, group by group.

    Parameters
    ----------
    groups : tuple of int
        Keys of the groups of rows; empty: one for each partition of the state.
    name : str
        Under which the progress of a query has the numbers of this join.
    question : mapping of str to str
        What must stay the same for as long as a checkpoint is used.
    """

    groups: tuple[int, ...]
    name: str
    question: Mapping[str, str]

    def estimated(self, *, count: bool = False) -> Explanation:
        """Return the explanation; a stream has no size before it runs."""
        return self.explanation

    def metrics(self) -> JoinMetrics:
        """Raise: a streaming join is measured by the query that runs it, not by its frame."""
        raise UsageError(
            "A streaming frame has no metrics before a query runs it; read "
            "spark_offload.stream_metrics(query), query being what start() returned."
        )


# The streaming join as a plan: everything checked and decided, no query started.

_JOIN = "spark_offload.stream.processor:GroupJoin"
"""What joins a group of rows."""

SLICES = 8
"""Slices of the span of time for which rows are kept."""


@dataclass(frozen=True, kw_only=True)
class StreamJoinPlan(GroupedPlan, WindowPlan):
    """A streaming join that is ready to run.

    Parameters
    ----------
    choice : Choice
        The devices.
    goes_on : bool
        Whether software joins rows whose window outgrows the device.
    """

    query: JoinQuery
    choice: Choice
    goes_on: bool = False

    def _run(self) -> tuple[DataFrame, Callable[[], JoinMetrics]]:
        cluster = cluster_of(self.left.sparkSession, streaming=True)
        ship_packages(cluster)
        software = ship_bundle(cluster, SOFTWARE) if self.goes_on else None
        task = self._task(self.choice.source.shipped(cluster), software)
        frame = stream_frame(
            (self._input(self.left, LEFT), self._input(self.right, RIGHT)),
            key_types(
                self.left.schema,
                self.right.schema,
                [(term.left, term.right) for term in _equalities(self.query)],
            ),
            task,
            StreamNames(_JOIN, self.name, self.explanation.name),
            self.schema,
            cluster.luggage,
        )
        return frame, self.metrics

    def _input(self, frame: DataFrame, side: int) -> StreamInput:
        """Return the rows of one side that can be in the answer."""

        def columns(terms: Sequence[Term]) -> list[str]:
            return [term.left if side == LEFT else term.right for term in terms]

        how = self.query.how
        # A null in a compared column matches nothing.
        matched_only = how.wants_matched or not how.tracks(Side(side))
        required = columns(self.query.terms) if matched_only else []
        return StreamInput(frame, columns(_equalities(self.query)), required)

    def _task(self, devices: DeviceSource, software: str | None) -> StreamTask:
        """Return what the tasks need to know."""
        query, left, right = self.query, self.left.schema, self.right.schema
        kept = width(query) + 1000 * max(delay(left, query.order[0]), delay(right, query.order[1]))
        return StreamTask(
            # Devices of the pool are what may come and go, not cores of a device.
            query=replace(query, ordering=Ordering.none(), elastic=None),
            devices=devices,
            left=arrow_schema(left, "left"),
            right=arrow_schema(right, "right"),
            output=arrow_schema(self.schema, "output"),
            groups=self.groups,
            width=width(query),
            slice_length=max(1000, kept // SLICES),
            question=self.question,
            partitions=state_partitions(self.left.sparkSession),
            software=software,
        )


def make_stream_plan(
    left: DataFrame,
    right: DataFrame,
    query: JoinQuery,
    *,
    device: Devices = None,
    partitions: int | None = None,
    trace: bool = False,
    progress: str | None = None,
    build: bool = False,
    strict: bool = False,
) -> StreamJoinPlan:
    """Check everything that can be checked without reading a row, and decide where to run.

    The session stays as it is.

    Raises
    ------
    UsageError
        If an input, a column, a type, a watermark, the window, the state store or the device will
        not do.
    """
    check_streams(left, right, query, trace=trace, progress=progress)
    for term in query.terms:
        find_column(left.schema, term.left, "left")
        find_column(right.schema, term.right, "right")
    equal = [(term.left, term.right) for term in query.terms if term.is_equality]
    require_equal_bytes(left.schema, right.schema, equal)
    schema = without_watermarks(output_schema(left.schema, right.schema, query.suffix, query.how))
    schemas = arrow_schema(left.schema, "left"), arrow_schema(right.schema, "right")
    require_partitions(partitions)
    session = left.sparkSession
    groups, grouping = grouping_of(query, partitions)
    choice = choose_device(device, query, session, build=build)
    terms = check_query(query, choice, *schemas)
    goes_on = not strict and choice.has_limits and software_serves(query, choice, *schemas)
    store = require_state_store(session)
    number = len(groups) or state_partitions(session)
    question = question_of(query, left.schema.simpleString(), right.schema.simpleString())
    name = metrics_name(question, left, right)
    if query.elastic is not None:
        choice = replace(choice, source=choice.source.with_elastic(query.elastic, name))
    if groups:
        question |= question_of_groups(len(groups))
    explanation = StreamExplanation(
        device=choice.uri,
        chosen=choice.reason,
        accelerator=choice.description,
        partitions=number,
        partitioning=grouping,
        join=f"{query.how}: {query.how.answer}",
        terms=terms,
        window=window_text(query, goes_on=goes_on),
        arrival=arrival_text(query),
        ordering="in no order within a micro-batch; no column carries a watermark",
        columns=tuple(schema.names),
        name=choice.name(query),
        state=f"{store}; {state_text(session, number)}",
        watermark=watermark_text(query, left, right),
        metrics=f"observedMetrics[{name!r}] of a query's progress; stream_metrics(query)",
    )
    return StreamJoinPlan(
        query=query,
        schema=schema,
        explanation=explanation,
        left=left,
        right=right,
        choice=choice,
        groups=groups,
        name=name,
        question=question,
        goes_on=goes_on,
    )


def _equalities(query: JoinQuery) -> Sequence[Term]:
    return [term for term in query.terms if term.is_equality]


def grouping_of(query: JoinQuery, wanted: int | None) -> tuple[tuple[int, ...], str]:
    """Return the keys of the groups, none if the state says how many, and the reason."""
    equalities = _equalities(query)
    if not equalities:
        return group_keys(1), "no column must be equal, so any two rows may meet"
    by = f"by a hash of the equal columns {', '.join(term.left for term in equalities)}"
    if wanted is not None:
        return group_keys(wanted), f"{by}; the number as asked for"
    return (), f"{by}; one for each partition of the state"


# The as-of join of two streams as a plan.

_ASOF_JOIN = "spark_offload.stream.asof_processor:AsofGroups"
"""What joins a group of rows."""


@dataclass(frozen=True, kw_only=True)
class AsofStreamPlan(GroupedPlan):
    """An as-of join of streams that is ready to run."""

    query: AsofQuery

    def own_answer(self, left: DataFrame, right: DataFrame) -> DataFrame:
        return own_asof(left, right, self.query)

    def _run(self) -> tuple[DataFrame, Callable[[], JoinMetrics]]:
        cluster = cluster_of(self.left.sparkSession, streaming=True)
        ship_packages(cluster)
        tolerance = _microseconds(self.query)
        task = AsofStreamTask(
            query=self.query,
            left=arrow_schema(self.left.schema, "left"),
            right=arrow_schema(self.right.schema, "right"),
            output=arrow_schema(self.schema, "output"),
            groups=self.groups,
            question=self.question,
            partitions=state_partitions(self.left.sparkSession),
            ahead=(tolerance or 0) if self.query.direction.looks_ahead else 0,
            tolerance=tolerance,
        )
        lefts, rights = ([pair[side] for pair in self.query.by] for side in (0, 1))
        frame = stream_frame(
            # A left row with a null key comes with no right row.
            (StreamInput(self.left, lefts, ()), StreamInput(self.right, rights, rights)),
            key_types(self.left.schema, self.right.schema, self.query.by),
            task,
            StreamNames(_ASOF_JOIN, self.name, self.explanation.name),
            self.schema,
            cluster.luggage,
        )
        return frame, self.metrics


def make_asof_stream_plan(
    left: DataFrame, right: DataFrame, query: AsofQuery, *, partitions: int | None = None
) -> AsofStreamPlan:
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
    if query.tolerance is None and query.direction.looks_ahead:
        raise UsageError(
            f"An as-of join of streams with direction={query.direction.value!r} needs "
            f"tolerance=…: without one, a left row could wait for ever for a later right row."
        )
    for own, other in query.by:
        find_column(left.schema, own, "left")
        find_column(right.schema, other, "right")
    require_equal_bytes(left.schema, right.schema, query.by)
    require_watermarks(left, right, query.on)
    schema = without_watermarks(output_schema(left.schema, right.schema, query.suffix, query.how))
    # Raises if the columns or the tolerance do not suit.
    AsofStream(arrow_schema(left.schema, "left"), arrow_schema(right.schema, "right"), query)
    require_partitions(partitions)
    session = left.sparkSession
    groups, grouping = grouping_of(query.pairs, partitions)
    store = require_state_store(session)
    number = len(groups) or state_partitions(session)
    question = question_of(query.pairs, left.schema.simpleString(), right.schema.simpleString())
    question |= {"how": str(query)}
    name = metrics_name(question, left, right)
    if groups:
        question |= question_of_groups(len(groups))
    explanation = StreamExplanation(
        device="none: the software engine",
        chosen="no accelerator has a walk that ends with the closest row",
        accelerator="none",
        partitions=number,
        partitioning=grouping,
        join=str(query),
        terms=key_terms(query),
        window=(
            "no limit to the distance in time; the newest right row of each key is kept for ever"
            if query.tolerance is None
            else f"at most {query.tolerance} away in time"
        ),
        arrival=(
            f"by left {query.on[0]!r} and right {query.on[1]!r}; a left row comes when the "
            f"watermark has passed every right row that could be closer"
        ),
        ordering="in no order within a micro-batch; no column carries a watermark",
        columns=tuple(schema.names),
        name=f"splitjoin as-of: {query}",
        state=f"{store}; {state_text(session, number)}",
        watermark=late_text(query.on, left, right),
        metrics=f"observedMetrics[{name!r}] of a query's progress; stream_metrics(query)",
    )
    return AsofStreamPlan(
        query=query,
        schema=schema,
        explanation=explanation,
        left=left,
        right=right,
        groups=groups,
        name=name,
        question=question,
    )


def _microseconds(query: AsofQuery) -> int | None:
    """Return the tolerance in whole microseconds."""
    if isinstance(query.tolerance, Duration):
        return query.tolerance.nanoseconds // 1000
    return None if query.tolerance is None else 0  # the only number that timestamps take

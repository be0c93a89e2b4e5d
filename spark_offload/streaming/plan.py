# SPDX-License-Identifier: Apache-2.0
"""The streaming join as a plan: everything checked and decided, no query started."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame

from host import Ordering
from host.query.queries import JoinQuery, Term
from host.reference.arrivals import Side
from spark_offload.cluster import cluster_of
from spark_offload.cluster.shipping import ship_bundle, ship_packages
from spark_offload.devices.sources import Devices, DeviceSource
from spark_offload.layout.columns import arrow_schema, find_column, output_schema
from spark_offload.layout.key_types import require_equal_bytes
from spark_offload.layout.tagged import LEFT, RIGHT
from spark_offload.measures.metrics import JoinMetrics
from spark_offload.planning.accelerator import (
    SOFTWARE,
    Choice,
    check_query,
    choose_device,
    software_serves,
)
from spark_offload.planning.placement import require_partitions
from spark_offload.planning.window_plan import WindowPlan
from spark_offload.streaming.checks import check_streams, delay, width, without_watermarks
from spark_offload.streaming.explanation import (
    StreamExplanation,
    arrival_text,
    state_text,
    watermark_text,
    window_text,
)
from spark_offload.streaming.graph import StreamInput, StreamNames, key_types, stream_frame
from spark_offload.streaming.grouped_plan import GroupedPlan
from spark_offload.streaming.groups import group_keys
from spark_offload.streaming.naming import metrics_name
from spark_offload.streaming.question import question_of, question_of_groups
from spark_offload.streaming.store import (
    require_state_store,
    state_partitions,
)
from spark_offload.streaming.task import StreamTask

__all__ = ["StreamJoinPlan", "grouping_of", "make_stream_plan"]

_JOIN = "spark_offload.streaming.processor:GroupJoin"
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

# SPDX-License-Identifier: Apache-2.0
"""The as-of join of two streams as a plan."""

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import DataFrame

from host import UsageError
from host.operators.asof import AsofStream
from host.query.quantities import Duration
from host.query.queries import AsofQuery
from spark_offload.cluster import cluster_of
from spark_offload.cluster.shipping import ship_packages
from spark_offload.layout.columns import arrow_schema, find_column, output_schema
from spark_offload.layout.key_types import require_equal_bytes
from spark_offload.measures.metrics import JoinMetrics
from spark_offload.own_join.asof import own_asof
from spark_offload.planning.asof_plan import key_terms
from spark_offload.planning.placement import require_partitions
from spark_offload.streaming.checks import (
    require_streams,
    require_watermarks,
    without_watermarks,
)
from spark_offload.streaming.explanation import StreamExplanation, late_text, state_text
from spark_offload.streaming.graph import StreamInput, StreamNames, key_types, stream_frame
from spark_offload.streaming.grouped_plan import GroupedPlan
from spark_offload.streaming.naming import metrics_name
from spark_offload.streaming.plan import grouping_of
from spark_offload.streaming.question import question_of, question_of_groups
from spark_offload.streaming.store import require_state_store, state_partitions
from spark_offload.streaming.task import AsofStreamTask

__all__ = ["AsofStreamPlan", "make_asof_stream_plan"]

_JOIN = "spark_offload.streaming.asof_processor:AsofGroups"
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
            StreamNames(_JOIN, self.name, self.explanation.name),
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

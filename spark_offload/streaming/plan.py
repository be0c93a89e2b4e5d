# SPDX-License-Identifier: Apache-2.0
"""The streaming join as a plan: everything checked and decided, no query started."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import count
import pickle

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from host import Ordering, UsageError
from host.join_type import JoinType
from host.query import JoinQuery, Term
from host.side import Side
from spark_offload.accelerator import Choice, check_query, choose_device
from spark_offload.cluster import cluster_of, is_connect
from spark_offload.columns import arrow_schema, find_column, output_schema
from spark_offload.devices import Devices, DeviceSource
from spark_offload.explanation import Explanation
from spark_offload.key_types import common_type, partition_key
from spark_offload.luggage import Luggage, carrying
from spark_offload.metrics import JoinMetrics
from spark_offload.placement import require_partitions
from spark_offload.plan import JoinPlan
from spark_offload.shipping import ship_packages
from spark_offload.streaming.checks import check_streams, delay, width, without_watermarks
from spark_offload.streaming.entry import JoinProcessor
from spark_offload.streaming.explanation import StreamExplanation
from spark_offload.streaming.groups import group_keys
from spark_offload.streaming.metrics import METRICS, observed_columns
from spark_offload.streaming.packing import INPUT_TYPES, pack_function, unpack_function
from spark_offload.streaming.processor import OUTPUT_TYPES
from spark_offload.streaming.question import question_of
from spark_offload.streaming.store import (
    SHUFFLE_PARTITIONS,
    prepare_state_store,
    state_partitions,
)
from spark_offload.streaming.task import StreamTask
from spark_offload.tagged import LEFT, RIGHT

__all__ = ["StreamJoinPlan", "make_stream_plan"]

SLICES = 8
"""Slices of the span of time for which rows are kept."""

_UNCHECKED = (
    "; Spark Connect shows no plans, so it was not checked that no operator before the join holds "
    "rows back, whose rows would all be late"
)

_numbers = count(1)


@dataclass(frozen=True, kw_only=True)
class StreamJoinPlan(JoinPlan):
    """A streaming join that is ready to run.

    Parameters
    ----------
    choice : Choice
        The devices.
    groups : tuple of int
        Keys of the groups of rows.
    name : str
        Under which the progress of a query has the numbers of this join.
    """

    choice: Choice
    groups: tuple[int, ...]
    name: str = METRICS

    def estimated(self, *, count: bool = False) -> Explanation:
        """Return the explanation; a stream has no size before it runs."""
        return self.explanation

    def metrics(self) -> JoinMetrics:
        """Raise: a streaming join is measured by the query that runs it, not by its frame."""
        raise UsageError(
            "A streaming frame has no metrics before a query runs it; read "
            "spark_offload.stream_metrics(query), query being what start() returned."
        )

    def _run(self) -> tuple[DataFrame, Callable[[], JoinMetrics]]:
        cluster = cluster_of(self.left.sparkSession, streaming=True)
        ship_packages(cluster)
        task = self._task(self.choice.source.shipped(cluster))
        luggage = cluster.luggage
        packed = self._packed(task, self.left, LEFT, luggage).unionAll(
            self._packed(task, self.right, RIGHT, luggage)
        )
        joined = (
            packed.groupBy("group")
            .transformWithStateInPandas(
                JoinProcessor(pickle.dumps(task), luggage), OUTPUT_TYPES, "Append", "EventTime"
            )
            .observe(self.name, *observed_columns())
        )
        unpack = unpack_function(task, self.explanation.name)
        return joined.mapInArrow(carrying(luggage, unpack), self.schema), self.metrics

    def _task(self, devices: DeviceSource) -> StreamTask:
        """Return what the tasks need to know."""
        query, left, right = self.query, self.left.schema, self.right.schema
        kept = width(query) + 1000 * max(delay(left, query.order[0]), delay(right, query.order[1]))
        return StreamTask(
            query=replace(query, ordering=Ordering.none()),
            devices=devices,
            left=arrow_schema(left, "left"),
            right=arrow_schema(right, "right"),
            output=arrow_schema(self.schema, "output"),
            groups=self.groups,
            width=width(query),
            slice_length=max(1000, kept // SLICES),
            question=question_of(
                query, left.simpleString(), right.simpleString(), len(self.groups)
            ),
        )

    def _packed(
        self, task: StreamTask, frame: DataFrame, side: int, luggage: Luggage | None
    ) -> DataFrame:
        """Return the rows of one side that can be in the answer, packed by group."""
        # Positions as names: no name of the user's can clash or need quoting.
        names = {name: f"c{index}" for index, name in enumerate(frame.columns)}
        columns = [names[term.left if side == LEFT else term.right] for term in self.query.terms]
        rows = frame.toDF(*names.values())
        how = self.query.how
        if how.wants_matched or not how.tracks(Side(side)):
            # A null in a compared column matches nothing; a null time stays, to be complained of.
            order = F.col(names[self.query.order[side]])
            for column in columns:
                rows = rows.where(F.col(column).isNotNull() | order.isNull())
        rows = rows.select(self._group(names, side).alias("group"), *names.values())
        return rows.mapInArrow(carrying(luggage, pack_function(task, side)), INPUT_TYPES)

    def _group(self, names: dict[str, str], side: int) -> Column:
        """Return the number of a row's group: equal keys, equal groups."""
        if len(self.groups) == 1:
            return F.lit(0)
        keys = []
        for term in _equalities(self.query):
            kind = common_type(
                self.left.schema[term.left].dataType, self.right.schema[term.right].dataType
            )
            column = F.col(names[term.left if side == LEFT else term.right])
            keys.append(partition_key(column, kind))
        return F.pmod(F.hash(*keys), F.lit(len(self.groups)))


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
) -> StreamJoinPlan:
    """Check everything that can be checked without reading a row, and decide where to run.

    If the session has no state store chosen, RocksDB is chosen.

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
    schema = without_watermarks(output_schema(left.schema, right.schema, query.suffix, query.how))
    schemas = arrow_schema(left.schema, "left"), arrow_schema(right.schema, "right")
    require_partitions(partitions)
    session = left.sparkSession
    number, grouping = _grouping(query, session, partitions)
    groups = group_keys(number)
    choice = choose_device(device, query, session, build=build)
    terms = check_query(query, choice, *schemas)
    store = prepare_state_store(session)
    ordinal = next(_numbers)
    name = METRICS if ordinal == 1 else f"{METRICS}-{ordinal}"
    left_order, right_order = query.order
    explanation = StreamExplanation(
        device=choice.uri,
        chosen=choice.reason,
        accelerator=choice.description,
        partitions=number,
        partitioning=grouping,
        join=f"{query.how}: {query.how.answer}",
        terms=terms,
        window=f"pairs of rows with |left.{left_order} - right.{right_order}| <= {query.window}",
        arrival=(
            f"by left {left_order!r} and right {right_order!r}, sorted in every micro-batch; a "
            f"pair comes in the micro-batch of its row that was read last{_alone_text(query.how)}"
        ),
        ordering="in no order within a micro-batch; no column carries a watermark",
        columns=tuple(schema.names),
        name=choice.name(query),
        state=f"{store}; {_state_text(session, number)}",
        watermark=(
            f"{delay(left.schema, left_order):,} ms behind left {left_order!r}, "
            f"{delay(right.schema, right_order):,} ms behind right {right_order!r}; older rows are "
            f"late, dropped and counted; a row is forgotten when the watermark is {query.window} "
            f"past it{_UNCHECKED if is_connect(session) else ''}"
        ),
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
    )


def _alone_text(how: JoinType) -> str:
    if how is JoinType.INNER:
        return ""
    return ", a row alone when the watermark has passed its window"


def _equalities(query: JoinQuery) -> Sequence[Term]:
    return [term for term in query.terms if term.is_equality]


def _grouping(query: JoinQuery, session: SparkSession, wanted: int | None) -> tuple[int, str]:
    """Return the number of groups, and the reason for it."""
    equalities = _equalities(query)
    if not equalities:
        return 1, "no column must be equal, so any two rows may meet"
    names = ", ".join(term.left for term in equalities)
    if wanted is not None:
        return wanted, f"by a hash of the equal columns {names}; the number as asked for"
    number = cluster_of(session).cores
    return number, f"by a hash of the equal columns {names}; one for each core that Spark has"


def _state_text(session: SparkSession, groups: int) -> str:
    partitions = state_partitions(session)
    text = f"{partitions} partitions ({SHUFFLE_PARTITIONS})"
    if partitions > groups:
        text += (
            f", of which {groups} hold rows; each costs time in every micro-batch, so set "
            f"{SHUFFLE_PARTITIONS} to {groups} before the query's first start"
        )
    return text

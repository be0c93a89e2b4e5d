# SPDX-License-Identifier: Apache-2.0
"""Joins of two streams as plans: everything checked and decided, no query started."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
import pickle
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, StructType, TimestampType

from host import Ordering, UsageError
from host.operators.asof import AsofStream
from host.query.queries import AsofQuery, OnFailure, Query
from host.reference.arrivals import Side
from host.reference.types import JoinType
from spark_offload.cluster.by_value import JoinProcessor, Luggage, carrying
from spark_offload.cluster.machines import (
    Cluster,
    cluster_of,
    is_connect,
    ship_bundle,
    ship_packages,
)
from spark_offload.cluster.query_plans import delaying_operator
from spark_offload.explanation import Explanation
from spark_offload.partitioning.columns import (
    WATERMARK,
    arrow_schema,
    check_frame,
    common_type,
    equal_columns,
    find_column,
    joined_schema,
    output_schema,
    partition_key,
    quoted,
    require_columns,
    require_equal_bytes,
    task_columns,
    without_watermarks,
)
from spark_offload.partitioning.placement import require_partitions
from spark_offload.partitioning.tagged import LEFT, RIGHT, order_length, window_width
from spark_offload.plan.accelerator import SOFTWARE, Choice, serving, software_serves
from spark_offload.plan.asof import words_of
from spark_offload.plan.join import window_text
from spark_offload.plan.plan import Options, Plan
from spark_offload.stream.groups import group_keys
from spark_offload.stream.metrics import measured_by, metrics_name, observed_columns
from spark_offload.stream.packing import INPUT_TYPES, pack_function, unpack_function
from spark_offload.stream.processor import OUTPUT_TYPES
from spark_offload.stream.task import (
    SHUFFLE_PARTITIONS,
    AsofStreamTask,
    GroupedTask,
    StreamTask,
    question_of,
    question_of_groups,
    require_state_store,
    state_partitions,
)
from spark_offload.task.task import Answer
from spark_offload.verification.own_queries import own_asof, own_join

__all__ = [
    "Grouping",
    "StreamInput",
    "delay",
    "make_asof_stream_plan",
    "make_stream_plan",
    "require_streams",
    "require_watermark",
    "require_watermarks",
]

# What a query over streams asks of its inputs, said before it starts.


def check_streams(left: DataFrame, right: DataFrame, query: Query, options: Options) -> None:
    """Raise unless a streaming join of the two frames can be right.

    Raises
    ------
    UsageError
        Naming what will not do and what to do instead.
    """
    if options.partition_by is not None:
        raise UsageError("partition_by is for batch frames; a stream is grouped by its keys.")
    require_streams(left, right)
    if not query.is_timed:
        raise UsageError(
            "rows=… is a count-based window, and which rows are the last ones of a stream depends "
            "on how it is cut into micro-batches; give within=… instead."
        )
    if query.sorted:
        raise UsageError(
            "sorted cannot be kept by streams, whose rows come in the order in which their "
            "sources are read; leave it out: rows are sorted in every micro-batch."
        )
    # Left out, the ordering is `outer`, so that one cannot be told from the other.
    if query.ordering not in (Ordering.outer(), Ordering.none()):
        raise UsageError(
            f"ordering={query.ordering} has no meaning for streams, whose pairs come in no order "
            f"within a micro-batch; leave it out, or give Ordering.none()."
        )
    if query.on_failure is not OnFailure.RAISE:
        raise UsageError(
            f"on_failure={query.on_failure.value!r} is not for streams, whose micro-batches Spark "
            f"runs again after a failure; leave it out."
        )
    if query.elastic is not None:
        raise UsageError(
            "elastic is not for streams: each micro-batch is a join of its own, which begins with "
            "all cores of its device; leave it out."
        )
    if options.trace or options.progress is not None:
        raise UsageError(
            "Latencies and progress of single tuples are taken of batch frames only; leave out "
            "trace and progress, and read spark_offload.stream_metrics(query)."
        )
    require_watermarks(left, right, query.time)


def require_streams(left: DataFrame, right: DataFrame) -> None:
    """Raise unless both inputs are streaming frames whose column names differ."""
    for frame, side in ((left, "left"), (right, "right")):
        check_frame(frame, side)
    if left.isStreaming != right.isStreaming:
        stream, batch = ("left", "right") if left.isStreaming else ("right", "left")
        raise UsageError(
            f"The {stream} input is a streaming DataFrame and the {batch} one is not; read the "
            f"{batch} one with spark.readStream and withWatermark too, or join inside foreachBatch "
            f"if it never changes."
        )


def require_watermarks(left: DataFrame, right: DataFrame, order: tuple[str, str]) -> None:
    """Raise unless both order columns are event times with watermarks that rows can still meet."""
    for frame, side, column in ((left, "left", order[0]), (right, "right", order[1])):
        operator = delaying_operator(frame)
        if operator is not None:
            raise UsageError(
                f"The streaming {side} input comes out of an operator that holds rows back until "
                f"the watermark has passed them ({operator}), so they would all be late here; "
                f"write that stream to files or a topic, and join what is read from there."
            )
        require_watermark(frame.schema, side, column)


def require_watermark(schema: StructType, side: str, order: str) -> None:
    """Raise unless the column by which rows arrive is an event time with a watermark.

    Parameters
    ----------
    schema : StructType
        Columns of the input.
    side : str
        Name of the input, as an argument of the function that was called.
    order : str
        The column.
    """
    field = find_column(schema, order, side)
    if not isinstance(field.dataType, TimestampType):
        raise UsageError(
            f"Column {order!r}, by which rows of the streaming {side} input arrive, is "
            f"{field.dataType.simpleString()}, and Spark has watermarks for columns of type "
            f"timestamp only; take such a column, or cast this one."
        )
    if WATERMARK in field.metadata:
        return
    others = [other.name for other in schema.fields if WATERMARK in other.metadata]
    if others:
        raise UsageError(
            f"The watermark of the {side} input is on {others[0]!r}, but its rows arrive by "
            f"{order!r}; the watermark must be on that column: "
            f".withWatermark({quoted(order)!r}, '10 seconds'), or take {others[0]!r} instead."
        )
    raise UsageError(
        f"The streaming {side} input has no watermark, so its rows would have to be kept for ever; "
        f"say how late they can come: {side}.withWatermark({quoted(order)!r}, '10 "
        f"seconds')."
    )


def delay(schema: StructType, order: str) -> int:
    """Return by how many milliseconds the watermark stays behind."""
    return int(schema[order].metadata[WATERMARK])


# Where a streaming join runs and why.

_UNCHECKED = (
    "; Spark Connect shows no plans, so it was not checked that no operator before the join holds "
    "rows back, whose rows would all be late"
)


def arrival_text(query: Query) -> str:
    """Say in which order rows count as arriving, and when results come."""
    left, right = query.time
    alone = ", a row alone when the watermark has passed its window"
    return (
        f"by left {left!r} and right {right!r}, sorted in every micro-batch; a pair comes in the "
        f"micro-batch of its row that was read last{'' if query.how is JoinType.INNER else alone}"
    )


def watermark_text(query: Query, left: DataFrame, right: DataFrame) -> str:
    """Say which rows are late, and when rows are forgotten."""
    return (
        f"{late_text(query.time, left, right)}; a row is forgotten when the watermark is "
        f"{query.width} past it{_UNCHECKED if is_connect(left) else ''}"
    )


def late_text(order: tuple[str, str], left: DataFrame, right: DataFrame) -> str:
    """Say which rows are late."""
    left_order, right_order = order
    return (
        f"{delay(left.schema, left_order):,} ms behind left {left_order!r}, "
        f"{delay(right.schema, right_order):,} ms behind right {right_order!r}; older rows are "
        f"late, dropped and counted"
    )


def state_text(session: SparkSession, groups: int) -> str:
    """Say how many partitions the state has, and whether another number would be better."""
    partitions = state_partitions(session)
    counted = f"{partitions} partition{'s' if partitions > 1 else ''}"
    text = (
        f"{counted} ({SHUFFLE_PARTITIONS}; a query that is started again keeps those of its "
        f"checkpoint)"
    )
    if partitions > groups:
        text += (
            f", of which {groups} hold rows; each costs time in every micro-batch, so set "
            f"{SHUFFLE_PARTITIONS} to {groups} before the query's first start"
        )
    elif partitions > (cores := cluster_of(session).cores):
        text += (
            f", each of which costs time in every micro-batch; Spark has {cores} cores, so fewer, "
            f"set before the query's first start, may be faster"
        )
    return text


# The operators of a query over streams: pack rows, take them group by group, unpack results.


@dataclass(frozen=True)
class StreamInput:
    """One input of a streaming join.

    Parameters
    ----------
    frame : DataFrame
        The rows.
    keys : sequence of str
        Columns that rows are grouped by.
    required : sequence of str
        Columns in which a null keeps a row out of the answer.
    """

    frame: DataFrame
    keys: Sequence[str]
    required: Sequence[str]


@dataclass(frozen=True)
class Grouping:
    """The groups of a query over streams, and what all such queries settle in the same way.

    Parameters
    ----------
    groups : tuple of int
        Keys of the groups of rows; empty: one for each partition of the state.
    partitions : int
        Partitions that the state of a new query has.
    reason : str
        What rows are grouped by, and why into so many.
    state : str
        Where rows are kept.
    question : mapping of str to str
        What must stay the same for as long as a checkpoint is used.
    name : str
        Under which the progress of a query has the numbers.
    """

    groups: tuple[int, ...]
    partitions: int
    reason: str
    state: str
    question: Mapping[str, str]
    name: str

    @classmethod
    def of(
        cls,
        frames: Sequence[DataFrame],
        question: Mapping[str, str],
        keys: Sequence[str],
        wanted: int | None,
    ) -> "Grouping":
        """Settle it; raises if the state store or the number of groups will not do.

        Parameters
        ----------
        frames : sequence of DataFrame
            The inputs.
        question : mapping of str to str
            What is asked.
        keys : sequence of str
            Columns that rows are grouped by; none: all rows meet in one group.
        wanted : int, optional
            How many groups the user wants.
        """
        require_partitions(wanted)
        session = frames[0].sparkSession
        partitions = state_partitions(session)
        by = f"by a hash of the equal columns {', '.join(keys)}"
        groups: tuple[int, ...] = ()
        if not keys:
            groups, reason = group_keys(1), "no column must be equal, so any two rows may meet"
        elif wanted is not None:
            groups, reason = group_keys(wanted), f"{by}; the number as asked for"
        else:
            reason = f"{by}; one for each partition of the state"
        state = f"{require_state_store(session)}; {state_text(session, len(groups) or partitions)}"
        name = metrics_name(question, *frames)
        asked = {**question, **(question_of_groups(len(groups)) if groups else {})}
        return cls(groups, partitions, reason, state, asked, name)

    @property
    def words(self) -> dict[str, Any]:
        """What the explanations of all queries over streams say."""
        return {
            "partitions": len(self.groups) or self.partitions,
            "partitioning": self.reason,
            "state": self.state,
            "ordering": "in no order within a micro-batch; no column carries a watermark",
            "metrics": f"observedMetrics[{self.name!r}] of a query's progress; "
            f"stream_metrics(query)",
        }

    @property
    def known(self) -> dict[str, Any]:
        """What all tasks know of the groups."""
        return {"groups": self.groups, "question": self.question, "partitions": self.partitions}

    def answer(
        self,
        plan: Plan,
        inputs: Sequence[StreamInput],
        task: GroupedTask,
        processor: str,
        cluster: Cluster,
    ) -> Answer:
        """Return the answer of a plan.

        Parameters
        ----------
        plan : Plan
            Of the query.
        inputs : sequence of StreamInput
            The left and the right rows, or those of a single input.
        task : GroupedTask
            What the tasks need to know.
        processor : str
            Module and name of the class of the groups; see :class:`JoinProcessor`.
        cluster : Cluster
            The machines, as the query sees them.
        """
        luggage = cluster.luggage
        first, last = inputs[0], inputs[-1]
        kinds = [
            common_type(first.frame.schema[own].dataType, last.frame.schema[other].dataType)
            for own, other in zip(first.keys, last.keys, strict=True)
        ]
        packed = [_packed(task, own, kinds, side, luggage) for side, own in enumerate(inputs)]
        joined = (
            reduce(DataFrame.unionAll, packed)
            .groupBy("group")
            .transformWithStateInPandas(
                JoinProcessor(processor, pickle.dumps(task), luggage),
                OUTPUT_TYPES,
                "Append",
                "EventTime",
            )
            .observe(self.name, *observed_columns())
        )
        unpack = carrying(luggage, unpack_function(task, plan.name))
        return joined.mapInArrow(unpack, plan.schema), measured_by("stream_metrics")


def _packed(
    task: GroupedTask,
    own: StreamInput,
    kinds: Sequence[DataType],
    side: int,
    luggage: Luggage | None,
) -> DataFrame:
    """Return the rows of one side that can be in the answer, packed by group."""
    # Positions as names: no name of the user's can clash or need quoting.
    names = {name: f"c{index}" for index, name in enumerate(own.frame.columns)}
    rows = own.frame.toDF(*names.values())
    # A null time stays, to be complained of.
    order = F.col(names[task.times[side]])
    for column in own.required:
        rows = rows.where(F.col(names[column]).isNotNull() | order.isNull())
    keys = [
        partition_key(F.col(names[name]), kind) for name, kind in zip(own.keys, kinds, strict=True)
    ]
    rows = rows.select(_group(task, keys).alias("group"), *names.values())
    return rows.mapInArrow(carrying(luggage, pack_function(task, side)), INPUT_TYPES)


def _group(task: GroupedTask, keys: Sequence[Column]) -> Column:
    """Return the hash that gives the number of a row's group: equal keys, equal groups."""
    return F.lit(0) if len(task.groups) == 1 else F.hash(*keys)


# The streaming join as a plan: everything checked and decided, no query started.

_JOIN = "spark_offload.stream.processor:GroupJoin"
"""What joins a group of rows."""

SLICES = 8
"""Slices of the span of time for which rows are kept."""


def _over_windows(
    plan: Plan, *, query: Query, grouping: Grouping, choice: Choice, goes_on: bool
) -> Answer:
    """Join group by group on devices; ``goes_on``: software joins what a device cannot hold."""
    left, right = plan.inputs
    cluster = cluster_of(left.sparkSession, streaming=True)
    ship_packages(cluster)
    width = window_width(query, TimestampType())
    delays = delay(left.schema, query.time[0]), delay(right.schema, query.time[1])
    task = StreamTask(
        query=replace(query, ordering=Ordering.none()),
        devices=choice.source.shipped(cluster),
        times=query.time,
        width=width,
        slice_length=max(1000, (width + 1000 * max(delays)) // SLICES),
        software=ship_bundle(cluster, SOFTWARE) if goes_on else None,
        **task_columns(left, right, plan.schema),
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

    return grouping.answer(plan, [rows(left, LEFT), rows(right, RIGHT)], task, _JOIN, cluster)


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
    choice = serving(query, options, left.sparkSession, schemas)
    goes_on = not options.strict and choice.has_limits and software_serves(query, choice, *schemas)
    question = question_of(query, left.schema.simpleString(), right.schema.simpleString())
    keys = [own for own, _ in equal]
    grouping = Grouping.of((left, right), question, keys, options.partitions)
    explanation = Explanation(
        **grouping.words,
        window=window_text(
            query,
            met="pairs of rows",
            beyond="what the device cannot hold, software joins",
            goes_on=goes_on,
        ),
        arrival=arrival_text(query),
        columns=tuple(schema.names),
        watermark=watermark_text(query, left, right),
        **choice.words(query),
    )
    return Plan(
        query=query,
        inputs=(left, right),
        schema=schema,
        explanation=explanation,
        strategy=partial(
            _over_windows, query=query, grouping=grouping, choice=choice, goes_on=goes_on
        ),
        own=partial(own_join, query=query),
        manifest=choice.manifest,
    )


# The as-of join of two streams as a plan.

_ASOF_JOIN = "spark_offload.stream.processor:AsofGroups"
"""What joins a group of rows."""


def _closest(plan: Plan, *, query: AsofQuery, grouping: Grouping) -> Answer:
    """Join group by group with the closest rows, without a device."""
    left, right = plan.inputs
    cluster = cluster_of(left.sparkSession, streaming=True)
    ship_packages(cluster)
    tolerance = None if query.within is None else order_length(query.within, TimestampType())
    task = AsofStreamTask(
        query=query,
        times=query.time,
        ahead=(tolerance or 0) if query.direction.looks_ahead else 0,
        tolerance=tolerance,
        **task_columns(left, right, plan.schema),
        **grouping.known,
    )
    lefts, rights = ([pair[side] for pair in query.on] for side in (0, 1))
    # A left row with a null key comes with no right row.
    inputs = StreamInput(left, lefts, ()), StreamInput(right, rights, rights)
    return grouping.answer(plan, inputs, task, _ASOF_JOIN, cluster)


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
    explanation = Explanation(
        **grouping.words,
        window=(
            "no limit to the distance in time; the newest right row of each key is kept for ever"
            if query.within is None
            else f"at most {query.within} away in time"
        ),
        arrival=(
            f"by left {query.time[0]!r} and right {query.time[1]!r}; a left row comes when the "
            f"watermark has passed every right row that could be closer"
        ),
        watermark=late_text(query.time, left, right),
        **words_of(query, schema),
    )
    return Plan(
        query=query,
        inputs=(left, right),
        schema=schema,
        explanation=explanation,
        strategy=partial(_closest, query=query, grouping=grouping),
        own=partial(own_asof, query=query),
    )

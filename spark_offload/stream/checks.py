# SPDX-License-Identifier: Apache-2.0
"""What a query over streams asks of its inputs, and where it runs and why."""

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructField, StructType, TimestampType

from host import Ordering
from host.errors import UsageError
from host.query.quantities import Duration
from host.query.queries import OnFailure, Query
from host.reference.types import JoinType
from spark_offload.cluster.machines import cluster_of, is_connect
from spark_offload.cluster.query_plans import delaying_operator
from spark_offload.partitioning.columns import check_frame, find_column, quoted
from spark_offload.plan.options import Options
from spark_offload.stream.task import SHUFFLE_PARTITIONS, state_partitions

__all__ = [
    "arrival_text",
    "check_streams",
    "delay",
    "late_text",
    "require_streams",
    "require_watermark",
    "require_watermarks",
    "state_text",
    "watermark_text",
    "width",
    "window_text",
    "without_watermarks",
]

# What a query over streams asks of its inputs, said before it starts.

_DELAY = "spark.watermarkDelayMs"


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
    if _DELAY in field.metadata:
        return
    others = [other.name for other in schema.fields if _DELAY in other.metadata]
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
    return int(schema[order].metadata[_DELAY])


def without_watermarks(schema: StructType) -> StructType:
    """Return ``schema`` with columns that are no event times.

    A pair can be older than the watermark by the width of the window, in either of its times; an
    operator that took one of them for its event time would drop the pair as late.
    """
    fields = [
        StructField(
            field.name,
            field.dataType,
            field.nullable,
            {key: value for key, value in field.metadata.items() if key != _DELAY},
        )
        for field in schema.fields
    ]
    return StructType(fields)


def width(query: Query) -> int:
    """Return the width of a time-based window of timestamps, in whole microseconds."""
    return query.width.nanoseconds // 1000 if isinstance(query.width, Duration) else 0


# Where a streaming join runs and why.

_UNCHECKED = (
    "; Spark Connect shows no plans, so it was not checked that no operator before the join holds "
    "rows back, whose rows would all be late"
)


def window_text(query: Query, *, goes_on: bool) -> str:
    """Say which rows a row meets; ``goes_on``: whether software joins what the device cannot."""
    left, right = query.time
    beyond = "; what the device cannot hold, software joins" if goes_on else ""
    if query.advance is not None:
        return f"pairs of rows in {query.windows_text}{beyond}"
    return f"pairs of rows with |left.{left} - right.{right}| <= {query.width}{beyond}"


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

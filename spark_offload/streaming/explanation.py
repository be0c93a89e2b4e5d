# SPDX-License-Identifier: Apache-2.0
"""Where a streaming join runs and why."""

from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from host.query.queries import JoinQuery
from host.reference.types import JoinType
from spark_offload.cluster import cluster_of, is_connect
from spark_offload.planning.explanation import Explanation
from spark_offload.streaming.checks import delay
from spark_offload.streaming.store import SHUFFLE_PARTITIONS, state_partitions

__all__ = [
    "StreamExplanation",
    "arrival_text",
    "late_text",
    "state_text",
    "watermark_text",
    "window_text",
]

_UNCHECKED = (
    "; Spark Connect shows no plans, so it was not checked that no operator before the join holds "
    "rows back, whose rows would all be late"
)


@dataclass(frozen=True, kw_only=True)
class StreamExplanation(Explanation):
    """Where one streaming join runs and why; ``partitions`` counts groups of rows.

    Parameters
    ----------
    state : str
        Where the rows are kept that can still be met.
    watermark : str
        Which rows are late, and when rows are forgotten.
    metrics : str
        Name under which the progress of a query has the numbers of this join.
    """

    state: str
    watermark: str
    metrics: str

    def lines(self) -> list[tuple[str, str]]:
        """Return what there is to say, with a heading each."""
        named = dict(super().lines())
        named["groups"] = named.pop("partitions")
        order = ("device", "accelerator", "groups", "join", "terms", "window", "arrival")
        return [
            *((name, named[name]) for name in order),
            ("watermark", self.watermark),
            ("state", self.state),
            ("results", named["results"]),
            ("columns", named["columns"]),
            ("metrics", self.metrics),
            ("in Spark", named["in Spark"]),
        ]


def window_text(query: JoinQuery, *, goes_on: bool) -> str:
    """Say which rows a row meets; ``goes_on``: whether software joins what the device cannot."""
    left, right = query.order
    beyond = "; what the device cannot hold, software joins" if goes_on else ""
    return f"pairs of rows with |left.{left} - right.{right}| <= {query.window}{beyond}"


def arrival_text(query: JoinQuery) -> str:
    """Say in which order rows count as arriving, and when results come."""
    left, right = query.order
    alone = ", a row alone when the watermark has passed its window"
    return (
        f"by left {left!r} and right {right!r}, sorted in every micro-batch; a pair comes in the "
        f"micro-batch of its row that was read last{'' if query.how is JoinType.INNER else alone}"
    )


def watermark_text(query: JoinQuery, left: DataFrame, right: DataFrame) -> str:
    """Say which rows are late, and when rows are forgotten."""
    return (
        f"{late_text(query.order, left, right)}; a row is forgotten when the watermark is "
        f"{query.window} past it{_UNCHECKED if is_connect(left) else ''}"
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

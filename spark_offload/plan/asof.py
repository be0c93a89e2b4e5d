# SPDX-License-Identifier: Apache-2.0
"""The as-of join of batch frames as a plan."""

from functools import partial
import logging
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from host import JoinError, UsageError
from host.columns.kinds import Kind, column_type
from host.errors import AcceleratorLimitError, UnsupportedTypeError
from host.operators.asof import AsofStream
from host.query.queries import AsofQuery, Query
from spark_offload.cluster.machines import cluster_of
from spark_offload.cluster.query_plans import is_plain_read
from spark_offload.explanation import Explanation, TermExplanation
from spark_offload.measures import JoinMetrics
from spark_offload.partitioning.columns import (
    arrow_schema,
    check_batch_frame,
    output_schema,
    require_columns,
    require_equal_bytes,
)
from spark_offload.partitioning.placement import Placement, by_equal_columns, require_partitions
from spark_offload.partitioning.stored import stored_inputs
from spark_offload.plan.join import JoinInputs, answer_in_tasks, checked_by_rules
from spark_offload.plan.plan import Options, Plan, Strategy
from spark_offload.task.operators import AsofTask
from spark_offload.task.task import Answer
from spark_offload.verification.own_queries import own_asof

__all__ = [
    "make_asof_plan",
    "words_of",
]

_LOG = logging.getLogger("spark_offload")

READ_SPEED = 4
"""Tasks behind a shuffle that take, all together, as long as one that reads files itself."""


def _in_tasks(plan: Plan, *, query: AsofQuery, placement: Placement) -> Answer:
    """Join in tasks that need no device."""
    return answer_in_tasks(plan, query.pairs, placement, AsofTask, asof=query)


def _in_spark(plan: Plan, *, query: AsofQuery) -> Answer:
    """Join by Spark itself."""
    left, right = plan.inputs
    return checked_by_rules(plan.own_answer(), left, right, query.pairs), JoinMetrics


def make_asof_plan(
    left: DataFrame,
    right: DataFrame,
    query: AsofQuery,
    options: Options,
) -> Plan:
    """Check everything that can be checked without reading a row, and decide where to run.

    Raises
    ------
    UsageError
        If an input, a column, a type or the tolerance will not do.
    """
    check_batch_frame(left, "left")
    check_batch_frame(right, "right")
    require_columns(left, right, query.pairs)
    schema = output_schema(left.schema, right.schema, query.suffix, query.how)
    placement = _placement(left, right, query, options.partitions)
    explanation = Explanation(
        partitions=placement.partitions,
        partitioning=placement.reason,
        window=(
            "no limit to the distance in time"
            if query.within is None
            else f"at most {query.within} away in time"
        ),
        arrival=(f"by left {query.time[0]!r} and right {query.time[1]!r}; on a tie in input order"),
        ordering=placement.ordering(f"by the time of the left row, {query.time[0]!r}"),
        **words_of(query, schema),
    )
    strategy: Strategy
    try:
        require_equal_bytes(left.schema, right.schema, query.on)
        AsofStream(arrow_schema(left.schema, "left"), arrow_schema(right.schema, "right"), query)
    except (UnsupportedTypeError, AcceleratorLimitError) as error:
        if options.strict or not _can_fall_back(left, right, query, error):
            raise
        own_asof(left, right, query)  # raises if Spark cannot compare them either
        _LOG.warning("The as-of join is done by Spark itself: %s", error)

        explanation = explanation.by_spark(
            "none: Spark's own windows", "Spark's own as-of join", error
        )
        strategy = partial(_in_spark, query=query)
    else:
        strategy = partial(_in_tasks, query=query, placement=placement)
    return Plan(
        query=query,
        inputs=(left, right),
        schema=schema,
        explanation=explanation,
        strategy=strategy,
        own=partial(own_asof, query=query),
        follows_time=explanation.offloaded and placement.follows_time,
    )


def words_of(query: AsofQuery, schema: StructType) -> dict[str, Any]:
    """Return what the explanation of an as-of join says, of batch frames or of streams."""
    return {
        "device": "none: the software engine",
        "chosen": "no accelerator has a walk that ends with the closest row",
        "accelerator": "none",
        "join": str(query),
        "terms": tuple(
            TermExplanation(f"left.{own} = right.{other}", "a key", "a null equals nothing")
            for own, other in query.on
        ),
        "columns": tuple(schema.names),
        "name": f"splitjoin as-of: {query}",
    }


def _can_fall_back(left: DataFrame, right: DataFrame, query: AsofQuery, error: JoinError) -> bool:
    """Whether the times are numbers that Spark has in order and the host has not, or the keys."""
    if isinstance(error, AcceleratorLimitError):
        return True
    kinds = {
        column_type(arrow_schema(frame.schema, side), on, side).kind
        for frame, side, on in zip((left, right), ("left", "right"), query.time, strict=True)
    }
    return len(kinds) == 1 and kinds <= {Kind.FLOAT, Kind.DECIMAL}


def _placement(
    left: DataFrame, right: DataFrame, query: AsofQuery, partitions: int | None
) -> Placement:
    """Decide how many partitions there are and what rows are partitioned by."""
    require_partitions(partitions)
    stored = _stored(left, right, query) if partitions in (None, 1) else None
    if stored is not None:
        return stored
    if query.on:
        lefts, rights = zip(*query.on, strict=True)
        by = f"by the equal columns {', '.join(lefts)}"
        if partitions is not None:
            return Placement(partitions, f"{by}; the number as asked for", (lefts, rights))
        # A distance in time plays no part, and has not been checked yet.
        facts = JoinInputs(left, right, Query(time=query.time, on=query.on, rows=1)).facts()
        return by_equal_columns(facts, by, (lefts, rights))
    if partitions not in (None, 1):
        raise UsageError(
            f"partitions={partitions} needs an equal column in on: without one, any right row can "
            f"be the closest, so all rows go to one task; leave partitions out."
        )
    why = "no column must be equal, so any right row can be the closest"
    if is_plain_read(left) and is_plain_read(right):
        return Placement(1, f"{why}; its task reads the inputs itself", direct=True)
    return Placement(1, why)


def _stored(left: DataFrame, right: DataFrame, query: AsofQuery) -> Placement | None:
    """Return the only partition of rows that its task reads from files, if that is quickest."""
    if query.on and cluster_of(left.sparkSession).cores > READ_SPEED:
        return None
    inputs = stored_inputs(left, right, query.pairs)
    if isinstance(inputs, str):
        return None
    reason = "one, whose task reads Parquet files in less time than a shuffle takes"
    return Placement(1, reason, stored=inputs)

# SPDX-License-Identifier: Apache-2.0
"""The as-of join of batch frames as a plan."""

from collections.abc import Callable
from dataclasses import dataclass
import logging

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from host import JoinError, UsageError
from host.columns.kinds import Kind, column_type
from host.errors import AcceleratorLimitError, UnsupportedTypeError
from host.operators.asof import AsofStream
from host.query.queries import AsofQuery
from spark_offload.cluster.machines import cluster_of, ship_packages
from spark_offload.cluster.query_plans import is_plain_read
from spark_offload.explanation.explanations import Cause, Explanation, TermExplanation
from spark_offload.measures import JoinMetrics
from spark_offload.partitioning.columns import (
    arrow_schema,
    check_batch_frame,
    find_column,
    output_schema,
    require_equal_bytes,
)
from spark_offload.partitioning.placement import Placement, require_partitions
from spark_offload.plan.inputs import JoinInputs, checked_by_rules, checked_for_disorder
from spark_offload.plan.plan import JoinPlan
from spark_offload.task.operators import AsofTask, asof_function
from spark_offload.verification.own_operators import own_asof

__all__ = [
    "AsofPlan",
    "OwnAsofPlan",
    "key_terms",
    "make_asof_plan",
]

_LOG = logging.getLogger("spark_offload")


@dataclass(frozen=True, kw_only=True)
class AsofPlan(JoinPlan):
    """An as-of join of batch frames by this kit that is ready to run.

    Parameters
    ----------
    placement : Placement
        How the rows are partitioned.
    """

    query: AsofQuery
    placement: Placement

    @property
    def follows_time(self) -> bool:
        return self.placement.follows_time

    def own_answer(self, left: DataFrame, right: DataFrame) -> DataFrame:
        return own_asof(left, right, self.query)

    def _run(self) -> tuple[DataFrame, Callable[[], JoinMetrics]]:
        cluster = cluster_of(self.left.sparkSession)
        ship_packages(cluster)
        report, read = cluster.gather_tasks()
        candidates = self.query.pairs
        tagged = JoinInputs(self.left, self.right, candidates).tagged(self.placement)
        task = AsofTask(
            self.query,
            arrow_schema(self.left.schema, "left"),
            arrow_schema(self.right.schema, "right"),
            arrow_schema(self.schema, "output"),
        )
        named = asof_function(task, self.explanation.name, report)
        joined = tagged.frame.mapInArrow(named, self.schema)
        if self.query.sorted and any(self.placement.keys):
            # A task sees the order of its own keys' rows only; a null it sees in any row.
            joined = checked_for_disorder(joined, self.left, self.right, candidates)
        return joined, read


@dataclass(frozen=True, kw_only=True)
class OwnAsofPlan(JoinPlan):
    """An as-of join that Spark does by itself."""

    query: AsofQuery

    def own_answer(self, left: DataFrame, right: DataFrame) -> DataFrame:
        return own_asof(left, right, self.query)

    def _run(self) -> tuple[DataFrame, Callable[[], JoinMetrics]]:
        joined = self.own_answer(self.left, self.right)
        checked = checked_by_rules(joined, self.left, self.right, self.query.pairs)
        return checked, lambda: JoinMetrics(())


def make_asof_plan(
    left: DataFrame,
    right: DataFrame,
    query: AsofQuery,
    *,
    partitions: int | None = None,
    strict: bool = False,
) -> AsofPlan | OwnAsofPlan:
    """Check everything that can be checked without reading a row, and decide where to run.

    Raises
    ------
    UsageError
        If an input, a column, a type or the tolerance will not do.
    """
    for frame, side, on in ((left, "left", query.on[0]), (right, "right", query.on[1])):
        check_batch_frame(frame, side)
        find_column(frame.schema, on, side)
    for own, other in query.by:
        find_column(left.schema, own, "left")
        find_column(right.schema, other, "right")
    schema = output_schema(left.schema, right.schema, query.suffix, query.how)
    placement = _placement(left, right, query, partitions)
    try:
        require_equal_bytes(left.schema, right.schema, query.by)
        AsofStream(arrow_schema(left.schema, "left"), arrow_schema(right.schema, "right"), query)
    except (UnsupportedTypeError, AcceleratorLimitError) as error:
        if strict or not _can_fall_back(left, right, query, error):
            raise
        own_asof(left, right, query)  # raises if Spark cannot compare them either
        _LOG.warning("The as-of join is done by Spark itself: %s", error)
        cause = (
            Cause(
                f"a time of type {error.type_name} has no place in the host's order",
                query.on,
                f"cast it to one of: {error.supported}",
            )
            if isinstance(error, UnsupportedTypeError)
            else Cause(error.reason, (), error.remedy)
        )
        explanation = _explanation(query, schema, placement, cause)
        return OwnAsofPlan(
            query=query, schema=schema, explanation=explanation, left=left, right=right
        )
    return AsofPlan(
        query=query,
        schema=schema,
        explanation=_explanation(query, schema, placement),
        left=left,
        right=right,
        placement=placement,
    )


def key_terms(query: AsofQuery) -> tuple[TermExplanation, ...]:
    """Return how the columns that must be equal are compared, on the host and by Spark itself."""
    return tuple(
        TermExplanation(f"left.{own} = right.{other}", "a key", "a null equals nothing")
        for own, other in query.by
    )


def _can_fall_back(left: DataFrame, right: DataFrame, query: AsofQuery, error: JoinError) -> bool:
    """Whether the times are numbers that Spark has in order and the host has not, or the keys."""
    if isinstance(error, AcceleratorLimitError):
        return True
    kinds = {
        column_type(arrow_schema(frame.schema, side), on, side).kind
        for frame, side, on in zip((left, right), ("left", "right"), query.on, strict=True)
    }
    return len(kinds) == 1 and kinds <= {Kind.FLOAT, Kind.DECIMAL}


def _placement(
    left: DataFrame, right: DataFrame, query: AsofQuery, partitions: int | None
) -> Placement:
    """Decide how many partitions there are and what rows are partitioned by."""
    require_partitions(partitions)
    if query.by:
        lefts, rights = zip(*query.by, strict=True)
        by = f"by the equal columns {', '.join(lefts)}"
        if partitions is not None:
            return Placement(partitions, f"{by}; the number as asked for", (lefts, rights))
        cores = cluster_of(left.sparkSession).cores
        return Placement(cores, f"{by}; one for each core that Spark has", (lefts, rights))
    if partitions not in (None, 1):
        raise UsageError(
            f"partitions={partitions} needs an equal column in by: without one, any right row can "
            f"be the closest, so all rows go to one task; leave partitions out."
        )
    why = "no column must be equal, so any right row can be the closest"
    if is_plain_read(left) and is_plain_read(right):
        return Placement(1, f"{why}; its task reads the inputs itself", direct=True)
    return Placement(1, why)


def _explanation(
    query: AsofQuery, schema: StructType, placement: Placement, cause: Cause | None = None
) -> Explanation:
    left, right = query.on
    by_time = f"by the time of the left row, {left!r}"
    return Explanation(
        device="none: Spark's own windows" if cause else "none: the software engine",
        chosen=(
            "the host cannot serve; strict=True raises this"
            if cause
            else "no accelerator has a walk that ends with the closest row"
        ),
        accelerator="none",
        partitions=placement.partitions,
        partitioning=placement.reason if cause is None else "as Spark decides",
        join=str(query),
        terms=key_terms(query),
        window=(
            "no limit to the distance in time"
            if query.tolerance is None
            else f"at most {query.tolerance} away in time"
        ),
        arrival=f"by left {left!r} and right {right!r}; on a tie in input order",
        ordering=(
            "in no order"
            if cause
            else f"{by_time}, over all partitions"
            if placement.follows_time
            else f"in each partition {by_time}"
        ),
        columns=tuple(schema.names),
        name=f"splitjoin as-of: {query}" if cause is None else f"Spark's own as-of join: {query}",
        causes=() if cause is None else (cause,),
    )

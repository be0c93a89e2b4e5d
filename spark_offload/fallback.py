# SPDX-License-Identifier: Apache-2.0
"""Where no accelerator can serve: the same rows by Spark's own join, and no secret made of it."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
import logging

from pyspark.sql import DataFrame

from host import JoinError
from host.errors import AcceleratorLimitError, BuildError, MissingToolError
from host.query import JoinQuery
from spark_offload.cluster import cluster_of
from spark_offload.columns import output_schema
from spark_offload.explanation import Explanation, TermExplanation
from spark_offload.metrics import JoinMetrics
from spark_offload.own_join import own_join
from spark_offload.plan import JoinPlan, remember

__all__ = ["OwnJoinPlan", "can_fall_back", "own_join_plan"]

_LOG = logging.getLogger("spark_offload")


@dataclass(frozen=True)
class OwnJoinPlan(JoinPlan):
    """A join that Spark does by itself."""

    @cached_property
    def _frame_and_metrics(self) -> tuple[DataFrame, Callable[[], JoinMetrics]]:
        frame = own_join(self.left, self.right, self.query)
        remember(frame, self)
        return frame, lambda: JoinMetrics(())


def can_fall_back(error: JoinError, query: JoinQuery) -> bool:
    """Whether Spark can answer a query that an accelerator could not serve for this reason.

    It can if the query makes sense and its window is time-based; mistakes in it stay mistakes.
    """
    limits = (AcceleratorLimitError, BuildError, MissingToolError)
    return query.is_timed and isinstance(error, limits)


def own_join_plan(
    left: DataFrame, right: DataFrame, query: JoinQuery, error: JoinError
) -> OwnJoinPlan:
    """Return the plan of Spark's own join; the explanation and the log say why."""
    _LOG.warning("The join is done by Spark itself: %s", error)
    schema = output_schema(left.schema, right.schema, query.suffix)
    width = getattr(query.window, "lifespan", query.window)
    equal = any(term.is_equality for term in query.terms)
    explanation = Explanation(
        device="none: Spark's own join",
        chosen=f"the accelerator cannot serve; {str(error).rstrip('.')}; strict=True raises this",
        accelerator="none",
        partitions=cluster_of(left.sparkSession).cores,
        partitioning=(
            "by the equal columns, as Spark decides"
            if equal
            else "without an equality Spark compares every row with every row"
        ),
        terms=tuple(
            TermExplanation(str(term), "a condition", "evaluated by Spark") for term in query.terms
        ),
        window=f"|left.{query.order[0]} - right.{query.order[1]}| <= {width}, as a condition",
        arrival="does not matter to the rows of the answer",
        ordering="in no order",
        columns=tuple(schema.names),
    )
    return OwnJoinPlan(query, "", schema, explanation, left, right)

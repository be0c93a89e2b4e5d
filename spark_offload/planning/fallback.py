# SPDX-License-Identifier: Apache-2.0
"""Where no accelerator can serve: the same rows by Spark's own join, and no secret made of it."""

from collections.abc import Callable
from dataclasses import dataclass, replace
import logging

from pyspark.sql import DataFrame

from host import JoinError, Manifest
from host.columns import plan_streams
from host.devices.software import SOFTWARE_MANIFEST
from host.errors import AcceleratorLimitError, BuildError, MissingToolError
from host.installation import command
from host.query.queries import JoinQuery
from spark_offload.cluster import cluster_of
from spark_offload.devices.sources import Devices
from spark_offload.layout.columns import arrow_schema, output_schema
from spark_offload.measures.metrics import JoinMetrics
from spark_offload.planning.accelerator import QueryCheck, check_query, choose_device
from spark_offload.planning.explanation import Cause, Explanation, TermExplanation
from spark_offload.planning.inputs import JoinInputs
from spark_offload.planning.order_checks import checked_by_rules
from spark_offload.planning.placement import PartitionBy, check_placement
from spark_offload.planning.window_plan import WindowPlan

__all__ = ["OwnJoinPlan", "can_fall_back", "own_join_plan"]

_LOG = logging.getLogger("spark_offload")


@dataclass(frozen=True, kw_only=True)
class OwnJoinPlan(WindowPlan):
    """A join that Spark does by itself."""

    def _run(self) -> tuple[DataFrame, Callable[[], JoinMetrics]]:
        joined = self.own_answer(self.left, self.right)
        checked = checked_by_rules(joined, self.left, self.right, self.query)
        return checked, lambda: JoinMetrics(())


def can_fall_back(error: JoinError, query: JoinQuery) -> bool:
    """Whether Spark can answer a query that an accelerator could not serve for this reason.

    It can if the query makes sense and its window is time-based; mistakes in it stay mistakes.
    """
    limits = (AcceleratorLimitError, BuildError, MissingToolError)
    return query.is_timed and isinstance(error, limits)


def own_join_plan(
    left: DataFrame,
    right: DataFrame,
    query: JoinQuery,
    error: JoinError,
    *,
    device: Devices,
    partitions: int | None = None,
    partition_by: PartitionBy = None,
    check: QueryCheck = check_query,
) -> OwnJoinPlan:
    """Return the plan of Spark's own join; the explanation and the log say why.

    Parameters
    ----------
    check : callable
        What has found that the accelerator cannot serve.

    Raises
    ------
    UsageError
        If the query is one that no device would answer: the rules are those of a device, its limits
        are not.
    """
    _check_rules(left, right, query)
    facts = JoinInputs(left, right, query).facts()
    check_placement(query, facts, partitions=partitions, partition_by=partition_by)
    _LOG.warning("The join is done by Spark itself: %s", error)
    causes = _causes(left, right, query, error, device, check)
    schema = output_schema(left.schema, right.schema, query.suffix, query.how)
    width = getattr(query.window, "lifespan", query.window)
    equal = any(term.is_equality for term in query.terms)
    explanation = Explanation(
        device="none: Spark's own join",
        chosen="the accelerator cannot serve; strict=True raises this",
        accelerator="none",
        partitions=cluster_of(left.sparkSession).cores,
        partitioning=(
            "by the equal columns, as Spark decides"
            if equal
            else "by cells of a grid over bounded differences, or over time, as Spark decides"
        ),
        join=f"{query.how}: {query.how.answer}",
        terms=tuple(
            TermExplanation(str(term), "a condition", "evaluated by Spark") for term in query.terms
        ),
        window=f"|left.{query.order[0]} - right.{query.order[1]}| <= {width}, as a condition",
        arrival="does not matter to the rows of the answer",
        ordering="in no order",
        columns=tuple(schema.names),
        name=f"Spark's own join: {query}",
        causes=causes,
    )
    return OwnJoinPlan(query=query, schema=schema, explanation=explanation, left=left, right=right)


def _check_rules(left: DataFrame, right: DataFrame, query: JoinQuery) -> None:
    """Raise for columns that cannot be compared or ordered by, whatever the device."""
    manifest = Manifest.load(SOFTWARE_MANIFEST)
    schemas = arrow_schema(left.schema, "left"), arrow_schema(right.schema, "right")
    # Each term alone: how many there can be is up to a device.
    for terms in ((), *((term,) for term in query.terms)):
        plan_streams(*schemas, replace(query, terms=terms), manifest)


def _causes(
    left: DataFrame,
    right: DataFrame,
    query: JoinQuery,
    error: JoinError,
    device: Devices,
    check: QueryCheck,
) -> tuple[Cause, ...]:
    """Return a cause for every term that the device cannot compare, or the one for all of them."""
    if not isinstance(error, AcceleratorLimitError):
        return (_cause(error),)
    choice = choose_device(device, query, left.sparkSession)
    schemas = arrow_schema(left.schema, "left"), arrow_schema(right.schema, "right")
    causes = []
    try:
        check(replace(query, terms=()), choice, *schemas)
    except AcceleratorLimitError:
        return (_cause(error),)  # no term is to blame
    for term in query.terms:
        try:
            check(replace(query, terms=(term,)), choice, *schemas)
        except AcceleratorLimitError as found:
            causes.append(_cause(found, (term.left, term.right)))
    return tuple(causes) or (_cause(error),)


def _cause(error: JoinError, columns: tuple[str, ...] = ()) -> Cause:
    if isinstance(error, AcceleratorLimitError):
        return Cause(error.reason, columns, error.remedy)
    remedy = (
        error.remedy
        if isinstance(error, MissingToolError)
        else f"`{command('host doctor')}` says which tools are missing"
    )
    return Cause(str(error).rstrip("."), columns, remedy)

# SPDX-License-Identifier: Apache-2.0
"""The join of batch frames over a window as a plan: on an accelerator, or by Spark itself."""

from dataclasses import dataclass, replace
from functools import partial
import logging

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from host import JoinError, Manifest
from host.columns import plan_streams
from host.columns.conditions import BoundCondition
from host.devices.bundles import known_accelerator
from host.devices.software import SOFTWARE_MANIFEST
from host.errors import AcceleratorLimitError, BuildError, MissingToolError
from host.installation import command
from host.query.queries import Query
from host.reference.types import JoinType
from spark_offload.cluster.devices import Devices
from spark_offload.cluster.machines import cluster_of, ship_bundle, ship_packages
from spark_offload.explanation.cost import InputSize, devices_of, estimate_cost, join_size
from spark_offload.explanation.explanations import Cause, Explanation, TermExplanation
from spark_offload.partitioning.columns import (
    arrow_schema,
    check_batch_frame,
    find_column,
    output_schema,
    require_columns,
    require_equal_bytes,
)
from spark_offload.partitioning.placement import (
    PartitionBy,
    Placement,
    check_placement,
    choose_placement,
)
from spark_offload.partitioning.tagged import gauge_width
from spark_offload.plan.accelerator import (
    SOFTWARE,
    Choice,
    QueryCheck,
    check_query,
    choose_device,
    software_serves,
)
from spark_offload.plan.inputs import JoinInputs, checked_by_rules, checked_for_disorder
from spark_offload.plan.plan import Answer, Plan, by_spark_itself
from spark_offload.task.handover import count_windows
from spark_offload.task.join import JoinTask, arrow_function
from spark_offload.verification.own_join import own_join

__all__ = [
    "OnDevices",
    "can_fall_back",
    "make_plan",
    "own_join_plan",
]


@dataclass(frozen=True, kw_only=True)
class OnDevices:
    """The strategy of a join of batch frames whose tasks have a device each.

    Parameters
    ----------
    query : Query
        What is joined.
    schema : StructType
        Columns of the answer.
    name : str
        What the join is called in Spark's plan.
    choice : Choice
        The devices.
    placement : Placement
        How the rows are partitioned.
    trace : bool
        Whether every result's latency is measured.
    progress : str, optional
        Folder in which tasks tell how far they are; see :mod:`spark_offload.cluster.session`.
    width : int or None
        Of a time-based window that can outgrow the device, as a difference of order numbers.
    goes_on : bool
        Whether a task goes on in software from the first row that its device cannot hold.
    """

    query: Query
    schema: StructType
    name: str
    choice: Choice
    placement: Placement
    trace: bool = False
    progress: str | None = None
    width: int | None = None
    goes_on: bool = False

    def __call__(self, left: DataFrame, right: DataFrame) -> Answer:
        cluster = cluster_of(left.sparkSession)
        ship_packages(cluster)
        report, read = cluster.gather_tasks()
        tagged = JoinInputs(left, right, self.query).tagged(self.placement)
        task = JoinTask(
            query=self.query,
            devices=self.choice.source.shipped(cluster),
            left=arrow_schema(left.schema, "left"),
            right=arrow_schema(right.schema, "right"),
            output=arrow_schema(self.schema, "output"),
            trace=self.trace,
            progress=self.progress,
            halos=tagged.halos,
            width=self.width,
            software=ship_bundle(cluster, SOFTWARE) if self.goes_on else None,
        )
        function = arrow_function(task, self.name, report)
        joined = self.checked(tagged.frame.mapInArrow(function, self.schema), left, right)
        manifest = self.choice.manifest
        return joined, lambda: read().on_hardware(manifest)

    def checked(self, answer: DataFrame, left: DataFrame, right: DataFrame) -> DataFrame:
        """Return an answer that fails if a declared order does not hold, where no task sees it.

        A task sees the order of the rows of its own keys, or of its own range of time, only. A
        range for a count-based window begins with the last row before it, which need not be of the
        same partition of the input. A null is seen in any row.
        """
        placement = self.placement
        apart = self.query.per_partition and placement.partitions > 1
        in_parts = any(placement.keys) or placement.rule is not None or apart
        if self.query.sorted and in_parts:
            return checked_for_disorder(answer, left, right, self.query)
        return answer


def _sized(
    explanation: Explanation,
    query: Query,
    left: DataFrame,
    right: DataFrame,
    devices: OnDevices | None,
    count: bool,
) -> Explanation:
    """Return the explanation with sizes and cost, from how the rows lie in time, if known."""
    inputs = JoinInputs(left, right, query)
    profile = rule = manifest = instead = None
    number = 1
    if devices is not None:
        profile, rule = devices.placement.profile, devices.placement.rule
        number = devices_of(devices.placement)
        manifest = devices.choice.manifest if devices.choice.is_estimated else None
        # What the accelerator would take where the software engine joins.
        instead = None if devices.choice.has_limits else known_accelerator(query)
    if profile is None and count:
        profile = inputs.profile(1 if rule is None else rule.ranges)
    size = None if profile is None else join_size(query, profile, inputs.facts().width)
    cost = estimate_cost(left, right, query, manifest or instead, size, number)
    found = replace(
        explanation,
        inputs=InputSize(None if profile is None else profile.rows, inputs.known_bytes()),
        cost=replace(cost, is_elsewhere=instead is not None),
    )
    if rule is None or profile is None:
        return found
    return replace(found, partitioning=f"{found.partitioning}: {rule.cut(profile).note}")


def make_plan(
    left: DataFrame,
    right: DataFrame,
    query: Query,
    *,
    device: Devices = None,
    partitions: int | None = None,
    partition_by: PartitionBy = None,
    trace: bool = False,
    progress: str | None = None,
    build: bool = False,
    strict: bool = False,
    check: QueryCheck = check_query,
) -> Plan:
    """Check everything that can be checked without reading a row, and decide where to run.

    Jobs of Spark run for what an answer or an accelerator would be wrong without. Ranges of time
    for a count-based window are cut by the ranks of rows, so the order columns are read. If
    ``build`` asks for an accelerator that holds the windows, these are counted, so the columns of
    the order and of equalities are read.

    Parameters
    ----------
    check : callable
        Whether the accelerator can serve the query.

    Raises
    ------
    UsageError
        If an input, a column, a type, the window or the device will not do.
    """
    for frame, side, order in (
        (left, "left", query.time[0]),
        (right, "right", query.time[1]),
    ):
        check_batch_frame(frame, side)
        find_column(frame.schema, order, side)
    require_columns(left, right, query)
    equal = [(term.left, term.right) for term in query.terms if term.is_equality]
    require_equal_bytes(left.schema, right.schema, equal)
    schema = output_schema(left.schema, right.schema, query.suffix, query.how)
    schemas = arrow_schema(left.schema, "left"), arrow_schema(right.schema, "right")
    session = left.sparkSession
    needs = "a trace of cycles" if trace else None
    choice = choose_device(device, query, session, needs=needs, build=build)
    terms = check(query, choice, *schemas)
    inputs = JoinInputs(left, right, query)
    facts = inputs.facts()
    placement = choose_placement(query, facts, partitions=partitions, partition_by=partition_by)
    if choice.is_simulated and build and facts.width is not None:
        ship_packages(cluster_of(session))
        tuples = count_windows(inputs.tagged(placement).frame, facts.width)
        if tuples > choice.manifest.capacity:
            choice = choose_device(device, query, session, tuples=tuples, build=build)
            terms = check(query, choice, *schemas)
    width = gauge_width(query, inputs.order_type) if choice.has_limits else None
    goes_on = not strict and width is not None and software_serves(query, choice, *schemas)
    explanation = Explanation(
        device=choice.uri,
        chosen=choice.reason,
        accelerator=choice.description,
        partitions=placement.partitions,
        partitioning=placement.reason,
        join=f"{query.how}: {query.how.answer}",
        terms=terms,
        window=_window_text(query, goes_on=goes_on),
        arrival=(
            f"by left {query.time[0]!r} and right {query.time[1]!r}; "
            "on a tie left before right, then input order"
        ),
        ordering=(
            _by_arrival(placement, query.how)
            if query.ordering.period == 1
            else f"in each partition {query.ordering.meaning}"
        ),
        columns=tuple(schema.names),
        name=choice.name(query),
    )
    devices = OnDevices(
        query=query,
        schema=schema,
        name=explanation.name,
        choice=choice,
        placement=placement,
        trace=trace,
        progress=progress,
        width=width,
        goes_on=goes_on,
    )
    return Plan(
        query=query,
        inputs=(left, right),
        schema=schema,
        explanation=explanation,
        strategy=devices,
        own=partial(own_join, query=query),
        sized=partial(_sized, explanation, query, left, right, devices),
        follows_time=placement.follows_time,
        manifest=choice.manifest,
    )


def _by_arrival(placement: Placement, how: JoinType) -> str:
    by_arrival = "by the arrival of the later row of a pair" if how.has_pairs else "by arrival"
    if how.has_pairs and how is not JoinType.INNER:
        by_arrival += ", a row alone where it leaves the window"
    if placement.follows_time:
        return f"{by_arrival}, over all partitions"
    return f"in each partition {by_arrival}"


def _window_text(query: Query, *, goes_on: bool) -> str:
    if not query.is_timed:
        return f"the last {query.rows:,} rows of the other side"
    beyond = "; from what the device cannot hold, the task goes on in software" if goes_on else ""
    return (
        f"rows of the other side with |left.{query.time[0]} - right.{query.time[1]}| <= "
        f"{query.width}{beyond}"
    )


# Where no accelerator can serve: the same rows by Spark's own join, and no secret made of it.

_LOG = logging.getLogger("spark_offload")


def can_fall_back(error: JoinError, query: Query) -> bool:
    """Whether Spark can answer a query that an accelerator could not serve for this reason.

    It can if the query makes sense and its window is time-based; mistakes in it stay mistakes.
    """
    limits = (AcceleratorLimitError, BuildError, MissingToolError)
    return query.is_timed and isinstance(error, limits)


def own_join_plan(
    left: DataFrame,
    right: DataFrame,
    query: Query,
    error: JoinError,
    *,
    device: Devices,
    partitions: int | None = None,
    partition_by: PartitionBy = None,
    check: QueryCheck = check_query,
) -> Plan:
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
            TermExplanation(str(term), "a condition", "evaluated by Spark")
            for term in (*query.terms, *([] if query.rest is None else [query.rest]))
        ),
        window=f"|left.{query.time[0]} - right.{query.time[1]}| <= {query.width}, as a condition",
        arrival="does not matter to the rows of the answer",
        ordering="in no order",
        columns=tuple(schema.names),
        name=f"Spark's own join: {query}",
        causes=causes,
    )

    def joined(left: DataFrame, right: DataFrame) -> DataFrame:
        return checked_by_rules(own_join(left, right, query), left, right, query)

    return Plan(
        query=query,
        inputs=(left, right),
        schema=schema,
        explanation=explanation,
        strategy=by_spark_itself(joined),
        own=partial(own_join, query=query),
        sized=partial(_sized, explanation, query, left, right, None),
    )


def _check_rules(left: DataFrame, right: DataFrame, query: Query) -> None:
    """Raise for columns that cannot be compared or ordered by, whatever the device."""
    manifest = Manifest.load(SOFTWARE_MANIFEST)
    schemas = arrow_schema(left.schema, "left"), arrow_schema(right.schema, "right")
    # Each term alone: how many there can be is up to a device.
    for terms in ((), *((term,) for term in query.terms)):
        plan_streams(*schemas, query.with_terms(*terms), manifest)
    if query.rest is not None:
        BoundCondition.of(query.rest, *schemas)


def _causes(
    left: DataFrame,
    right: DataFrame,
    query: Query,
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
        check(query.with_terms(), choice, *schemas)
    except AcceleratorLimitError:
        return (_cause(error),)  # no term is to blame
    for term in query.terms:
        try:
            check(query.with_terms(term), choice, *schemas)
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

# SPDX-License-Identifier: Apache-2.0
"""The join of batch frames over a window as a plan: on an accelerator, or the software engine."""

from dataclasses import dataclass, replace
from functools import partial

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from host.devices.bundles import known_accelerator
from host.query.queries import Query
from host.reference.types import JoinType
from spark_offload.cluster.machines import cluster_of, ship_bundle, ship_packages
from spark_offload.explanation.cost import InputSize, devices_of, estimate_cost, join_size
from spark_offload.explanation.explanations import Explanation
from spark_offload.partitioning.columns import (
    arrow_schema,
    check_batch_frame,
    equal_columns,
    joined_schema,
    require_columns,
    require_equal_bytes,
    task_columns,
)
from spark_offload.partitioning.placement import (
    Placement,
    choose_placement,
)
from spark_offload.partitioning.tagged import gauge_width
from spark_offload.plan.accelerator import (
    SOFTWARE,
    Choice,
    QueryCheck,
    check_query,
    serving,
    software_serves,
)
from spark_offload.plan.inputs import (
    Intervals,
    JoinInputs,
    Tagged,
    checked_for_disorder,
)
from spark_offload.plan.options import Options
from spark_offload.plan.plan import Plan
from spark_offload.task.handover import count_windows
from spark_offload.task.join import JoinTask
from spark_offload.task.rows import TaggedTask
from spark_offload.task.task import Answer
from spark_offload.verification.own_join import own_join

__all__ = [
    "OnDevices",
    "make_plan",
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
        tagged = JoinInputs(left, right, self.query).tagged(self.placement)
        task = JoinTask(
            query=self.query,
            devices=self.choice.source.shipped(cluster),
            **task_columns(left, right, self.schema),
            trace=self.trace,
            progress=self.progress,
            **tagged.told,
            width=self.width,
            software=ship_bundle(cluster, SOFTWARE) if self.goes_on else None,
        )
        return self.answer(task, tagged, self.schema, left, right)

    def answer(
        self,
        task: TaggedTask,
        tagged: Tagged,
        schema: StructType,
        left: DataFrame,
        right: DataFrame,
    ) -> Answer:
        """Return what tasks make of the tagged rows, with what no task sees checked."""
        joined, read = task.answer(tagged.frame, self.name, schema)
        manifest = self.choice.manifest
        return self._checked(joined, left, right), lambda: read().on_hardware(manifest)

    def _checked(self, answer: DataFrame, left: DataFrame, right: DataFrame) -> DataFrame:
        """Return an answer that fails if a declared order does not hold, where no task sees it.

        A task sees the order of the rows of its own keys, or of its own range of time, only. A
        range for a count-based window begins with the last row before it, which need not be of the
        same partition of the input. A null is seen in any row.
        """
        placement = self.placement
        if placement.stored is not None:
            return answer  # whoever reads a row group sees the order of all its rows
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
    devices: OnDevices,
    count: bool,
) -> Explanation:
    """Return the explanation with sizes and cost, from how the rows lie in time, if known."""
    inputs = JoinInputs(left, right, query)
    profile, rule = devices.placement.profile, devices.placement.rule
    manifest = devices.choice.manifest if devices.choice.is_estimated else None
    # What the accelerator would take where the software engine joins.
    instead = None if devices.choice.has_limits else known_accelerator(query)
    if profile is None and count:
        profile = inputs.profile(1 if rule is None else rule.ranges)
    size = None if profile is None else join_size(query, profile, inputs.facts().width)
    cost = estimate_cost(
        left, right, query, manifest or instead, size, devices_of(devices.placement)
    )
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
    options: Options,
    check: QueryCheck = check_query,
    intervals: Intervals | None = None,
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
    intervals : Intervals, optional
        What is required of the intervals of an overlap join.

    Raises
    ------
    UsageError
        If an input, a column, a type, the window or the device will not do.
    """
    check_batch_frame(left, "left")
    check_batch_frame(right, "right")
    require_columns(left, right, query)
    require_equal_bytes(left.schema, right.schema, equal_columns(query))
    schema = joined_schema(left.schema, right.schema, query)
    schemas = arrow_schema(left.schema, "left"), arrow_schema(right.schema, "right")
    session = left.sparkSession
    choice, terms, causes = serving(query, options, session, schemas, check)
    inputs = JoinInputs(left, right, query, intervals)
    counted = choice.is_simulated and options.build and query.is_timed
    facts = inputs.facts(fills=choice.has_limits, counted=counted)
    placement = choose_placement(
        query, facts, partitions=options.partitions, partition_by=options.partition_by
    )
    if intervals is not None and placement.stored is None:
        left, right = intervals.checked(left, right)
        inputs = JoinInputs(left, right, query)
    if choice.is_simulated and options.build and facts.width is not None:
        ship_packages(cluster_of(session))
        tuples = count_windows(inputs.tagged(placement).frame, facts.width)
        if tuples > choice.manifest.capacity:
            asked = query, options, session, schemas, check
            choice, terms, causes = serving(*asked, tuples=tuples)
    width = gauge_width(query, inputs.order_type) if choice.has_limits else None
    goes_on = not options.strict and width is not None and software_serves(query, choice, *schemas)
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
        causes=causes,
    )
    devices = OnDevices(
        query=query,
        schema=schema,
        name=explanation.name,
        choice=choice,
        placement=placement,
        trace=options.trace,
        progress=options.progress,
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
    if query.advance is not None:
        return f"rows of the other side in {query.windows_text}{beyond}"
    return (
        f"rows of the other side with |left.{query.time[0]} - right.{query.time[1]}| <= "
        f"{query.width}{beyond}"
    )

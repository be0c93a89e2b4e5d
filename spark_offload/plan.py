# SPDX-License-Identifier: Apache-2.0
"""The join as a plan: everything checked and decided, nothing run."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from weakref import WeakKeyDictionary

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from host import Manifest, UsageError
from host.join_type import JoinType
from host.query import JoinQuery
from spark_offload.accelerator import check_query, choose_device
from spark_offload.cluster import cluster_of
from spark_offload.columns import arrow_schema, check_batch_frame, find_column, output_schema
from spark_offload.cost import InputSize, devices_of, estimate_cost, join_size
from spark_offload.devices import Devices, DeviceSource
from spark_offload.explanation import Explanation
from spark_offload.inputs import JoinInputs
from spark_offload.metrics import JoinMetrics
from spark_offload.placement import PartitionBy, Placement, choose_placement
from spark_offload.ranges import band_ranges
from spark_offload.shipping import ship_packages
from spark_offload.task import JoinTask, arrow_function

__all__ = ["JoinPlan", "make_plan", "plan_of", "remember"]

_plans: "WeakKeyDictionary[DataFrame, JoinPlan]" = WeakKeyDictionary()


@dataclass(frozen=True)
class JoinPlan:
    """A join that is ready to run; made by :func:`~spark_offload.plan_join`.

    Parameters
    ----------
    query : JoinQuery
        What is joined.
    device : str
        Address of the device or the devices, as explained.
    schema : StructType
        Columns of the answer.
    explanation : Explanation
        Where it runs and why.
    left, right : DataFrame
        The inputs.
    trace : bool
        Whether every result's latency is measured.
    progress : str, optional
        Folder in which tasks tell how far they are; see :mod:`spark_offload.progress`.
    placement : Placement, optional
        How the rows are partitioned, if they are those of batch frames.
    manifest : Manifest, optional
        Description of the accelerator, if the rows are those of batch frames.
    devices : DeviceSource, optional
        Where tasks get their devices from, if the join runs on any.
    """

    query: JoinQuery
    device: str
    schema: StructType
    explanation: Explanation
    left: DataFrame
    right: DataFrame
    trace: bool = False
    progress: str | None = None
    placement: Placement | None = None
    manifest: Manifest | None = None
    devices: DeviceSource | None = None

    def explain(self, *, count: bool = False) -> Explanation:
        """Print where the join runs and why; return the same as a value.

        Parameters
        ----------
        count : bool
            Whether to read the order columns, unless that has been done, for the number of rows and
            what follows from it.
        """
        explanation = self.estimated(count=count)
        print(explanation)
        return explanation

    def estimated(self, *, count: bool = False) -> Explanation:
        """Return the explanation with the size of the inputs and the cost of the join."""
        inputs = JoinInputs(self.left, self.right, self.query)
        profile = None if self.placement is None else self.placement.profile
        if profile is None and count:
            profile = inputs.profile()
        width = inputs.facts().width
        size = None if profile is None else join_size(self.query, profile, width)
        clocked = self.manifest if self.explanation.offloaded and self.has_clock else None
        cost = estimate_cost(
            self.left,
            self.right,
            self.query,
            clocked,
            size,
            1 if self.placement is None else devices_of(self.placement),
        )
        rows = None if profile is None else profile.rows
        return replace(self.explanation, inputs=InputSize(rows, inputs.known_bytes()), cost=cost)

    @property
    def has_clock(self) -> bool:
        """Whether the device counts cycles; the reference join does not."""
        return not self.device.startswith("software:")

    def dataframe(self) -> DataFrame:
        """Return the answer as a frame; like every frame it is computed when it is used."""
        return self._frame_and_metrics[0]

    def metrics(self) -> JoinMetrics:
        """Return what the tasks have measured so far; complete once an action has ended."""
        return self._frame_and_metrics[1]()

    @cached_property
    def _frame_and_metrics(self) -> tuple[DataFrame, Callable[[], JoinMetrics]]:
        cluster = cluster_of(self.left.sparkSession)
        ship_packages(cluster)
        report, read = cluster.gather_tasks()
        if self.placement is None or self.manifest is None or self.devices is None:
            raise UsageError("A batch join needs a placement; make its plan with make_plan.")
        tagged = JoinInputs(self.left, self.right, self.query).tagged(self.placement)
        task = JoinTask(
            query=self.query,
            devices=self.devices.shipped(cluster),
            left=arrow_schema(self.left.schema, "left"),
            right=arrow_schema(self.right.schema, "right"),
            output=arrow_schema(self.schema, "output"),
            trace=self.trace,
            progress=self.progress,
            halos=tagged.halos,
            ranges=band_ranges(self.left, self.right, self.query, self.manifest),
        )
        named = arrow_function(task, self.explanation.name, report)
        frame = tagged.frame.mapInArrow(named, self.schema)
        remember(frame, self)
        return frame, read


def make_plan(
    left: DataFrame,
    right: DataFrame,
    query: JoinQuery,
    *,
    device: Devices = None,
    partitions: int | None = None,
    partition_by: PartitionBy = None,
    trace: bool = False,
    progress: str | None = None,
    build: bool = False,
) -> JoinPlan:
    """Check everything that can be checked without reading a row, and decide where to run.

    Ranges of time are cut by what the order columns hold: then those are read, in a job of Spark.

    Raises
    ------
    UsageError
        If an input, a column, a type, the window or the device will not do.
    """
    for frame, side, order in (
        (left, "left", query.order[0]),
        (right, "right", query.order[1]),
    ):
        check_batch_frame(frame, side)
        find_column(frame.schema, order, side)
    for term in query.terms:
        find_column(left.schema, term.left, "left")
        find_column(right.schema, term.right, "right")
    schema = output_schema(left.schema, right.schema, query.suffix, query.how)
    schemas = arrow_schema(left.schema, "left"), arrow_schema(right.schema, "right")
    session = left.sparkSession
    choice = choose_device(device, query, session, build=build)
    terms = check_query(query, choice, *schemas)
    facts = JoinInputs(left, right, query).facts()
    placement = choose_placement(query, facts, partitions=partitions, partition_by=partition_by)
    if device is None and placement.profile is not None and facts.width is not None:
        tuples = placement.profile.largest_window(facts.width)
        choice = choose_device(None, query, session, tuples=tuples, build=build)
    explanation = Explanation(
        device=choice.uri,
        chosen=choice.reason,
        accelerator=choice.description,
        partitions=placement.partitions,
        partitioning=placement.reason,
        join=f"{query.how}: {query.how.answer}",
        terms=terms,
        window=_window_text(query),
        arrival=(
            f"by left {query.order[0]!r} and right {query.order[1]!r}; "
            "on a tie left before right, then input order"
        ),
        ordering=(
            _by_arrival(placement, query.how) if query.ordering.period == 1 else f"{query.ordering}"
        ),
        columns=tuple(schema.names),
        name=choice.name(query),
    )
    return JoinPlan(
        query,
        choice.uri,
        schema,
        explanation,
        left,
        right,
        trace,
        progress,
        placement,
        choice.manifest,
        choice.source,
    )


def remember(frame: DataFrame, plan: JoinPlan) -> None:
    """Let :func:`plan_of` find the plan of a frame for as long as the frame is there."""
    _plans[frame] = plan


def plan_of(frame: DataFrame) -> JoinPlan:
    """Return the plan of a frame that :func:`~spark_offload.stream_join` returned."""
    plan = _plans.get(frame)
    if plan is None:
        raise UsageError(
            "This DataFrame is not one that stream_join returned; frames derived from one do not "
            "know its plan."
        )
    return plan


def _by_arrival(placement: Placement, how: JoinType) -> str:
    by_arrival = "by the arrival of the later row of a pair" if how.has_pairs else "by arrival"
    if how.has_pairs and how is not JoinType.INNER:
        by_arrival += ", a row alone where it leaves the window"
    if placement.follows_time:
        return f"{by_arrival}, over all partitions"
    return f"in each partition {by_arrival}"


def _window_text(query: JoinQuery) -> str:
    if not query.is_timed:
        return f"the last {getattr(query.window, 'size', 0):,} rows of the other side"
    width = getattr(query.window, "lifespan", query.window)
    return (
        f"rows of the other side with |left.{query.order[0]} - right.{query.order[1]}| <= {width}"
    )

# SPDX-License-Identifier: Apache-2.0
"""The join as a plan: everything checked and decided, nothing run."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from weakref import WeakKeyDictionary

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import DataType, IntegralType, LongType, StringType, StructType

from host import UsageError
from host.query import JoinQuery
from spark_offload.accelerator import check_query, choose_device
from spark_offload.columns import arrow_schema, check_batch_frame, find_column, output_schema
from spark_offload.explanation import Explanation
from spark_offload.metrics import JoinMetrics, gather_tasks
from spark_offload.session import use_this_python
from spark_offload.shipping import ship_bundle, ship_packages
from spark_offload.tagged import TaggedInput, tagged_frame
from spark_offload.task import JoinTask, arrow_function

__all__ = ["JoinPlan", "common_type", "make_plan", "plan_of", "remember"]

_plans: "WeakKeyDictionary[DataFrame, JoinPlan]" = WeakKeyDictionary()


@dataclass(frozen=True)
class JoinPlan:
    """A join that is ready to run; made by :func:`~spark_offload.plan_join`.

    Parameters
    ----------
    query : JoinQuery
        What is joined.
    device : str
        Address of the device on the driver.
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
    """

    query: JoinQuery
    device: str
    schema: StructType
    explanation: Explanation
    left: DataFrame
    right: DataFrame
    trace: bool = False
    progress: str | None = None

    def explain(self) -> Explanation:
        """Print where the join runs and why; return the same as a value."""
        print(self.explanation)
        return self.explanation

    def dataframe(self) -> DataFrame:
        """Return the answer as a frame; like every frame it is computed when it is used."""
        return self._frame_and_metrics[0]

    def metrics(self) -> JoinMetrics:
        """Return what the tasks have measured so far; complete once an action has ended."""
        return self._frame_and_metrics[1]()

    @cached_property
    def _frame_and_metrics(self) -> tuple[DataFrame, Callable[[], JoinMetrics]]:
        session: SparkSession = self.left.sparkSession
        context = session.sparkContext
        use_this_python(context)
        ship_packages(context)
        report, read = gather_tasks(context)
        task = JoinTask(
            query=self.query,
            device=ship_bundle(context, self.device),
            left=arrow_schema(self.left.schema, "left"),
            right=arrow_schema(self.right.schema, "right"),
            output=arrow_schema(self.schema, "output"),
            trace=self.trace,
            progress=self.progress,
        )
        left_order, right_order = self.query.order
        left_keys, right_keys = _partition_keys(self.query)
        tagged = tagged_frame(
            TaggedInput(self.left, left_order, left_keys),
            TaggedInput(self.right, right_order, right_keys),
            order_type=common_type(
                self.left.schema[left_order].dataType, self.right.schema[right_order].dataType
            ),
            key_types=[
                common_type(self.left.schema[left].dataType, self.right.schema[right].dataType)
                for left, right in zip(left_keys, right_keys, strict=True)
            ],
            partitions=self.explanation.partitions,
        )
        name = f"splitjoin_{'within' if self.query.is_timed else 'last_rows'}"
        frame = tagged.mapInArrow(arrow_function(task, name, report), self.schema)
        remember(frame, self)
        return frame, read


def make_plan(
    left: DataFrame,
    right: DataFrame,
    query: JoinQuery,
    *,
    device: str | None = None,
    partitions: int | None = None,
    trace: bool = False,
    progress: str | None = None,
) -> JoinPlan:
    """Check everything that can be checked without reading a row, and decide where to run.

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
    schema = output_schema(left.schema, right.schema, query.suffix)
    schemas = arrow_schema(left.schema, "left"), arrow_schema(right.schema, "right")
    if partitions is not None and (not isinstance(partitions, int) or partitions < 1):
        raise UsageError(f"partitions must be a whole number of at least 1, not {partitions!r}.")
    choice = choose_device(device, query)
    terms = check_query(query, choice, *schemas)
    count, partitioning = _partitioning(query, left.sparkSession, partitions)
    explanation = Explanation(
        device=choice.uri,
        chosen=choice.reason,
        accelerator=choice.description,
        partitions=count,
        partitioning=partitioning,
        terms=terms,
        window=_window_text(query),
        arrival=(
            f"by left {query.order[0]!r} and right {query.order[1]!r}; "
            "on a tie left before right, then input order"
        ),
        ordering=(
            "in each partition by the arrival of the later row of a pair"
            if query.ordering.period == 1
            else f"{query.ordering}"
        ),
        columns=tuple(schema.names),
    )
    return JoinPlan(query, choice.uri, schema, explanation, left, right, trace, progress)


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


def common_type(left: DataType, right: DataType) -> DataType:
    """Return the type that both columns can be cast to without changing a value."""
    if isinstance(left, IntegralType):
        return LongType()
    return StringType() if isinstance(left, StringType) else left


def _partition_keys(query: JoinQuery) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the columns, left and right, that rows can be partitioned by.

    The last rows of a side are counted over all its rows, whatever their keys; so a count-based
    window cannot be cut by key.
    """
    terms = [term for term in query.terms if term.is_equality] if query.is_timed else []
    return tuple(term.left for term in terms), tuple(term.right for term in terms)


def _partitioning(query: JoinQuery, session: SparkSession, wanted: int | None) -> tuple[int, str]:
    """Return the number of partitions, and the reason for it."""
    left_keys, _ = _partition_keys(query)
    if left_keys:
        names = ", ".join(left_keys)
        if wanted is not None:
            return wanted, f"by the equal columns {names}; the number as asked for"
        count = session.sparkContext.defaultParallelism
        return count, f"by the equal columns {names}; one for each core that Spark has"
    if not query.is_timed and any(term.is_equality for term in query.terms):
        return 1, "the last rows of a side are counted over all its rows, whatever their keys"
    if query.is_timed:
        return 1, "no column must be equal, so any two rows may meet"
    return 1, "no column must be equal, and the last rows of a side are counted over all its rows"


def _window_text(query: JoinQuery) -> str:
    if not query.is_timed:
        return f"the last {getattr(query.window, 'size', 0):,} rows of the other side"
    width = getattr(query.window, "lifespan", query.window)
    return (
        f"rows of the other side with |left.{query.order[0]} - right.{query.order[1]}| <= {width}"
    )

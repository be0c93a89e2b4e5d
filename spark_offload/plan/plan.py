# SPDX-License-Identifier: Apache-2.0
"""A join or an aggregation as a plan, and the plan behind a frame."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, TypeVar
from weakref import WeakValueDictionary

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from host import UsageError
from host.query.queries import AsofQuery, JoinQuery
from spark_offload.cluster.machines import is_connect
from spark_offload.cluster.query_plans import analysed, children
from spark_offload.errors import kit_errors
from spark_offload.explanation.explanations import AggregateExplanation, Explanation
from spark_offload.measures import JoinMetrics

__all__ = [
    "JoinPlan",
    "JoinsByColumn",
    "Plan",
    "explain",
    "metrics",
    "plan_behind",
    "plan_of",
    "remember",
]

# Find the joins behind a frame in Spark's plan of it.
#
# Spark gives every column that an operator makes a number of its own, and operators behind it
# keep the number. So a join is known again by the number of its first column.

AnyPlan = TypeVar("AnyPlan")


class JoinsByColumn(Generic[AnyPlan]):
    """Plans of joins by the number of the first column of their answers.

    A plan is forgotten when nobody else holds it. Spark Connect does not show plans, so nothing is
    kept there, and nothing found.
    """

    def __init__(self) -> None:
        self._plans: WeakValueDictionary[str, AnyPlan] = WeakValueDictionary()

    def note(self, frame: DataFrame, plan: AnyPlan) -> None:
        """Remember that ``frame`` is the answer of ``plan``."""
        if not is_connect(frame):
            number = _first_column(analysed(frame))
            if number is not None:
                self._plans[number] = plan

    def behind(self, frame: DataFrame) -> list[AnyPlan]:
        """Return the plans of the joins that a frame is derived from, the last join first."""
        found: list[AnyPlan] = []
        if is_connect(frame):
            return found
        for node in _nodes(analysed(frame)):
            plan = self._plans.get(_first_column(node) or "")
            if plan is not None and all(plan is not other for other in found):
                found.append(plan)
        return found


def _nodes(node: Any) -> Iterator[Any]:
    """Yield a node of a plan and all below it, level by level."""
    level = [node]
    while level:
        yield from level
        level = [child for one in level for child in children(one)]


def _first_column(node: Any) -> str | None:
    """Return the number of the first column of a node; None if it has none that is resolved."""
    output = node.output()
    return str(output.apply(0).exprId()) if output.size() else None


# A join or an aggregation as a plan: everything checked and decided, nothing run.

_ATTRIBUTE = "_splitjoin_plan"


class Plan(ABC):
    """What is ready to run: a join or an aggregation."""

    schema: StructType
    explanation: Explanation | AggregateExplanation

    def explain(self, *, count: bool = False) -> Explanation | AggregateExplanation:
        """Print where it runs and why; return the same as a value.

        Parameters
        ----------
        count : bool
            Whether to read the order columns of a join, unless that has been done, for the number
            of rows and what follows from it.
        """
        explanation = self.estimated(count=count)
        print(explanation)
        return explanation

    def estimated(self, *, count: bool = False) -> Explanation | AggregateExplanation:
        """Return the explanation with the size of the inputs and the cost, where they are known."""
        return self.explanation

    def dataframe(self) -> DataFrame:
        """Return the answer as a frame; like every frame it is computed when it is used."""
        return self._frame_and_metrics[0]

    def metrics(self) -> JoinMetrics:
        """Return what the tasks have measured so far; complete once an action has ended."""
        return self._frame_and_metrics[1]()

    @cached_property
    def _frame_and_metrics(self) -> tuple[DataFrame, Callable[[], JoinMetrics]]:
        with kit_errors():
            frame, read = self._run()
        remember(frame, self)
        return frame, read

    @abstractmethod
    def _run(self) -> tuple[DataFrame, Callable[[], JoinMetrics]]:
        """Return the answer, and the function that reads what was measured."""


@dataclass(frozen=True, kw_only=True)
class JoinPlan(Plan):
    """A join that is ready to run; made by :func:`~spark_offload.plan_join`.

    Parameters
    ----------
    query : JoinQuery or AsofQuery
        What is joined.
    schema : StructType
        Columns of the answer.
    explanation : Explanation
        Where it runs and why.
    left, right : DataFrame
        The inputs.
    """

    query: JoinQuery | AsofQuery
    schema: StructType
    explanation: Explanation
    left: DataFrame
    right: DataFrame

    @property
    def device(self) -> str:
        """Address of the device or the devices, as explained."""
        return self.explanation.device

    @property
    def follows_time(self) -> bool:
        """Whether the partitions of the answer, one after another, are in the order of arrival."""
        return False

    @abstractmethod
    def own_answer(self, left: DataFrame, right: DataFrame) -> DataFrame:
        """Return the answer to the same question about two inputs by Spark itself, in no order.

        Raises
        ------
        UsageError
            If Spark cannot answer it.
        """


_JOINS: JoinsByColumn[Plan] = JoinsByColumn()
"""All joins and aggregations whose frames are there."""


def remember(frame: DataFrame, plan: Plan) -> None:
    """Let :func:`plan_of` find the plan of a frame.

    The frame itself holds the plan, so the two, which know each other, are freed together.
    """
    vars(frame)[_ATTRIBUTE] = plan
    _JOINS.note(frame, plan)


def plan_of(frame: DataFrame) -> Plan:
    """Return the plan of a frame that a function of this package returned."""
    # Not by getattr(): to a frame, the name of an attribute that it lacks is that of a column.
    plan = vars(frame).get(_ATTRIBUTE) if isinstance(frame, DataFrame) else None
    if not isinstance(plan, Plan):
        raise UsageError(
            "This is not a DataFrame that stream_join or asof_join returned; give that one, and "
            "none derived from it."
        )
    return plan


def plan_behind(frame: DataFrame) -> Plan:
    """Return the plan of the join or aggregation that a frame is, or that it is derived from.

    Raises
    ------
    UsageError
        If there is no such join, its frame is gone, or there are several.
    """
    if not isinstance(frame, DataFrame) or _ATTRIBUTE in vars(frame):
        return plan_of(frame)
    found = _JOINS.behind(frame)
    if len(found) == 1:
        return found[0]
    if found:
        raise UsageError(
            f"This DataFrame is derived from {len(found)} joins; give the frame that stream_join "
            f"or asof_join returned for one of them."
        )
    raise UsageError(
        "No join is behind this DataFrame, or the frame that stream_join or asof_join returned is "
        "gone; keep that frame in a variable, for its plan is kept with it. (Spark Connect does "
        "not show what a frame is derived from: give the frame of the join itself.)"
    )


def explain(frame: DataFrame, *, count: bool = False) -> Explanation | AggregateExplanation:
    """Print where what is behind ``frame`` runs and why; return the same as a value.

    Parameters
    ----------
    frame : DataFrame
        What :func:`~spark_offload.stream_join` or :func:`~spark_offload.asof_join` returned, or a
        frame derived from it.
    count : bool
        Whether to let Spark read the order columns of both inputs, for the number of rows and an
        estimate of the cycles, unless that has been done for the sake of the join. Of streams it
        has no meaning.
    """
    return plan_behind(frame).explain(count=count)


def metrics(frame: DataFrame) -> JoinMetrics:
    """Return what the tasks of the join behind ``frame`` have measured so far.

    ``frame`` is a join, or derived from one.
    """
    return plan_behind(frame).metrics()

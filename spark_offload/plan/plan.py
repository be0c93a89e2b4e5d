# SPDX-License-Identifier: Apache-2.0
"""A query that is checked, with the way in which it runs: a plan, and the plan of a frame."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, update_wrapper
import inspect
from typing import TYPE_CHECKING, Any, ParamSpec, TypeAlias

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from host import FailureError, Manifest, UsageError
from host.query.queries import AggregateQuery, AsofQuery, Query
from spark_offload.errors import kit_errors
from spark_offload.explanation.explanations import Explanation
from spark_offload.measures import JoinMetrics
from spark_offload.task.task import Answer
from spark_offload.verification.comparison import Verification, compare_keyed, compare_rows

if TYPE_CHECKING:
    from host.operators.operate import OperatorQuery

__all__ = [
    "Plan",
    "Strategy",
    "answer_of",
    "by_spark_itself",
    "explain",
    "metrics",
    "plan_of",
    "remember",
    "verify",
]

_ATTRIBUTE = "_splitjoin_plan"

_Words = ParamSpec("_Words")

Strategy: TypeAlias = Callable[..., Answer]
"""A way to the answer: takes the inputs of a plan, in their order."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Plan:
    """A query that is ready to run: a join or an aggregation, of batch frames or of streams.

    Parameters
    ----------
    query : Query, AsofQuery, AggregateQuery or OperatorQuery
        What is asked.
    inputs : tuple of DataFrame
        The left and the right rows of a join; the rows of an aggregation.
    schema : StructType
        Columns of the answer.
    explanation : Explanation
        Where it runs and why.
    strategy : Strategy
        How the inputs become the answer.
    own : callable
        How Spark by itself makes the same answer of the inputs, in no order, to verify it with.
    sized : callable, optional
        Returns the explanation with the size of the inputs and the cost; takes whether the order
        columns may be read for that.
    keys : int, optional
        So many columns of the answer tell its rows apart, and floats in the others are nearly
        equal in the same answers. Left out, rows of the same answers are equal.
    follows_time : bool
        Whether the partitions of the answer, one after another, are in the order of arrival.
    manifest : Manifest, optional
        What describes the accelerators of the tasks.
    """

    query: "Query | AsofQuery | AggregateQuery | OperatorQuery"
    inputs: tuple[DataFrame, ...]
    schema: StructType
    explanation: Explanation
    strategy: Strategy
    own: Callable[..., DataFrame]
    sized: Callable[[bool], Explanation] | None = None
    keys: int | None = None
    follows_time: bool = False
    manifest: Manifest | None = None

    @property
    def device(self) -> str:
        """Address of the device or the devices, as explained."""
        return self.explanation.device

    def explain(self, *, count: bool = False) -> Explanation:
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

    def estimated(self, *, count: bool = False) -> Explanation:
        """Return the explanation with the size of the inputs and the cost, where they are known."""
        return self.explanation if self.sized is None else self.sized(count)

    def dataframe(self) -> DataFrame:
        """Return the answer as a frame; like every frame it is computed when it is used."""
        return self._answer[0]

    def metrics(self) -> JoinMetrics:
        """Return what the tasks have measured so far; complete once an action has ended."""
        return self._answer[1]()

    def own_answer(self) -> DataFrame:
        """Return the answer by Spark itself, in no order."""
        return self.own(*self.inputs)

    def verify(
        self, *, share: float = 1.0, raises: bool = True, answer: DataFrame | None = None
    ) -> Verification:
        """Run the plan and Spark's own query, and compare; see :func:`verify`.

        Parameters
        ----------
        answer : DataFrame, optional
            The rows that are compared, such as those read from where they were written. Left out,
            those of this plan.
        """
        if not 0 < share <= 1:
            raise UsageError(f"share must be above 0 and at most 1, not {share!r}.")
        answer = self.dataframe() if answer is None else answer
        if self.keys is not None:
            found = compare_keyed(answer, self.own_answer(), self.keys, share)
        else:
            if not isinstance(self.query, (Query, AsofQuery)):
                self.own_answer()  # which says that there is none
            assert isinstance(self.query, (Query, AsofQuery)), "other rows have keys"
            found = compare_rows(answer, self.own, self.inputs, self.query.how, share)
        if raises and not found.agrees:
            raise FailureError(str(found))
        return found

    @cached_property
    def _answer(self) -> Answer:
        with kit_errors():
            frame, read = self.strategy(*self.inputs)
        remember(frame, self)
        return frame, read


def answer_of(
    plan: Callable[_Words, Plan],
) -> Callable[[Callable[[Plan], DataFrame]], Callable[_Words, DataFrame]]:
    """Return the decorator of a function of a plan, which then takes what ``plan`` takes."""

    def decorated(function: Callable[[Plan], DataFrame]) -> Callable[_Words, DataFrame]:
        def answer(*inputs: _Words.args, **words: _Words.kwargs) -> DataFrame:
            return function(plan(*inputs, **words))

        signature = inspect.signature(plan).replace(return_annotation=DataFrame)
        update_wrapper(answer, function).__dict__["__signature__"] = signature
        answer.__annotations__ = {**plan.__annotations__, "return": DataFrame}
        return answer

    return decorated


def by_spark_itself(
    own: Callable[..., DataFrame], read: Callable[[], JoinMetrics] = JoinMetrics
) -> Strategy:
    """Return the strategy of a plan whose answer Spark computes itself; no task measures that."""
    return lambda *inputs: (own(*inputs), read)


def remember(frame: DataFrame, plan: Plan) -> None:
    """Let :func:`plan_of` find the plan of a frame.

    The frame itself holds the plan, so the two, which know each other, are freed together.
    """
    vars(frame)[_ATTRIBUTE] = plan


def plan_of(frame: Any) -> Plan:
    """Return the plan of a frame that a function of this package returned."""
    # Not by getattr(): to a frame, the name of an attribute that it lacks is that of a column.
    plan = vars(frame).get(_ATTRIBUTE) if isinstance(frame, DataFrame) else None
    if not isinstance(plan, Plan):
        raise UsageError(
            "This is not a DataFrame that stream_join or asof_join returned; give that one, and "
            "none derived from it."
        )
    return plan


def explain(frame: DataFrame, *, count: bool = False) -> Explanation:
    """Print the explanation of the query behind ``frame``: where it runs and why; return it too.

    Parameters
    ----------
    frame : DataFrame
        What :func:`~spark_offload.stream_join` or another function of this package returned.
    count : bool
        Whether to let Spark read the order columns of both inputs, for the number of rows and an
        estimate of the cycles, unless that has been done for the sake of the join. Of streams it
        has no meaning.
    """
    return plan_of(frame).explain(count=count)


def metrics(frame: DataFrame) -> JoinMetrics:
    """Return the metrics of the tasks behind ``frame``, which a function of this package returned.

    It is complete once an action has ended.
    """
    return plan_of(frame).metrics()


def verify(frame: DataFrame, *, share: float = 1.0, raises: bool = True) -> Verification:
    """Verify the answer of ``frame``, row by row, against Spark's own query of the same rows.

    Parameters
    ----------
    frame : DataFrame
        The join of batch frames, over a time-based window, or the aggregation. That of a stream is
        run over the data that its sources hold now, as Spark's own is: from their beginning, in
        micro-batches that the options of the sources cut.
    share : float
        Share of the left rows whose results are compared: above 0, up to 1. Which rows depends on
        their values only. In a right outer join it is a share of the right rows, and a full outer
        join is compared as a whole.
    raises : bool
        Whether a difference is an error.

    Returns
    -------
    Verification
        How many pairs were compared, and how many differ.

    Raises
    ------
    UsageError
        If the frame is no such join, its window is count-based, or a share of a full outer join is
        asked for.
    FailureError
        If the answers differ, or Spark fails; an error inside a task is raised as itself.
    """
    return plan_of(frame).verify(share=share, raises=raises, answer=frame)

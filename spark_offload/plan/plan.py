# SPDX-License-Identifier: Apache-2.0
"""A query that is checked, with how it runs: options, a plan, and the plan of a frame."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from difflib import get_close_matches
from functools import cached_property, update_wrapper
import inspect
from typing import TYPE_CHECKING, Any, ParamSpec, TypeAlias

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from host import FailureError, Manifest, Ordering, UsageError
from host.query.cores import Controller
from host.query.queries import AggregateQuery, AsofQuery, OnFailure, Query
from host.query.words import RENAMED, Sortedness
from spark_offload.cluster.machines import Devices
from spark_offload.errors import kit_errors
from spark_offload.explanation import Explanation
from spark_offload.measures import JoinMetrics
from spark_offload.partitioning.placement import PartitionBy
from spark_offload.task.task import Answer
from spark_offload.verification.comparison import Verification, compare_keyed, compare_rows

if TYPE_CHECKING:
    from host.operators.operate import OperatorQuery


__all__ = [
    "NOT_ONCE",
    "Options",
    "Plan",
    "Strategy",
    "answer_of",
    "explain",
    "metrics",
    "plan_of",
    "verify",
]

# How a query of Spark runs, and the rare words of what it asks.

NOT_ONCE = (
    "pairs='once' goes by the numbers of rows, which Spark does not keep; compare a column that is "
    "unique instead: where='l.id < r.id'."
)
"""Why Spark does not give every two rows once."""

#: The options that belong to what a join asks.
ASKED = ("suffix", "per_window", "sorted", "ordering", "on_failure", "elastic")


@dataclass(frozen=True, kw_only=True)
class Options:
    """Options of the public functions, which take them as keywords.

    Parameters
    ----------
    suffix : str
        Appended to the name of a right column that the left input has too.
    per_window : bool
        With ``advance``, whether a pair comes once for each window that has both of its rows, with
        the columns ``window_start`` and ``window_end`` behind those of the rows; else once.
    sorted : bool or "partitions"
        Declares both inputs sorted by their time columns: a row that goes back in time becomes an
        error. ``"partitions"`` declares each partition of an input sorted by itself: partitions are
        sources of their own, and are merged. Otherwise rows are sorted, silently.
    ordering : Ordering, optional
        Other orders of the results of each partition than by arrival, or a precision that adapts
        itself to a required rate; ``docs/ordering.md`` says what each promises.
    on_failure : str
        What a task does when a core of its accelerator fails: ``"raise"``, ``"report"`` (it goes
        on, and :func:`metrics` says which tuples are missing) or ``"replay"`` (nothing is missing);
        see ``docs/failures.md``. Of streams, only ``"raise"``.
    elastic : Controller or bool
        What chooses how many cores of its accelerator a task uses; True stands for
        :class:`host.ThresholdController`. The answer stays the same; :func:`metrics` says what was
        decided, see ``docs/elastic.md``. Not for streams.
    device : str or list of str, optional
        ``"software:"`` is the software engine, ``"sim:"`` the simulated accelerator that suits the
        query, whose bundle is built when it is first needed, ``"sim:BUNDLE"`` that of a bundle.
        A list is a pool: every task gets one of its devices to itself. ``"resource:NAME"`` are
        devices that Spark assigns to tasks. Left out, what the session's
        ``spark.splitjoin.device``, the variable ``SPLITJOIN_DEVICE`` or Spark's resource
        ``splitjoin`` names, else the software engine. See ``docs/spark-cluster.md``.
    partitions : int, optional
        Number of partitions, each joined by a task with a device of its own. Left out, one for each
        core that Spark has, or fewer if more do not pay; :func:`explain` says why. Of streams, the
        number of groups that have a window of their own in the state; left out, one for each
        partition of the state, which a query that is started again keeps.
    partition_by : "files", "key" or "range", optional
        What the rows are partitioned by: the equal columns, which takes a time-based window, or
        ranges of the time columns, with the rows that the window holds at the start of a range
        sent along. ``"files"`` are such ranges, read by the tasks from Parquet files. Left out,
        these where possible, else the equal columns. See ``docs/spark-batch.md``.
    strict : bool
        Whether it is an error that the accelerator cannot serve. Otherwise the software engine
        joins then, and :func:`explain` and the log say so and why. A window that turns out to
        outgrow the device while rows arrive is then an error too, which says how many rows it
        needs; otherwise the task goes on in software from that row on, and :func:`metrics` and the
        log say so.
    build : bool
        Whether a larger simulated accelerator is built, for device ``"sim:"``, where the default
        one is too small for the window or has too few key fields, and none that serves is here, or
        one that decides ``where`` if nothing else bounds the pairs on both sides. The rows of a
        time-based window are counted for that, in a job of Spark.
    trace : bool
        Whether the device stamps every tuple and result with its clock cycle, which the plan's
        metrics then tell the latency from.
    progress : str, optional
        Folder of :func:`spark_offload.cluster.session.show_progress`.
    """

    suffix: str = "_right"
    per_window: bool = False
    sorted: Sortedness = False
    ordering: Ordering | None = None
    on_failure: str | OnFailure = OnFailure.RAISE
    elastic: Controller | bool | None = None
    device: Devices = None
    partitions: int | None = None
    partition_by: PartitionBy = None
    strict: bool = False
    build: bool = False
    trace: bool = False
    progress: str | None = None

    @classmethod
    def of(cls, function: str, given: Mapping[str, Any], *names: str) -> "Options":
        """Return the options that a function was given as keywords.

        Parameters
        ----------
        function : str
            Its name, for messages.
        given : mapping
            The keywords.
        names : str
            The options that it takes; by default, all.

        Raises
        ------
        UsageError
            If a keyword is none of its options; of a word of before, the error says ours.
        """
        taken = names or tuple(field.name for field in fields(cls))
        for word in given:
            if word in taken:
                continue
            if word == "pairs":
                raise UsageError(NOT_ONCE)
            if word in RENAMED:
                raise UsageError(RENAMED[word].message(word))
            close = get_close_matches(word, taken, 1)
            advice = f"write {close[0]}" if close else f"its options are {', '.join(taken)}"
            raise UsageError(f"{function} has no argument {word}; {advice}.")
        return cls(**given)

    def asked(self) -> dict[str, Any]:
        """Return the words of a :class:`~host.query.queries.Query` among them."""
        return {name: getattr(self, name) for name in ASKED}


# A query that is checked, with the way in which it runs: a plan, and the plan of a frame.

_ATTRIBUTE = "_splitjoin_plan"

_Words = ParamSpec("_Words")

Strategy: TypeAlias = Callable[["Plan"], Answer]
"""A way to the answer of a plan."""


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
        How the plan becomes the answer.
    own : callable
        How Spark by itself makes the same answer of the inputs, in no order, to verify it with.
    sized : callable, optional
        Returns the explanation with the size of the inputs and the cost; takes the plan, and
        whether the order columns may be read for that.
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
    sized: Callable[["Plan", bool], Explanation] | None = None
    keys: int | None = None
    follows_time: bool = False
    manifest: Manifest | None = None

    @property
    def name(self) -> str:
        """What the query is called in Spark's plan."""
        return self.explanation.name

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
        return self.explanation if self.sized is None else self.sized(self, count)

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
            frame, read = self.strategy(self)
        # The frame itself holds the plan, so the two, which know each other, are freed together.
        vars(frame)[_ATTRIBUTE] = self
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

# SPDX-License-Identifier: Apache-2.0
"""The functions that a PySpark program calls."""

from collections.abc import Sequence
from typing import TypeAlias

from pyspark.sql import Column, DataFrame

from host import JoinError, Ordering, UsageError
from host.query.cores import Controller
from host.query.queries import JoinQuery, OnFailure
from host.reference.types import JoinType
from spark_offload.conditions.terms import split_conditions, terms_of
from spark_offload.devices.sources import Devices
from spark_offload.failures.translation import kit_errors
from spark_offload.planning.accelerator import QueryCheck, check_query
from spark_offload.planning.batch_plan import make_plan
from spark_offload.planning.fallback import can_fall_back, own_join_plan
from spark_offload.planning.placement import PartitionBy
from spark_offload.planning.plan import JoinPlan
from spark_offload.planning.request import Bands, Equalities, Sortedness, Within, build_query
from spark_offload.streaming.checks import is_streaming
from spark_offload.streaming.plan import make_stream_plan

__all__ = ["plan_join", "plan_query", "stream_join"]

EqualitiesOrCondition: TypeAlias = "Equalities | Column | Sequence[Column]"
BandsOrCondition: TypeAlias = "Bands | Column | Sequence[Column]"


def stream_join(
    left: DataFrame,
    right: DataFrame,
    *,
    on: EqualitiesOrCondition = None,
    band: BandsOrCondition = None,
    order: str | tuple[str, str],
    within: Within = None,
    rows: int | None = None,
    how: str | JoinType = "inner",
    device: Devices = None,
    suffix: str = "_right",
    sorted: Sortedness = False,
    ordering: Ordering | None = None,
    on_failure: str | OnFailure = OnFailure.RAISE,
    elastic: Controller | bool | None = None,
    partitions: int | None = None,
    partition_by: PartitionBy = None,
    strict: bool = False,
    build: bool = False,
) -> DataFrame:
    """Join two batch frames, or two streaming ones, over a sliding window, on an accelerator.

    Rows of both inputs arrive by their order columns; on a tie left before right, then in input
    order. Each row is paired with the rows of the other side that are in the window at that moment
    and fulfil every term. The answer has the left columns, then the right ones, and in each of its
    partitions the pairs stand in the order in which their later row arrived. Partitions by ranges
    of time follow one another in time, so collecting them gives that order over all pairs.

    By ``how`` rows come alone, once each, besides the pairs or instead of them. A row is matched if
    it is in a pair of the inner join. Outer joins have every row of their side that is not
    matched, with nulls for the other side; a semi join has every left row that is matched, an anti
    join every other one, both with the left columns only. A row that comes alone stands where it
    leaves the window: before the pairs of the row that pushes it out, or at the end.

    No job of Spark runs before an action, with two exceptions: ``build`` counts the rows of
    time-based windows, and ranges of time for a count-based window take the ranks of rows, for
    which the order columns are read.

    Nulls in compared columns match nothing, as in SQL, so outer and anti joins keep such rows. A
    null in an order column is an error.

    Two streaming frames need watermarks on their order columns, and a time-based window. All
    micro-batches together are the answer to the batch join of the rows that were not late, of the
    rows that come alone those whose window the watermark has passed; see
    ``docs/spark-streaming.md``.

    What goes wrong when the answer is computed makes an action such as ``count()`` fail, with an
    exception of PySpark: :func:`~spark_offload.task_error` finds the sentence worth reading in it.

    Parameters
    ----------
    left, right : DataFrame
        Both batch frames or both streaming ones.
    on : str, Column or list, optional
        Columns that must be equal: a name, or a list of names and (left, right) pairs. Or a
        condition, as Spark's own join takes it: comparisons of a left column with a right one,
        joined by ``&``, such as ``(l.symbol == r.symbol) & (l.price - r.price).between(-10, 10)``.
    band : mapping, Column or list, optional
        ``{("l", "r"): (low, high)}`` or ``[("l", "r", low, high)]`` for
        ``low <= l - r <= high``. None is an open bound. Temporal columns take
        :class:`datetime.timedelta` or text such as ``"-30min"``.
    order : str or (str, str)
        Columns, left and right, by which rows arrive: integers, dates or timestamps.
    within : int, timedelta, str or (low, high), optional
        Time-based window: pairs whose order columns differ by at most this, which is a whole
        number, a duration such as ``"5s"`` or an interval as SQL writes it. Of a pair,
        ``low <= left - right <= high``: with ``("-5s", "0s")`` the right row is up to five seconds
        later.
    rows : int, optional
        Count-based window: the last so many rows of the other side, over all its rows. Exactly one
        of ``within`` and ``rows`` is given.
    how : str
        ``"inner"``, ``"left"``, ``"right"``, ``"full"``, ``"left_semi"`` or ``"left_anti"``, in any
        spelling that Spark takes. Of streams, a row comes alone when the watermark has passed its
        window.
    device : str or list of str, optional
        ``"sim:BUNDLE"``, ``"software:"`` and so on; left out, the default simulated accelerator,
        which is built when it is first needed. A list is a pool: every task gets one of its devices
        to itself. ``"resource:NAME"`` are devices that Spark assigns to tasks. See
        ``docs/spark-cluster.md``.
    suffix : str
        Appended to the name of a right column that the left input has too.
    sorted : bool or "partitions"
        Declares both inputs sorted by their order columns: a row that goes back in time becomes an
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
        :class:`host.ThresholdController`. Of streams, how many devices of the pool the tasks of a
        micro-batch use. The answer stays the same; :func:`metrics` and :func:`stream_metrics` say
        what was decided, see ``docs/elastic.md``.
    partitions : int, optional
        Number of partitions, each joined by a task with a device of its own. Left out, one for each
        core that Spark has, or fewer if more do not pay; :func:`explain` says why. Of streams, the
        number of groups that have a window of their own in the state; left out, one for each
        partition of the state, which a query that is started again keeps.
    partition_by : "key" or "range", optional
        What the rows are partitioned by: the equal columns, which takes a time-based window, or
        ranges of the order columns, with the rows that the window holds at the start of a range
        sent along. Left out, the equal columns where possible.
    strict : bool
        Whether it is an error that the accelerator cannot serve. Otherwise a join over a time-based
        window is done by Spark itself then, by the same rules; :func:`explain` and the log say so
        and why. A window that turns out to outgrow the device while rows arrive is then an error
        too, which says how many rows it needs; otherwise the task goes on in software from that
        row on, and :func:`metrics` and the log say so.
    build : bool
        Whether a larger simulated accelerator is built, with no device named, where the default one
        is too small for the window or has too few key fields, and none that serves is here. The
        rows of a time-based window are counted for that, in a job of Spark.

    Returns
    -------
    DataFrame
        The answer. :func:`explain` tells where it comes from.

    Raises
    ------
    UsageError
        If an argument, a column, a type or the device will not do; before anything runs.
    """
    return plan_join(
        left,
        right,
        on=on,
        band=band,
        order=order,
        within=within,
        rows=rows,
        how=how,
        device=device,
        suffix=suffix,
        sorted=sorted,
        ordering=ordering,
        on_failure=on_failure,
        elastic=elastic,
        partitions=partitions,
        partition_by=partition_by,
        strict=strict,
        build=build,
    ).dataframe()


def plan_join(
    left: DataFrame,
    right: DataFrame,
    *,
    on: EqualitiesOrCondition = None,
    band: BandsOrCondition = None,
    order: str | tuple[str, str],
    within: Within = None,
    rows: int | None = None,
    how: str | JoinType = "inner",
    device: Devices = None,
    suffix: str = "_right",
    sorted: Sortedness = False,
    ordering: Ordering | None = None,
    on_failure: str | OnFailure = OnFailure.RAISE,
    elastic: Controller | bool | None = None,
    partitions: int | None = None,
    partition_by: PartitionBy = None,
    strict: bool = False,
    build: bool = False,
    trace: bool = False,
    progress: str | None = None,
    check: QueryCheck = check_query,
) -> JoinPlan:
    """Check a join and decide where it runs, without running it.

    Takes what :func:`stream_join` takes, and besides:

    Parameters
    ----------
    trace : bool
        Whether the device stamps every tuple and result with its clock cycle, which the plan's
        metrics then tell the latency from.
    progress : str, optional
        Folder of :func:`spark_offload.session.progress.show_progress`.
    check : callable
        Whether an accelerator can serve the query, of batch frames; by default, whether it sends
        the pairs.
    """
    equal, conditions = split_conditions(on, "on")
    bounded, others = split_conditions(band, "band")
    terms = [
        term
        for argument, column in (*conditions, *others)
        for term in terms_of(left, right, column, argument)
    ]
    query = build_query(
        on=equal,
        band=bounded,
        terms=terms,
        order=order,
        within=within,
        rows=rows,
        sorted=sorted,
        suffix=suffix,
        ordering=ordering,
        on_failure=on_failure,
        elastic=elastic,
        how=how,
    )
    return plan_query(
        left,
        right,
        query,
        device=device,
        partitions=partitions,
        partition_by=partition_by,
        strict=strict,
        build=build,
        trace=trace,
        progress=progress,
        check=check,
    )


def plan_query(
    left: DataFrame,
    right: DataFrame,
    query: JoinQuery,
    *,
    device: Devices = None,
    partitions: int | None = None,
    partition_by: PartitionBy = None,
    strict: bool = False,
    build: bool = False,
    trace: bool = False,
    progress: str | None = None,
    check: QueryCheck = check_query,
) -> JoinPlan:
    """Check a join that is given as a query, as a command gives it; see :func:`plan_join`."""
    if is_streaming(left) or is_streaming(right):
        if partition_by is not None:
            raise UsageError("partition_by is for batch frames; a stream is grouped by its keys.")
        return make_stream_plan(
            left,
            right,
            query,
            device=device,
            partitions=partitions,
            trace=trace,
            progress=progress,
            build=build,
            strict=strict,
        )
    try:
        with kit_errors():
            return make_plan(
                left,
                right,
                query,
                device=device,
                partitions=partitions,
                partition_by=partition_by,
                trace=trace,
                progress=progress,
                build=build,
                strict=strict,
                check=check,
            )
    except JoinError as error:
        if strict or not can_fall_back(error, query):
            raise
        return own_join_plan(
            left,
            right,
            query,
            error,
            device=device,
            partitions=partitions,
            partition_by=partition_by,
            check=check,
        )

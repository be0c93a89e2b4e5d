# SPDX-License-Identifier: Apache-2.0
"""Joins over windows, of intervals that overlap, and of closest rows."""

from collections.abc import Sequence
from typing import Any, TypeAlias

from pyspark.sql import Column, DataFrame

from host import JoinError, Ordering, UsageError
from host.operators.overlap import overlap_terms
from host.query.cores import Controller
from host.query.queries import JoinQuery, OnFailure
from host.reference.asof import Direction
from host.reference.types import JoinType
from spark_offload.cluster.devices import Devices
from spark_offload.errors import kit_errors
from spark_offload.partitioning.columns import arrow_schema, check_frame
from spark_offload.partitioning.placement import PartitionBy
from spark_offload.plan.accelerator import QueryCheck, check_query
from spark_offload.plan.asof import make_asof_plan
from spark_offload.plan.conditions import split_conditions, terms_of
from spark_offload.plan.inputs import checked_intervals, longest_of
from spark_offload.plan.join import can_fall_back, make_plan, own_join_plan
from spark_offload.plan.plan import Plan
from spark_offload.plan.request import (
    Bands,
    Equalities,
    Length,
    OnColumns,
    Sortedness,
    Within,
    as_length,
    build_asof_query,
    build_query,
    column_pair,
)
from spark_offload.stream.checks import is_streaming
from spark_offload.stream.plans import make_asof_stream_plan, make_stream_plan

__all__ = [
    "asof_join",
    "overlap_join",
    "plan_asof_join",
    "plan_join",
    "plan_query",
    "stream_join",
]

# The functions that a PySpark program calls.

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
) -> Plan:
    """Check a join and decide where it runs, without running it.

    Takes what :func:`stream_join` takes, and besides:

    Parameters
    ----------
    trace : bool
        Whether the device stamps every tuple and result with its clock cycle, which the plan's
        metrics then tell the latency from.
    progress : str, optional
        Folder of :func:`spark_offload.cluster.session.show_progress`.
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
) -> Plan:
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


# The function that joins intervals that overlap, which a PySpark program calls.


def overlap_join(
    left: DataFrame,
    right: DataFrame,
    *,
    left_interval: tuple[str, str],
    right_interval: tuple[str, str] | None = None,
    on: EqualitiesOrCondition = None,
    longest: Length = None,
    touching: bool = True,
    **options: Any,
) -> DataFrame:
    """Join the rows of two frames whose intervals overlap, on an accelerator.

    That is a join by two bounded differences: each interval starts before the other one ends. Rows
    arrive by their starts, so the window is as wide as the longest interval, which bounds what the
    device and, of streams, the state have to hold.

    Parameters
    ----------
    left, right : DataFrame
        Both batch frames or both streaming ones.
    left_interval, right_interval : (str, str)
        Columns with the start and the end, inclusive; the right ones may be called like the left
        ones. An interval that ends before it starts is an error, one without an end overlaps
        nothing.
    on : str, Column or list, optional
        Columns that must be equal, as for :func:`stream_join`.
    longest : int, timedelta or str, optional
        Length of the longest interval; a longer one is an error. Left out, Spark reads both inputs
        for it, once, when this function is called. Streams need it.
    touching : bool
        Whether intervals of which one ends where the other one starts overlap.
    options
        Further arguments of :func:`stream_join`, except ``order``, ``within``, ``rows`` and
        ``band``.

    Returns
    -------
    DataFrame
        The answer of :func:`stream_join`, which the same functions explain, measure and verify.

    Raises
    ------
    UsageError
        If an argument, a column, a type or the device will not do; before anything runs.
    """
    ours = column_pair(left_interval, "left_interval")
    theirs = ours if right_interval is None else column_pair(right_interval, "right_interval")
    taken = sorted({"order", "within", "rows", "band"} & options.keys())
    if taken:
        raise UsageError(f"An overlap join has no {taken[0]}: the intervals say it; leave it out.")
    for frame, side in ((left, "left"), (right, "right")):
        check_frame(frame, side)
    schemas = arrow_schema(left.schema, "left"), arrow_schema(right.schema, "right")
    terms = overlap_terms(schemas, ours, theirs, touching=touching)
    if longest is None and (is_streaming(left) or is_streaming(right)):
        raise UsageError(
            "An overlap join of streams needs longest=…, the length of the longest interval: rows "
            "are kept for so long."
        )
    with kit_errors():
        length = (
            longest_of((left, right), (ours, theirs))
            if longest is None
            else as_length(longest, "longest")
        )
        rows = [
            checked_intervals(frame, names, length, side)
            for frame, names, side in ((left, ours, "left"), (right, theirs, "right"))
        ]
    return stream_join(
        *rows,
        on=on,
        band=[(term.left, term.right, term.low, term.high) for term in terms],
        order=(ours[0], theirs[0]),
        within=length,
        **options,
    )


# The functions of as-of joins that a PySpark program calls.


def asof_join(
    left: DataFrame,
    right: DataFrame,
    *,
    on: OnColumns,
    by: Equalities = None,
    direction: str | Direction = Direction.BACKWARD,
    tolerance: Length = None,
    allow_exact_matches: bool = True,
    how: str | JoinType = JoinType.LEFT,
    suffix: str = "_right",
    sorted: bool = False,
    partitions: int | None = None,
    strict: bool = False,
) -> DataFrame:
    """Join each row of a frame with the row of another that is closest to it in time.

    The meaning is that of pandas' ``merge_asof``; ``docs/asof.md`` says where it differs. The
    answer has the left columns, then the right ones. In each of its partitions the rows stand in
    the order of the left times. Nothing is read before an action.

    Two streaming frames need watermarks on their columns of time, and a tolerance unless the
    direction is backward. A left row comes when the watermark has passed every right row that could
    be closer. All micro-batches together are the answer to the batch join of the rows that were not
    late.

    Parameters
    ----------
    left, right : DataFrame
        Both batch frames or both streaming ones.
    on : str or (str, str)
        Columns of time, left and right: integers, dates or timestamps. A null is an error. Spark
        itself answers for floating-point numbers and decimals; :func:`explain` says so.
    by : str or list, optional
        Columns that must be equal: a name, or a list of names and (left, right) pairs. A null
        equals nothing. Without any, one task joins all rows.
    direction : str
        ``"backward"``: the last right row whose time is not later. ``"forward"``: the first one
        whose time is not earlier. ``"nearest"``: the closer one of these two, the earlier one if
        both are equally close.
    tolerance : int, timedelta or str, optional
        Largest distance in time: ``"5s"`` for temporal columns, a whole number for others.
    allow_exact_matches : bool
        Whether a right row with the same time counts.
    how : str
        ``"left"``: every left row is in the answer, with nulls if no right row is found.
        ``"inner"``: only the left rows for which one is found.
    suffix : str
        Appended to the name of a right column that the left input has too.
    sorted : bool
        Declares both inputs sorted by time: a row that goes back in time becomes an error.
        Otherwise rows are sorted, silently.
    partitions : int, optional
        Number of partitions, if there are equal columns. Left out, one for each core; of streams,
        the number of groups that are kept apart in the state, one for each of its partitions.
    strict : bool
        Whether it is an error that Spark itself would have to answer.

    Returns
    -------
    DataFrame
        The answer. :func:`explain`, :func:`metrics` and :func:`verify` take it.

    Raises
    ------
    UsageError
        If an argument, a column or a type will not do; before anything runs.
    """
    return plan_asof_join(
        left,
        right,
        on=on,
        by=by,
        direction=direction,
        tolerance=tolerance,
        allow_exact_matches=allow_exact_matches,
        how=how,
        suffix=suffix,
        sorted=sorted,
        partitions=partitions,
        strict=strict,
    ).dataframe()


def plan_asof_join(
    left: DataFrame,
    right: DataFrame,
    *,
    on: OnColumns,
    by: Equalities = None,
    direction: str | Direction = Direction.BACKWARD,
    tolerance: Length = None,
    allow_exact_matches: bool = True,
    how: str | JoinType = JoinType.LEFT,
    suffix: str = "_right",
    sorted: bool = False,
    partitions: int | None = None,
    strict: bool = False,
) -> Plan:
    """Check an as-of join and decide where it runs, without running it.

    Takes what :func:`asof_join` takes.
    """
    query = build_asof_query(
        on=on,
        by=by,
        direction=direction,
        tolerance=tolerance,
        allow_exact_matches=allow_exact_matches,
        how=how,
        sorted=sorted,
        suffix=suffix,
    )
    with kit_errors():
        if is_streaming(left) or is_streaming(right):
            return make_asof_stream_plan(left, right, query, partitions=partitions)
        return make_asof_plan(left, right, query, partitions=partitions, strict=strict)

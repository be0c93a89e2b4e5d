# SPDX-License-Identifier: Apache-2.0
"""The functions that a PySpark program calls: joins, aggregates, operators of one's own."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from host import UsageError
from host.operators.many import EARLIEST, LATEST, ManyQuery
from host.operators.overlap import overlap_terms
from host.query.conditions import Where
from host.query.queries import Aggregate, AggregateQuery, Aggregates, AsofQuery, Bands, Query
from host.query.words import Columns, Equalities, Length, Within, as_span, column_pair, takes_words
from host.reference.types import Direction, JoinType
from spark_offload.errors import kit_errors
from spark_offload.partitioning.columns import (
    arrow_schema,
    check_batch_frame,
    check_frame,
    is_streaming,
    quoted,
)
from spark_offload.plan.accelerator import QueryCheck, check_query
from spark_offload.plan.aggregate import make_aggregate_plan
from spark_offload.plan.asof import make_asof_plan
from spark_offload.plan.join import Intervals, longest_of, make_plan
from spark_offload.plan.matches import make_matches_plan
from spark_offload.plan.plan import NOT_ONCE, Options, Plan, answer_of

if TYPE_CHECKING:
    from host.operators.windowed import WindowedOperator


__all__ = [
    "asof_join",
    "join_aggregate",
    "join_many",
    "operate",
    "overlap_join",
    "plan_aggregate",
    "plan_asof_join",
    "plan_join",
    "plan_join_aggregate",
    "plan_operate",
    "plan_query",
    "stream_aggregate",
    "stream_join",
]

# The functions that a PySpark program calls.


@takes_words
def plan_join(
    left: DataFrame,
    right: DataFrame,
    *,
    time: Columns,
    on: Equalities = None,
    band: Bands = None,
    where: Where | None = None,
    within: Within | None = None,
    advance: Length | None = None,
    rows: int | None = None,
    how: str | JoinType = "inner",
    **options: Any,
) -> Plan:
    """Check a join and decide where it runs, without running it.

    Takes what :func:`stream_join` takes, with all fields of :class:`~spark_offload.Options`.
    """
    words = {
        "time": time, "on": on, "band": band, "where": where, "within": within, "advance": advance,
        "rows": rows, "how": how,
    }  # fmt: skip
    return plan_words(left, right, words, Options.of("stream_join", options))


@answer_of(plan_join)
def stream_join(plan: Plan) -> DataFrame:
    """Join two batch frames, or two streaming ones, over a sliding window, on an accelerator.

    Rows of both inputs arrive by their time columns; on a tie left before right, then in input
    order. Each row is paired with the rows of the other side that are in the window at that moment
    and fulfil every term. The answer has the left columns, then the right ones, and in each of its
    partitions the pairs stand in the order in which their later row arrived. Partitions by ranges
    of time follow one another in time, so collecting them gives that order over all pairs.

    By ``how`` rows come alone, once each, besides the pairs or instead of them. A row is matched if
    it is in a pair of the inner join. Outer joins have every row of their side that is not
    matched, with nulls for the other side; a semi join has every left row that is matched, an anti
    join every other one, both with the left columns only. A one-sided row stands where it
    leaves the window: before the pairs of the row that pushes it out, or at the end.

    No job of Spark runs before an action, with two exceptions: ``build`` counts the rows of
    time-based windows, and ranges of time for a count-based window take the ranks of rows, for
    which the time columns are read.

    Nulls in compared columns match nothing, as in SQL, so outer and anti joins keep such rows. A
    null in a time column is an error.

    Two streaming frames need watermarks on their time columns, and a time-based window. All
    micro-batches together are the answer to the batch join of the rows that were not late, of the
    one-sided rows those whose window the watermark has passed; see
    ``docs/spark-streaming.md``.

    What goes wrong when the answer is computed makes an action such as ``count()`` fail, with an
    exception of PySpark: :func:`~spark_offload.task_error` finds the sentence worth reading in it.

    Parameters
    ----------
    left, right : DataFrame
        Both batch frames or both streaming ones.
    time : str or (str, str)
        Columns, left and right, by which rows arrive: integers, dates or timestamps.
    on : str or list, optional
        Columns that must be equal: a name, or a list of names and (left, right) pairs.
    band : mapping or list, optional
        ``{("l", "r"): (low, high)}`` or ``[("l", "r", low, high)]`` for
        ``low <= l - r <= high``. None is an open bound. Temporal columns take
        :class:`datetime.timedelta` or text such as ``"-30min"``.
    where : str or callable, optional
        Any other condition on a left row ``l`` and a right row ``r``: a text such as
        ``"abs(l.x - r.x) <= 3 and l.city != r.city"``, or a function of the two rows that joins
        comparisons with ``&``, ``|`` and ``~``. Its equalities and bands find candidates; the rest
        is found out from their rows.
    within : int, timedelta, str or (low, high), optional
        Time-based window: pairs whose times differ by at most this, which is a whole
        number, a duration such as ``"5s"`` or an interval as SQL writes it. Of a pair,
        ``low <= left - right <= high``: with ``("-5s", "0s")`` the right row is up to five seconds
        later.
    advance : int, timedelta or str, optional
        Windows in common, as those of an aggregation: a pair is wanted if one of the windows
        ``[n * advance, n * advance + within)`` has both of its rows. With the option
        ``per_window=True`` it comes once for each such window, with its boundaries.
    rows : int, optional
        Count-based window: the last so many rows of the other side, over all its rows. Exactly one
        of ``within`` and ``rows`` is given.
    how : str
        ``"inner"``, ``"left"``, ``"right"``, ``"full"``, ``"left_semi"`` or ``"left_anti"``, in any
        spelling that Spark takes. Of streams, a row comes alone when the watermark has passed its
        window.
    options
        How the join runs, and rarer words of what it asks, such as ``device``, ``partitions``,
        ``ordering`` or ``strict``: the fields of :class:`~spark_offload.Options`, but for ``trace``
        and ``progress``.

    Returns
    -------
    DataFrame
        The answer. :func:`explain` tells where it comes from.

    Raises
    ------
    UsageError
        If an argument, a column, a type or the device will not do; before anything runs.
    """
    return plan.dataframe()


def plan_words(
    left: DataFrame,
    right: DataFrame,
    words: Mapping[str, Any],
    options: Options,
    check: QueryCheck = check_query,
    intervals: Intervals | None = None,
) -> Plan:
    """Check a join that is asked for in words, which may have conditions of Spark; see above.

    Parameters
    ----------
    left, right : DataFrame
        The inputs.
    words : mapping
        ``time``, ``on``, ``band``, ``where``, ``within``, ``advance``, ``rows`` and ``how``, as
        :func:`stream_join` takes them.
    options : Options
        How it runs, and the other words.
    check, intervals
        As for :func:`plan_query`.
    """
    for name in ("on", "band", "where"):
        _refuse_conditions(words[name], name)
    query = Query(**words, **options.asked())
    return plan_query(left, right, query, options, check=check, intervals=intervals)


def _refuse_conditions(given: object, argument: str) -> None:
    """Raise if a condition is given as a Column: what it says, only Spark's compiler can tell."""
    for entry in given if isinstance(given, (list, tuple)) else (given,):
        if isinstance(entry, Column):
            raise UsageError(
                f"{argument} takes names of columns, not {entry}; write a condition such as "
                f"(l.k == r.k) & (l.x - r.y).between(-1, 1) as on='k', "
                f"band={{('x', 'y'): (-1, 1)}}, and any other as a text: where='l.a != r.b'."
            )


def plan_query(
    left: DataFrame,
    right: DataFrame,
    query: Query,
    options: Options,
    *,
    check: QueryCheck = check_query,
    intervals: Intervals | None = None,
) -> Plan:
    """Check a join that is given as a query, as a command gives it; see :func:`plan_join`.

    Parameters
    ----------
    left, right : DataFrame
        The inputs.
    query : Query
        What is asked; words of it among the options do not matter.
    options : Options
        How it runs.
    check : callable
        Whether an accelerator can serve the query, of batch frames; by default, whether it sends
        the pairs.
    intervals : Intervals, optional
        What is required of the intervals of an overlap join.
    """
    if query.once:
        raise UsageError(NOT_ONCE)
    if is_streaming(left) or is_streaming(right):
        from spark_offload.stream.plans import make_stream_plan

        if intervals is not None:
            left, right = intervals.checked(left, right)
        return make_stream_plan(left, right, query, options)
    with kit_errors():
        return make_plan(left, right, query, options, check, intervals)


# The function that joins several inputs, which a PySpark program calls.


def join_many(
    inputs: Mapping[str, DataFrame],
    *,
    time: str | Sequence[str],
    within: Length,
    on: str | Sequence[str | Sequence[str]] = (),
    advance: Length | None = None,
    where: str | None = None,
    **options: Any,
) -> DataFrame:
    """Join the rows of two, three or more batch frames over a window.

    A result has one row of each input, and any two of its rows are at most ``within`` apart in
    time. It is as many joins as :func:`stream_join` makes, in the order in which the inputs are
    given, so the two that pair least should come first. With ``on`` each is partitioned by key;
    else Spark computes what was found before several times.

    Parameters
    ----------
    inputs : mapping of str to DataFrame
        Batch frames, by the names that conditions and results have.
    time : str or sequence of str
        The columns of time, of one type: one name, or one for each input.
    within : int, timedelta or str
        How far apart the rows of a result may be.
    on : str or list, optional
        Columns that must be equal in all inputs: a name, or a list of names and of lists with one
        for each input.
    advance : int, timedelta or str, optional
        Windows in common, ``[n * advance, n * advance + within)``: one of them has all rows of a
        result.
    where : str, optional
        Any other condition, such as ``"a.x < b.y and abs(b.z - c.z) <= 3"``. Each of its parts is
        asked where the last of its inputs is joined.
    options
        ``device``, ``partitions``, ``partition_by``, ``strict`` and ``build`` of
        :class:`~spark_offload.Options`, for every join.

    Returns
    -------
    DataFrame
        The columns of all inputs, called ``input.column``, in no order.

    Raises
    ------
    UsageError
        If an argument, a column, a type or the device will not do; before anything runs.
    """
    run = Options.of("join_many", options, *_OF_MANY)
    query = ManyQuery.of(
        list(inputs), time=time, within=within, on=on, advance=advance, where=where
    )
    for name, frame in inputs.items():
        check_batch_frame(frame, f"{name!r}")
    schemas = [arrow_schema(frame.schema, f"{name!r}") for name, frame in inputs.items()]
    query.require_columns(schemas)
    first, *others = inputs.items()
    found = _named(first[1], first[0])
    begin = F.col(quoted(f"{first[0]}.{query.time[0]}"))
    found = found.withColumns({EARLIEST: begin, LATEST: begin})
    for number, (name, frame) in enumerate(others, 1):
        plan = plan_query(found, frame, query.step(number), run)
        columns = [*found.columns, *_named(frame, name).columns]
        now = F.col(quoted(f"{name}.{query.time[number]}"))
        ends = {EARLIEST: F.least(EARLIEST, now), LATEST: F.greatest(LATEST, now)}
        found = plan.dataframe().toDF(*columns).withColumns(ends)
    return found.drop(EARLIEST, LATEST)


#: The options of a join of several inputs.
_OF_MANY = ("device", "partitions", "partition_by", "strict", "build")


def _named(frame: DataFrame, name: str) -> DataFrame:
    """Return an input of several with the names that its columns have in the result."""
    return frame.toDF(*(f"{name}.{column}" for column in frame.columns))


# The function that joins intervals that overlap, which a PySpark program calls.


@takes_words
def overlap_join(
    left: DataFrame,
    right: DataFrame,
    *,
    left_interval: tuple[str, str],
    right_interval: tuple[str, str] | None = None,
    on: Equalities = None,
    longest: Length | None = None,
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
    on : str or list, optional
        Columns that must be equal, as for :func:`stream_join`.
    longest : int, timedelta or str, optional
        Length of the longest interval; a longer one is an error. Left out, Spark reads both inputs
        for it, once, when this function is called. Streams need it.
    touching : bool
        Whether intervals of which one ends where the other one starts overlap.
    options
        Further arguments of :func:`stream_join`, except ``time``, ``within``, ``rows`` and
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
    taken = sorted({"time", "within", "advance", "per_window", "rows", "band"} & options.keys())
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
            else as_span(longest, "longest")
        )
    words = {
        "time": (ours[0], theirs[0]),
        "on": on,
        "band": [(term.left, term.right, term.low, term.high) for term in terms],
        "where": options.pop("where", None),
        "within": length,
        "advance": None,
        "rows": None,
        "how": options.pop("how", "inner"),
    }
    run, intervals = Options.of("stream_join", options), Intervals((ours, theirs), length)
    return plan_words(left, right, words, run, intervals=intervals).dataframe()


# The functions of as-of joins that a PySpark program calls.


@takes_words
def plan_asof_join(
    left: DataFrame,
    right: DataFrame,
    *,
    time: Columns,
    on: Equalities = None,
    direction: str | Direction = Direction.BACKWARD,
    within: Length | None = None,
    allow_exact_matches: bool = True,
    how: str | JoinType = JoinType.LEFT,
    **options: Any,
) -> Plan:
    """Check an as-of join and decide where it runs, without running it.

    Takes what :func:`asof_join` takes.
    """
    run = Options.of("asof_join", options, "suffix", "sorted", "partitions", "strict")
    query = AsofQuery(
        time=time,
        on=on,
        direction=direction,
        within=within,
        allow_exact_matches=allow_exact_matches,
        how=how,
        sorted=bool(run.sorted),
        suffix=run.suffix,
    )
    with kit_errors():
        if is_streaming(left) or is_streaming(right):
            from spark_offload.stream.plans import make_asof_stream_plan

            return make_asof_stream_plan(left, right, query, run)
        return make_asof_plan(left, right, query, run)


@answer_of(plan_asof_join)
def asof_join(plan: Plan) -> DataFrame:
    """Join each row of a frame with the row of another that is closest to it in time.

    The meaning is that of pandas' ``merge_asof``; ``docs/asof.md`` says where it differs. The
    answer has the left columns, then the right ones. In each of its partitions the rows stand in
    the order of the left times. Nothing is read before an action.

    Two streaming frames need watermarks on their columns of time, and ``within`` unless the
    direction is backward. A left row comes when the watermark has passed every right row that could
    be closer. All micro-batches together are the answer to the batch join of the rows that were not
    late.

    Parameters
    ----------
    left, right : DataFrame
        Both batch frames or both streaming ones.
    time : str or (str, str)
        Columns of time, left and right: integers, dates or timestamps. A null is an error. Spark
        itself answers for floating-point numbers and decimals; :func:`explain` says so.
    on : str or list, optional
        Columns that must be equal: a name, or a list of names and (left, right) pairs. A null
        equals nothing. Without any, one task joins all rows.
    direction : str
        ``"backward"``: the last right row whose time is not later. ``"forward"``: the first one
        whose time is not earlier. ``"nearest"``: the closer one of these two, the earlier one if
        both are equally close.
    within : int, timedelta or str, optional
        Largest distance in time: ``"5s"`` for temporal columns, a whole number for others.
    allow_exact_matches : bool
        Whether a right row with the same time counts.
    how : str
        ``"left"``: every left row is in the answer, with nulls if no right row is found.
        ``"inner"``: only the left rows for which one is found.
    options
        ``suffix``, ``sorted``, ``partitions`` and ``strict`` of :class:`~spark_offload.Options`.
        Without equal columns there is one partition, and of streams partitions are the groups that
        are kept apart in the state. Strict: it is an error that Spark itself would have to answer.

    Returns
    -------
    DataFrame
        The answer. :func:`explain`, :func:`metrics` and :func:`verify` take it.

    Raises
    ------
    UsageError
        If an argument, a column or a type will not do; before anything runs.
    """
    return plan.dataframe()


# The functions of windowed aggregates that a PySpark program calls.


@takes_words
def plan_aggregate(
    frame: DataFrame,
    *,
    time: str,
    window: Length,
    advance: Length | None = None,
    on: str | Sequence[str] = (),
    aggregates: Aggregates,
    **options: Any,
) -> Plan:
    """Check an aggregation and decide where it runs, without running it.

    Takes what :func:`stream_aggregate` takes.
    """
    run = Options.of("stream_aggregate", options, "device", "partitions", "strict")
    if run.device is not None and not isinstance(run.device, str):
        raise UsageError(f"An aggregation takes one device, not {run.device!r}.")
    query = AggregateQuery(time=time, window=window, advance=advance, on=on, aggregates=aggregates)
    with kit_errors():
        if is_streaming(frame):
            from spark_offload.stream.aggregate_plan import make_aggregate_stream_plan

            return make_aggregate_stream_plan(frame, query, run)
        return make_aggregate_plan(frame, query, run)


@answer_of(plan_aggregate)
def stream_aggregate(plan: Plan) -> DataFrame:
    """Aggregate the rows of a frame over windows of time, by keys.

    The meaning is that of Spark's ``groupBy(window(time, window, advance), *on)``: rows whose
    time is null are left out, nulls in keys are one group, null values do not count. The answer has
    the columns ``window_start`` and ``window_end``, the keys and the aggregates. Nothing is read
    before an action.

    A streaming frame needs a watermark on the column of time, which must be a timestamp. A result
    comes once, when the watermark reaches the end of its window (Spark's output mode *append*).
    Rows that are late count in those of their windows that have not ended, as Spark does it.

    Parameters
    ----------
    frame : DataFrame
        The rows.
    time : str
        Column of time: a timestamp, a date (then windows are whole days), or integers.
    window, advance : int, timedelta or str
        Length of a window, and how much later the next one begins: ``"1h"``, ``"5 minutes"`` for
        temporal columns, whole numbers for integers. By default windows do not overlap.
    on : str or sequence of str
        Columns that are equal in the rows of a group: the keys.
    aggregates : mapping of str to str, (str, str) or Aggregate
        What is computed, by the name of its column: ``"count"``, or one of count, sum, min, max and
        mean of a column, as ``"sum:price"``.
    options
        ``device``, ``partitions`` and ``strict`` of :class:`~spark_offload.Options`. The device is
        ``"sim:BUNDLE"``, the bundle of an accelerator of aggregates, or ``"sim:"``, one that is
        built for the query: each task simulates one, which keeps the windows of its keys; of a
        stream, it reduces the rows of a micro-batch to panes.
        By default, the host does. What the accelerator cannot compute is an error. Where it has no
        room for keys, times or values of the rows, the task goes on on the host, and
        :func:`explain` and :func:`metrics` say so. Without keys there is one partition, and Spark's
        state has its own number. Strict: it is an error that Spark itself would have to answer, or
        that an accelerator has no room for rows.

    Returns
    -------
    DataFrame
        The answer. :func:`explain` and :func:`verify` take it, and :func:`metrics` if it is no
        stream; :func:`stream_aggregate_metrics` takes the query that runs a stream.

    Raises
    ------
    UsageError
        If an argument, a column or a type will not do; before anything runs.
    """
    return plan.dataframe()


# The functions of aggregates of matches that a PySpark program calls.


@takes_words
def plan_join_aggregate(
    left: DataFrame,
    right: DataFrame,
    *,
    time: Columns,
    on: Equalities = None,
    band: Bands = None,
    where: Where | None = None,
    within: Within | None = None,
    advance: Length | None = None,
    rows: int | None = None,
    aggregates: Aggregates,
    **options: Any,
) -> Plan:
    """Check aggregates of matches and decide where the join runs, without running it.

    Takes what :func:`join_aggregate` takes.
    """
    for frame, side in ((left, "left"), (right, "right")):
        if is_streaming(frame):
            raise UsageError(
                f"The {side} input is a streaming DataFrame, whose rows may still get matches; "
                f"aggregate matches of batch frames, for example inside foreachBatch."
            )
    for name in ("how", "suffix", "ordering", "per_window"):
        if name in options:
            raise UsageError(
                f"{name} has no meaning for aggregates of matches, whose answer has every left row "
                f"once and no right column; leave it out."
            )
    chosen = {name: Aggregate.of(given) for name, given in aggregates.items()}
    run = Options.of("join_aggregate", options)
    words = {
        "time": time, "on": on, "band": band, "where": where, "within": within, "advance": advance,
        "rows": rows, "how": JoinType.LEFT,
    }  # fmt: skip
    pairs = partial(plan_words, words=words, options=run)
    with kit_errors():
        return make_matches_plan(left, right, chosen, pairs, strict=run.strict)


@answer_of(plan_join_aggregate)
def join_aggregate(plan: Plan) -> DataFrame:
    """Give each left row with aggregates of the right rows that a join pairs it with.

    The answer has every left row once, with its columns and then the aggregates. A count of no
    match is 0, every other aggregate of nothing but nulls is null. Pairs are reduced where they are
    found, and none of them is part of the answer. A join aggregate as the device
    (``docs/join-aggregate-accelerator.md``) reduces them itself.

    Parameters
    ----------
    left, right : DataFrame
        Two batch frames.
    aggregates : mapping of str to str, (str, str) or Aggregate
        What is computed of the right rows, by the name of its column: ``"count"``, or one of count,
        sum, min, max and mean of a right column, as ``"sum:price"``.
    time, on, band, where, within, advance, rows
        Which rows match, as for :func:`stream_join`.
    options
        The options of :func:`stream_join`, but for ``suffix`` and ``ordering``.

    Returns
    -------
    DataFrame
        The answer. :func:`explain`, :func:`metrics` and :func:`verify` take it.

    Raises
    ------
    UsageError
        If an argument, a column, a type or the device will not do; before anything runs.
    """
    return plan.dataframe()


# The functions of described operators that a PySpark program calls.


def plan_operate(
    frame: DataFrame,
    operator: "WindowedOperator",
    right: DataFrame | None = None,
    *,
    time: Columns = "timestamp",
    unit: Length | None = None,
    **options: Any,
) -> Plan:
    """Check an operator and decide where it runs, without running it.

    Takes what :func:`operate` takes.
    """
    from host.operators.operate import OperatorQuery

    run = Options.of("operate", options, "device", "partitions")
    if run.device is not None and not isinstance(run.device, str):
        raise UsageError(f"An operator takes one device, not {run.device!r}.")
    query = OperatorQuery(operator, time, unit)
    frames = [frame] if right is None else [frame, right]
    with kit_errors():
        if any(map(is_streaming, frames)):
            from spark_offload.stream.operate import make_operate_stream_plan

            return make_operate_stream_plan(frames, query, run)
        from spark_offload.plan.operate import make_operate_plan

        return make_operate_plan(frames, query, run)


@answer_of(plan_operate)
def operate(plan: Plan) -> DataFrame:
    """Run a windowed operator that is described as data on the rows of a frame, or of two.

    The answer has the boundaries of the windows, the parts of the keys, and what the operator
    gives, as that of :func:`host.operate`. Nothing is read before an action.

    Streaming frames need a watermark on their times, which must be timestamps. A result comes once,
    when the watermark has decided it. A late row counts in those windows of an aggregate that have
    not ended, and in nothing else.

    Parameters
    ----------
    frame, right : DataFrame
        The rows, with a column for each field of the operator; the right ones if it has two inputs.
        Both are batch frames or both are streams.
    operator : host.operators.windowed.WindowedOperator
        What is computed.
    time : str or (str, str)
        Column of time, which the operator calls ``timestamp``.
    unit : int, timedelta or str, optional
        How long a unit of the operator's time is: ``"1s"`` for dates and timestamps, a number for
        integers (by default 1).
    options
        ``device`` and ``partitions`` of :class:`~spark_offload.Options`. The device is
        ``"sim:BUNDLE"``, an accelerator for the operator, or ``"sim:"``, one that is built for it,
        which each task simulates; by default, the software engine. That of an aggregate reduces the
        rows at hand to panes, that of a forward finds the keys, and that of a join finds pairs.
        What it cannot do is an error.

    Returns
    -------
    DataFrame
        The answer. :func:`explain` takes it, and :func:`metrics` if it is no stream.

    Raises
    ------
    UsageError
        If an argument, a column, a type or the device will not do; before anything runs.
    """
    return plan.dataframe()

# SPDX-License-Identifier: Apache-2.0
"""Aggregates over windows of time and of the matches of each row, and operators of one's own."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame

from host import UsageError
from host.query.conditions import Where
from host.query.queries import Aggregate, AggregateQuery, Aggregates, Bands
from host.query.words import Columns, Equalities, Length, Within, takes_words
from host.reference.types import JoinType
from spark_offload.api.joins import plan_words
from spark_offload.errors import kit_errors
from spark_offload.partitioning.columns import is_streaming
from spark_offload.plan.aggregate import make_aggregate_plan
from spark_offload.plan.matches import check_aggregates, check_matches, matches_plan, numbered
from spark_offload.plan.options import Options
from spark_offload.plan.plan import Plan, answer_of

if TYPE_CHECKING:
    from host.operators.windowed import WindowedOperator

__all__ = [
    "join_aggregate",
    "operate",
    "plan_aggregate",
    "plan_join_aggregate",
    "plan_operate",
    "stream_aggregate",
]

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
    check_aggregates(left, right, chosen)
    run = Options.of("join_aggregate", options)
    words = {
        "time": time, "on": on, "band": band, "where": where, "within": within, "advance": advance,
        "rows": rows,
    }  # fmt: skip
    with kit_errors():
        plan = plan_words(
            *numbered(left, right), words | {"how": JoinType.LEFT}, run, check_matches(chosen)
        )
        return matches_plan(left, right, plan, chosen, strict=run.strict)


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

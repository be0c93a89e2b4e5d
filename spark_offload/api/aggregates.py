# SPDX-License-Identifier: Apache-2.0
"""Aggregates over windows of time, and aggregates of the matches of each row."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from pyspark.sql import DataFrame

from host import UsageError
from host.query.queries import Aggregate
from host.reference.types import JoinType
from spark_offload.api.joins import plan_join
from spark_offload.errors import kit_errors
from spark_offload.plan.aggregate import make_aggregate_plan
from spark_offload.plan.matches import check_aggregates, check_matches, matches_plan, numbered
from spark_offload.plan.plan import Plan
from spark_offload.plan.request import Length, build_aggregate_query
from spark_offload.stream.aggregate_plan import make_aggregate_stream_plan
from spark_offload.stream.checks import is_streaming

__all__ = [
    "join_aggregate",
    "plan_aggregate",
    "plan_join_aggregate",
    "stream_aggregate",
]

# The functions of windowed aggregates that a PySpark program calls.

Aggregates: TypeAlias = Mapping[str, "Aggregate | str | tuple[str, str]"]
"""What is computed, by its name: ``"count"``, ``"sum:price"``, ``("max", "price")``."""


def stream_aggregate(
    frame: DataFrame,
    *,
    time: str,
    window: Length,
    advance: Length = None,
    keys: str | Sequence[str] = (),
    aggregates: Aggregates,
    device: str | None = None,
    partitions: int | None = None,
    strict: bool = False,
) -> DataFrame:
    """Aggregate the rows of a frame over windows of time, by keys.

    The meaning is that of Spark's ``groupBy(window(time, window, advance), *keys)``: rows whose
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
    keys : str or sequence of str
        Columns that rows are grouped by.
    aggregates : mapping of str to str, (str, str) or Aggregate
        What is computed, by the name of its column: ``"count"``, or one of count, sum, min, max and
        mean of a column, as ``"sum:price"``.
    device : str, optional
        ``"sim:BUNDLE"``, the bundle of an accelerator of aggregates: each task simulates one, which
        keeps the windows of its keys; of a stream, it reduces the rows of a micro-batch to panes.
        By default, the host does. What the accelerator cannot compute is an error. Where it
        has no room for keys, times or values of the rows, the task goes on on the host, and
        :func:`explain` and :func:`metrics` say so.
    partitions : int, optional
        Number of partitions of the answer, if there are keys. Left out, one for each core. Of
        streams, Spark's state has its own number.
    strict : bool
        Whether it is an error that Spark itself would have to answer, or that an accelerator has no
        room for rows.

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
    return plan_aggregate(
        frame,
        time=time,
        window=window,
        advance=advance,
        keys=keys,
        aggregates=aggregates,
        device=device,
        partitions=partitions,
        strict=strict,
    ).dataframe()


def plan_aggregate(
    frame: DataFrame,
    *,
    time: str,
    window: Length,
    advance: Length = None,
    keys: str | Sequence[str] = (),
    aggregates: Aggregates,
    device: str | None = None,
    partitions: int | None = None,
    strict: bool = False,
) -> Plan:
    """Check an aggregation and decide where it runs, without running it.

    Takes what :func:`stream_aggregate` takes.
    """
    query = build_aggregate_query(
        time=time, window=window, advance=advance, keys=keys, aggregates=aggregates
    )
    with kit_errors():
        if is_streaming(frame):
            return make_aggregate_stream_plan(
                frame, query, device=device, partitions=partitions, strict=strict
            )
        return make_aggregate_plan(
            frame, query, device=device, partitions=partitions, strict=strict
        )


# The functions of aggregates of matches that a PySpark program calls.


def join_aggregate(
    left: DataFrame,
    right: DataFrame,
    *,
    aggregates: Mapping[str, Aggregate | str | tuple[str, str]],
    **join: Any,
) -> DataFrame:
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
    join
        Which rows match, on which device, and so on: what :func:`stream_join` takes, but for
        ``how``, ``suffix`` and ``ordering``.

    Returns
    -------
    DataFrame
        The answer. :func:`explain`, :func:`metrics` and :func:`verify` take it.

    Raises
    ------
    UsageError
        If an argument, a column, a type or the device will not do; before anything runs.
    """
    return plan_join_aggregate(left, right, aggregates=aggregates, **join).dataframe()


def plan_join_aggregate(
    left: DataFrame,
    right: DataFrame,
    *,
    aggregates: Mapping[str, Aggregate | str | tuple[str, str]],
    **join: Any,
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
    for name in ("how", "suffix", "ordering"):
        if name in join:
            raise UsageError(
                f"{name} has no meaning for aggregates of matches, whose answer has every left row "
                f"once and no right column; leave it out."
            )
    chosen = {name: Aggregate.of(given) for name, given in aggregates.items()}
    check_aggregates(left, right, chosen)
    with kit_errors():
        plan = plan_join(
            *numbered(left, right), how=JoinType.LEFT, check=check_matches(chosen), **join
        )
        return matches_plan(left, right, plan, chosen, strict=join.get("strict", False))

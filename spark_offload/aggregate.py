# SPDX-License-Identifier: Apache-2.0
"""The functions of windowed aggregates that a PySpark program calls."""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from pyspark.sql import DataFrame

from host.query.queries import Aggregate
from spark_offload.failures.translation import kit_errors
from spark_offload.planning.aggregate_plan import AggregatePlan, make_aggregate_plan
from spark_offload.planning.aggregate_request import build_aggregate_query
from spark_offload.planning.request import Length
from spark_offload.streaming.aggregate_plan import make_aggregate_stream_plan
from spark_offload.streaming.checks import is_streaming

__all__ = ["plan_aggregate", "stream_aggregate"]

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
) -> AggregatePlan:
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

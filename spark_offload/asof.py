# SPDX-License-Identifier: Apache-2.0
"""The functions of as-of joins that a PySpark program calls."""

from pyspark.sql import DataFrame

from host.reference.asof import Direction
from host.reference.types import JoinType
from spark_offload.failures.translation import kit_errors
from spark_offload.planning.asof_plan import make_asof_plan
from spark_offload.planning.asof_request import OnColumns, build_asof_query
from spark_offload.planning.plan import JoinPlan
from spark_offload.planning.request import Equalities, Length
from spark_offload.streaming.asof_plan import make_asof_stream_plan
from spark_offload.streaming.checks import is_streaming

__all__ = ["asof_join", "plan_asof_join"]


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
) -> JoinPlan:
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

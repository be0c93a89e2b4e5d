# SPDX-License-Identifier: Apache-2.0
"""The functions of aggregates of matches that a PySpark program calls."""

from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame

from host import UsageError
from host.query.queries import Aggregate
from host.reference.types import JoinType
from spark_offload.failures.translation import kit_errors
from spark_offload.join import plan_join
from spark_offload.planning.batch_plan import BatchJoinPlan
from spark_offload.planning.device_matches_plan import check_matches, make_device_matches_plan
from spark_offload.planning.join_aggregate_plan import (
    JoinAggregatePlan,
    check_aggregates,
    make_join_aggregate_plan,
    numbered,
)
from spark_offload.streaming.checks import is_streaming

__all__ = ["join_aggregate", "plan_join_aggregate"]


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
) -> JoinAggregatePlan:
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
        if isinstance(plan, BatchJoinPlan) and plan.choice.reduces:
            goes_on = not join.get("strict", False)
            return make_device_matches_plan(left, right, plan, chosen, goes_on=goes_on)
        return make_join_aggregate_plan(left, plan, chosen)

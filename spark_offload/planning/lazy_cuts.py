# SPDX-License-Identifier: Apache-2.0
"""Ranges of time that are cut when an action runs: Spark reads the order columns then, once.

The cuts are a scalar subquery of the join. Tasks summarize how the rows lie in time, and one task
cuts them by the summaries. So a join is as lazy as Spark's own one.
"""

from collections.abc import Callable, Iterator

import pyarrow as pa
from pyspark.sql import Column, DataFrame

from host.reference.types import JoinType
from spark_offload.layout.cuts import CUTS, cuts_row
from spark_offload.layout.halos import time_halos
from spark_offload.layout.order_summary import SUMMARY, OrderSummary, splitjoin_order_summary
from spark_offload.planning.profile import order_profile
from spark_offload.planning.range_rule import RangeRule

__all__ = ["lazy_cuts"]


def lazy_cuts(times: DataFrame, rule: RangeRule, width: int) -> Column:
    """Return the cuts for a time-based window (:data:`~spark_offload.layout.cuts.CUTS`).

    Parameters
    ----------
    times : DataFrame
        Columns ``side`` and ``time`` of the rows of both inputs.
    rule : RangeRule
        By which they are cut.
    width : int
        Of the window in order numbers.
    """
    summaries = times.mapInArrow(splitjoin_order_summary, SUMMARY).repartition(1)
    return summaries.mapInArrow(_cutting(rule, width, rule.query.how), CUTS).scalar()


def _cutting(
    rule: RangeRule, width: int, how: JoinType
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return the function for ``mapInArrow``."""

    def splitjoin_cuts(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        profile = order_profile(OrderSummary(batches), rule.ranges)
        yield cuts_row(time_halos(rule.cut(profile).starts, width, how))

    return splitjoin_cuts

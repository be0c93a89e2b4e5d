# SPDX-License-Identifier: Apache-2.0
"""What is known of the order columns before rows are placed: how many, from when to when."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from pyspark.sql import DataFrame

from spark_offload.cluster import cluster_of
from spark_offload.cluster.shipping import ship_packages
from spark_offload.layout.order_summary import SUMMARY, OrderSummary, splitjoin_order_summary

__all__ = ["OrderProfile", "order_profile", "profile_order"]

LEAST_QUANTILES = 256
"""Quantiles that are asked for, at least: enough to judge halos narrower than a partition."""


@dataclass(frozen=True)
class OrderProfile:
    """Rows of both inputs along the order numbers; rows without one are left out.

    Parameters
    ----------
    rows : (int, int)
        Of the left and of the right input.
    least, greatest : int
        Of the order numbers of both; meaningless without rows.
    quantiles : tuple of int
        Order numbers up to and with which rising shares of the rows of both inputs lie, about.
    """

    rows: tuple[int, int]
    least: int
    greatest: int
    quantiles: tuple[int, ...]

    @property
    def total(self) -> int:
        """Rows of both inputs."""
        return sum(self.rows)

    def starts(self, count: int) -> tuple[int, ...]:
        """Return the first order numbers of all but the first of ``count`` ranges, rising.

        The ranges hold about as many rows each. All rows of one order number lie in one range, so
        there may be fewer; a number with more rows than a range should have gets one to itself.
        """
        shares = len(self.quantiles) + 1
        wanted = [self.quantiles[shares * place // count - 1] for place in range(1, count)]
        starts: set[int] = set()
        for number in sorted(set(wanted)):
            # Up to and with a quantile, rows are so many; a second start sets a crowd apart.
            starts.add(min(number + 1, self.greatest))
            if wanted.count(number) > 1:
                starts.add(number)
        return tuple(start for start in sorted(starts) if self.least < start <= self.greatest)

    def halo_share(self, starts: Sequence[int], width: int) -> float:
        """Estimate the rows within ``width`` before the starts, as a share of all rows."""
        found = sum(self._below(start) - self._below(start - width) for start in starts)
        return found / (len(self.quantiles) + 1)

    def mean_window(self, width: int) -> float:
        """Estimate the rows within ``width`` before a row, on average, as a share of all rows."""
        return self.halo_share(self.quantiles, width) / max(1, len(self.quantiles))

    @cached_property
    def _edges(self) -> tuple[int, ...]:
        """Order numbers between which equal shares of the rows lie, about."""
        return (self.least, *(edge + 1 for edge in self.quantiles), self.greatest + 1)

    def _below(self, number: int) -> float:
        """How many shares lie below a number, those that it cuts by what lies below."""
        if number <= self.least:
            return 0.0
        edges = self._edges
        at = bisect_right(edges, number) - 1
        if at >= len(edges) - 1:
            return float(len(edges) - 1)
        return at + (number - edges[at]) / (edges[at + 1] - edges[at])


def order_profile(summary: OrderSummary, ranges: int) -> OrderProfile:
    """Return the profile of the rows that a summary tells of.

    Parameters
    ----------
    summary : OrderSummary
        Of the rows of both inputs.
    ranges : int
        Most ranges that will be asked for.
    """
    shares = -(-LEAST_QUANTILES // ranges) * ranges
    quantiles = summary.quantiles(shares)
    return OrderProfile(summary.rows, summary.least, summary.greatest, quantiles)


def profile_order(times: DataFrame, ranges: int) -> OrderProfile:
    """Read the order columns of both inputs once.

    Parameters
    ----------
    times : DataFrame
        A :func:`~spark_offload.layout.tagged.order_frame`, of columns ``side`` and ``time``.
    ranges : int
        Most ranges that will be asked for.
    """
    ship_packages(cluster_of(times.sparkSession))
    summaries = times.mapInArrow(splitjoin_order_summary, SUMMARY).toArrow()
    return order_profile(OrderSummary(summaries.to_batches()), ranges)

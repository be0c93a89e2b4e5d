# SPDX-License-Identifier: Apache-2.0
"""What is known of the order columns before rows are placed: how many, from when to when."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
import math

from pyspark.sql import DataFrame

__all__ = ["OrderProfile", "profile_order"]

LEAST_QUANTILES = 256
"""Quantiles that are asked for, at least: enough to judge halos narrower than a partition."""

RANK_ERROR = 10_000
"""Quantiles are off by one row in so many, at most."""


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

    def largest_window(self, width: int) -> int:
        """Estimate the most rows of one side within ``width`` before a row, rather too many."""
        shares = len(self.quantiles) + 1
        edges = (*self.quantiles, self.greatest)
        most = max(self._below(edge + 1) - self._below(edge - width) for edge in edges)
        return min(max(self.rows), math.ceil((most + 1) / shares * max(self.rows)))

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


def profile_order(times: DataFrame, ranges: int) -> OrderProfile:
    """Read the order columns of both inputs once.

    ``times`` is a :func:`~spark_offload.layout.tagged.order_frame`.

    Parameters
    ----------
    times : DataFrame
        Columns ``side`` and ``time``.
    ranges : int
        Most ranges that will be asked for.
    """
    quantiles = -(-LEAST_QUANTILES // ranges) * ranges
    row = times.selectExpr(
        *(f"count(CASE WHEN side = {side} THEN time END) AS rows{side}" for side in (0, 1)),
        "min(time) AS least",
        "max(time) AS greatest",
        f"{_quantiles('time', quantiles)} AS quantiles",
    ).first()
    assert row is not None  # an aggregate of everything is one row
    if row.least is None:
        return OrderProfile((0, 0), 0, 0, (0,) * (quantiles - 1))
    found = row.quantiles
    # Spark computes with doubles, which are too coarse for a narrow span far from zero.
    step = math.ulp(float(max(abs(row.least), abs(row.greatest))))
    if step > 1 and step * quantiles * 16 > row.greatest - row.least:
        nearer = times.selectExpr(
            f"{_quantiles(f'time - ({row.least}L)', quantiles)} AS quantiles"
        ).first()
        assert nearer is not None
        found = [row.least + number for number in nearer.quantiles]
    return OrderProfile((row.rows0, row.rows1), row.least, row.greatest, tuple(found))


def _quantiles(number: str, count: int) -> str:
    """Return an expression in SQL for the quantiles of another one.

    As one text for Spark to parse: a literal from Python costs a trip to the JVM of half a
    millisecond, and there are hundreds.
    """
    shares = ", ".join(f"{place / count!r}D" for place in range(1, count))
    error = max(RANK_ERROR, 10 * count)
    return f"percentile_approx({number}, array({shares}), {error})"

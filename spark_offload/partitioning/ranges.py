# SPDX-License-Identifier: Apache-2.0
"""Where ranges of time begin, by how the rows lie in time, and when that is found out."""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from host.query.queries import Query
from host.reference.arrivals import Side
from host.reference.types import JoinType
from host.reference.window import CountWindow
from spark_offload.cluster.machines import cluster_of, ship_packages
from spark_offload.partitioning.halos import Halos, time_halos
from spark_offload.partitioning.tagged import literals

__all__ = [
    "CUTS",
    "Cut",
    "OrderProfile",
    "OrderSummary",
    "PAYING_ROWS",
    "RangeRule",
    "SUMMARY",
    "cuts_literal",
    "cuts_row",
    "lazy_cuts",
    "order_profile",
    "profile_order",
    "splitjoin_order_summary",
]

# How the rows of both inputs lie in time, told by few of their times: what ranges are cut by.
#
# Of each batch as many times are kept as tell its quantiles closely. They stand for equal shares
# of the batch, so that those of all batches, each with its weight, tell the quantiles of all
# rows.

Int64s = npt.NDArray[np.int64]

SUMMARY = "left_rows bigint, right_rows bigint, least bigint, times binary"
"""Columns of a summary, for Spark; a row tells of a batch."""

_TIMES = 512
"""Times that are kept of a batch, at most."""


class OrderSummary:
    """The times of all rows, by the summaries of their batches.

    Parameters
    ----------
    batches : iterable of RecordBatch
        Rows of :func:`splitjoin_order_summary`.

    Attributes
    ----------
    rows : (int, int)
        Of the left and of the right input.
    least, greatest : int
        Of all times; zero without rows.
    """

    def __init__(self, batches: Iterable[pa.RecordBatch]) -> None:
        times: list[Int64s] = [np.zeros(0, np.int64)]
        weights: list[npt.NDArray[np.float64]] = [np.zeros(0)]
        rows = [0, 0]
        least: list[int] = []
        for row in (row for batch in batches for row in batch.to_pylist()):
            kept = np.frombuffer(row["times"], np.int64)
            counts = row["left_rows"], row["right_rows"]
            rows = [total + count for total, count in zip(rows, counts, strict=True)]
            least.append(row["least"])
            times.append(kept)
            weights.append(np.full(len(kept), sum(counts) / len(kept)))
        at = np.concatenate(times)
        order = np.argsort(at, kind="stable")
        self._times = at[order]
        self._reached = np.cumsum(np.concatenate(weights)[order])
        self.rows = rows[0], rows[1]
        self.least = min(least, default=0)
        self.greatest = int(self._times[-1]) if len(self._times) else 0

    def quantiles(self, shares: int) -> tuple[int, ...]:
        """Return the times up to and with which 1, 2, … of so many equal shares of the rows lie."""
        if not len(self._times):
            return (0,) * (shares - 1)
        # A weight that is no whole number must not push the sum beyond a share that it reaches.
        wanted = sum(self.rows) * (np.arange(1, shares) / shares) * (1 - 1e-12)
        found = np.searchsorted(self._reached, wanted)
        return tuple(self._times[np.minimum(found, len(self._times) - 1)].tolist())


def splitjoin_order_summary(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Summarize the columns ``side`` and ``time``; for ``mapInArrow``, which shows the name."""
    for batch in batches:
        known = batch.filter(batch.column("time").is_valid())
        count = known.num_rows
        if not count:
            continue
        times = np.sort(known.column("time").to_numpy())
        left = pc.equal(known.column("side"), 0).true_count
        kept = min(count, _TIMES)
        ends = -(-count * np.arange(1, kept + 1) // kept) - 1
        yield pa.record_batch(
            {
                "left_rows": pa.array([left], pa.int64()),
                "right_rows": pa.array([count - left], pa.int64()),
                "least": pa.array([int(times[0])], pa.int64()),
                "times": pa.array([times[ends].tobytes()], pa.binary()),
            }
        )


# Where ranges of time and their halos begin, as a value that Spark knows when an action runs.

_FIELDS = ("starts", "left", "right", "departures")

CUTS = f"cuts struct<{', '.join(f'{name}: array<bigint>' for name in _FIELDS)}>"
"""First order numbers of the ranges, of their halos by side, and of the rows that leave a window
in them; without those of the first range."""


def cuts_row(halos: Halos) -> pa.RecordBatch:
    """Return the cuts as the only row of a task."""
    kind = pa.struct([(name, pa.list_(pa.int64())) for name in _FIELDS])
    row = {name: list(steps) for name, steps in zip(_FIELDS, _steps(halos), strict=True)}
    return pa.record_batch({"cuts": pa.array([row], kind)})


def cuts_literal(halos: Halos) -> Column:
    """Return cuts that are known already."""
    fields = (
        f"'{name}', cast(array({', '.join(literals(steps))}) as array<bigint>)"
        for name, steps in zip(_FIELDS, _steps(halos), strict=True)
    )
    return F.expr(f"named_struct({', '.join(fields)})")


def _steps(halos: Halos) -> tuple[Sequence[int], ...]:
    return halos.starts, *halos.reaches, halos.departures or ()


# What is known of the order columns before rows are placed: how many, from when to when.

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
        A :func:`~spark_offload.partitioning.tagged.order_frame`, of columns ``side`` and ``time``.
    ranges : int
        Most ranges that will be asked for.
    """
    ship_packages(cluster_of(times.sparkSession))
    summaries = times.mapInArrow(splitjoin_order_summary, SUMMARY).toArrow()
    return order_profile(OrderSummary(summaries.to_batches()), ranges)


# Where ranges of time begin, and whether they pay, by how the rows lie in time.

PAYING_ROWS = 250_000
"""Rows of both inputs for which a partition pays: they take longer than cutting ranges does."""

MOST_HALO = 0.5
"""Most rows in the halo of a range, for each row of its own, if it is cut unasked."""


@dataclass(frozen=True)
class Cut:
    """Ranges of time.

    Parameters
    ----------
    starts : tuple of int
        First order numbers of all ranges but the first.
    note : str
        How many ranges there are and why.
    """

    starts: tuple[int, ...]
    note: str


@dataclass(frozen=True)
class RangeRule:
    """How the rows of a join are cut into ranges, once it is known how they lie in time.

    Parameters
    ----------
    query : Query
        The join.
    width : int or None
        Of a time-based window in order numbers; None if it is count-based.
    ranges : int
        How many ranges there are to be; unasked, at most.
    asked : bool
        Whether the user asked for that number.
    """

    query: Query
    width: int | None
    ranges: int
    asked: bool

    def cut(self, profile: OrderProfile) -> Cut:
        """Cut the rows into ranges; unasked, into as many as pay."""
        return self._as_asked(profile) if self.asked else self._unasked(profile)

    def _as_asked(self, profile: OrderProfile) -> Cut:
        starts = profile.starts(self.ranges)
        note = f"the number as asked for; {self._halo_text(profile, starts)}"
        empty = self.ranges - len(starts) - 1
        if empty:
            note += f"; {empty} of them empty, since rows of one time stay together"
        return Cut(starts, note)

    def _unasked(self, profile: OrderProfile) -> Cut:
        count = min(self.ranges, profile.total // PAYING_ROWS)
        if count < 2:
            return Cut((), f"{profile.total:,} rows are too few for ranges of time to pay")
        starts = profile.starts(count)
        share = self._halo_share(profile, starts)
        while starts and share * (len(starts) + 1) / len(starts) > MOST_HALO:
            count = max(2, count // 2) if count > 2 else 1
            starts = profile.starts(count)
            share = self._halo_share(profile, starts) if starts else share
        if not starts:
            if profile.least == profile.greatest:
                return Cut((), "all rows have one time")
            note = f"halos would dominate: two ranges of time would add {share:.0%} of the rows"
            return Cut((), note)
        number = "one for each core that Spark has" if count == self.ranges else "as many as pay"
        note = f"{number}; {self._halo_text(profile, starts)}"
        if len(starts) + 1 < count:
            note += f"; {len(starts) + 1} instead of {count}, since rows of one time stay together"
        return Cut(starts, note)

    def _halo_text(self, profile: OrderProfile, starts: tuple[int, ...]) -> str:
        return f"halos add about {self._halo_share(profile, starts):.1%} of the rows"

    def _halo_share(self, profile: OrderProfile, starts: tuple[int, ...]) -> float:
        total = max(1, profile.total)
        # How many widths of the window the halos of either side reach back.
        reaches = [2 if self.query.how.tracks(side.other) else 1 for side in Side]
        if self.width is not None:
            return sum(
                rows / total * profile.halo_share(starts, self.width * reach)
                for rows, reach in zip(profile.rows, reaches, strict=True)
            )
        window = self.query.window
        size = window.size if isinstance(window, CountWindow) else 0
        halo = 0.0
        for rows, others, reach in zip(profile.rows, profile.rows[::-1], reaches, strict=True):
            # While the other side has so many rows, this one has more or fewer.
            met = size * rows / max(1, others) if reach > 1 else 0
            halo += min(size + met, rows)
        return len(starts) * halo / total


# Ranges of time that are cut when an action runs: Spark reads the order columns then, once.
#
# The cuts are a scalar subquery of the join. Tasks summarize how the rows lie in time, and one
# task cuts them by the summaries. So a join is as lazy as Spark's own one.


def lazy_cuts(times: DataFrame, rule: RangeRule, width: int) -> Column:
    """Return the cuts for a time-based window (:data:`CUTS`).

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

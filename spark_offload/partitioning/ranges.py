# SPDX-License-Identifier: Apache-2.0
"""Where ranges of time begin, by how the rows lie in time, and when that is found out."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
import math

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from host.arrays import Bools, Float64s, Int64s
from host.query.queries import Query
from host.reference.arrivals import Side
from host.reference.window import CountWindow
from spark_offload.cluster.machines import cluster_of, ship_packages
from spark_offload.partitioning.halos import Halos, time_halos
from spark_offload.partitioning.tagged import SLOTS

__all__ = [
    "CUTS",
    "Cut",
    "Cuts",
    "OrderProfile",
    "OrderSummary",
    "PAYING_ROWS",
    "RangeRule",
    "lazy_cuts",
    "order_profile",
    "profile_order",
    "splitjoin_order_summary",
]

# How the rows of both inputs lie in time, told by few of their times: what ranges are cut by.
#
# Of each batch as many times are kept as tell its quantiles closely. They stand for equal shares
# of the batch, so that those of all batches, each with its weight, tell the quantiles of all
# rows. With each time its row's slot is kept, a group of values of the keys.


_SUMMARY = "left_rows bigint, right_rows bigint, least bigint, times binary, slots binary"
"""Columns of a summary, for Spark; a row tells of a batch."""

_TIMES = 512
"""Times that are kept of a batch, at most."""


@dataclass(frozen=True, eq=False)
class OrderSummary:
    """The times of all rows, by few of them.

    Parameters
    ----------
    times : array of int
        These, in rising order.
    weights : array of float
        Rows that each of them stands for.
    slots : array of int
        The slot of each.
    rows : (int, int)
        Of the left and of the right input.
    least : int
        Of all times; zero without rows.
    """

    times: Int64s
    weights: Float64s
    slots: npt.NDArray[np.int16]
    rows: tuple[int, int]
    least: int

    @classmethod
    def of(cls, batches: Iterable[pa.RecordBatch], weight: float = 1.0) -> "OrderSummary":
        """Return the summary of all rows by those of their batches.

        Parameters
        ----------
        batches : iterable of RecordBatch
            Rows of :func:`splitjoin_order_summary`.
        weight : float
            Rows that each row stands for which the batches tell of.
        """
        found = [row for batch in batches for row in batch.to_pylist()]
        left, right = (sum(row[f"{side}_rows"] for row in found) for side in ("left", "right"))
        times = [np.frombuffer(row["times"], np.int64) for row in found]
        slots = [np.frombuffer(row["slots"], np.int16) for row in found]
        weights = [
            np.full(len(kept), weight * (row["left_rows"] + row["right_rows"]) / len(kept))
            for row, kept in zip(found, times, strict=True)
        ]
        at = np.concatenate([np.zeros(0, np.int64), *times])
        order = np.argsort(at, kind="stable")
        return cls(
            at[order],
            np.concatenate([np.zeros(0), *weights])[order],
            np.concatenate([np.zeros(0, np.int16), *slots])[order],
            (round(weight * left), round(weight * right)),
            min((row["least"] for row in found), default=0),
        )

    @property
    def greatest(self) -> int:
        """Of all times; zero without rows."""
        return int(self.times[-1]) if len(self.times) else 0

    def quantiles(self, shares: int) -> tuple[int, ...]:
        """Return the times up to and with which 1, 2, … of so many equal shares of the rows lie."""
        if not len(self.times):
            return (0,) * (shares - 1)
        reached = np.cumsum(self.weights)
        # A weight that is no whole number must not push the sum beyond a share that it reaches.
        wanted = reached[-1] * (np.arange(1, shares) / shares) * (1 - 1e-12)
        found = np.searchsorted(reached, wanted)
        return tuple(self.times[np.minimum(found, len(self.times) - 1)].tolist())

    def by_slot(self) -> Float64s:
        """Return about how many rows each slot has."""
        return np.bincount(self.slots, self.weights, SLOTS).astype(np.float64)

    def of_slots(self, chosen: Bools) -> "OrderSummary":
        """Return the summary of the rows in chosen slots, as far as their times were kept."""
        mine = chosen[self.slots]
        share = self.weights[mine].sum() / max(1.0, self.weights.sum())
        left, right = (round(share * count) for count in self.rows)
        times = self.times[mine]
        least = int(times[0]) if len(times) else 0
        return OrderSummary(times, self.weights[mine], self.slots[mine], (left, right), least)


def splitjoin_order_summary(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Summarize ``side``, ``time``, and ``slot`` if there is one; for ``mapInArrow``, which shows
    the name."""
    for batch in batches:
        known = batch.filter(batch.column("time").is_valid())
        count = known.num_rows
        if not count:
            continue
        times = known.column("time").to_numpy()
        order = np.argsort(times, kind="stable")
        left = pc.equal(known.column("side"), 0).true_count
        kept = min(count, _TIMES)
        ends = order[-(-count * np.arange(1, kept + 1) // kept) - 1]
        slots = np.zeros(count, np.int16)
        if "slot" in batch.schema.names:
            slots = known.column("slot").to_numpy()
        yield pa.record_batch(
            {
                "left_rows": pa.array([left], pa.int64()),
                "right_rows": pa.array([count - left], pa.int64()),
                "least": pa.array([int(times[order[0]])], pa.int64()),
                "times": pa.array([times[ends].tobytes()], pa.binary()),
                "slots": pa.array([slots[ends].tobytes()], pa.binary()),
            }
        )


# Where ranges of time and their halos begin, as a value that Spark knows when an action runs.

_FIELDS = ("starts", "left", "right", "departures")

_STEPS = [(name, pa.list_(pa.int64())) for name in _FIELDS]
_GROUPS = pa.list_(pa.struct([("first", pa.int32()), *_STEPS]))

CUTS = pa.schema([("cuts", pa.struct([("slots", pa.list_(pa.int32())), ("groups", _GROUPS)]))])
"""The group of each slot of the keys, of which there are none if all rows are one group; and for
each group the number of its first partition, and the first order numbers of its ranges, of their
halos by side, and of the rows that leave a window in them, without those of the first range."""


@dataclass(frozen=True)
class Cuts:
    """Cuts of rows: into groups of slots of the keys, and these into ranges of time.

    Parameters
    ----------
    groups : tuple of Halos
        The ranges of each group.
    slots : tuple of int
        The group of each slot; empty if there is one group.
    """

    groups: tuple[Halos, ...]
    slots: tuple[int, ...] = ()

    def row(self) -> pa.RecordBatch:
        """Return the cuts as the only row of a task."""
        groups = [
            {"first": first, **dict(zip(_FIELDS, map(list, _steps(halos)), strict=True))}
            for first, halos in zip(self._firsts(), self.groups, strict=True)
        ]
        cuts = {"slots": list(self.slots), "groups": groups}
        return pa.RecordBatch.from_pylist([{"cuts": cuts}], CUTS)

    def column(self, session: SparkSession) -> Column:
        """Return cuts that are known already."""
        return _the_only(session.createDataFrame(pa.Table.from_batches([self.row()])))

    def _firsts(self) -> list[int]:
        sizes = (len(halos.starts) + 1 for halos in self.groups[:-1])
        return list(accumulate(sizes, initial=0))


def _the_only(cuts: DataFrame) -> Column:
    """Return the cuts in the only row of a frame."""
    return cuts.scalar().alias("cuts")


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
        Columns ``side`` and ``time`` of :meth:`.TaggedInputs.times`.
    ranges : int
        Most ranges that will be asked for.
    """
    ship_packages(cluster_of(times.sparkSession))
    summaries = times.mapInArrow(splitjoin_order_summary, _SUMMARY).toArrow()
    return order_profile(OrderSummary.of(summaries.to_batches()), ranges)


# Where ranges of time begin, and whether they pay, by how the rows lie in time.

PAYING_ROWS = 250_000
"""Rows of both inputs for which a partition pays: they take longer than cutting ranges does."""

MOST_HALO = 0.5
"""Most rows in the halo of a range, for each row of its own, if it is cut unasked."""

SMALL_HALO = 0.1
"""The same, of ranges that stand in for equal columns, by which no row is sent twice."""

HOT_HALO = 1.0
"""The same, of the ranges of keys that have too many rows for a partition."""

HOT_ROWS = 1.25
"""A slot with more rows than so many partitions should have is cut by time."""


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
    """Rule by which the rows of a join are cut into ranges of time.

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
    keyed : bool
        Whether rows may be grouped by equal columns instead, where halos would be large.
    paying : int
        Rows for which a partition pays.
    """

    query: Query
    width: int | None
    ranges: int
    asked: bool
    keyed: bool = False
    paying: int = PAYING_ROWS

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

    def _unasked(self, profile: OrderProfile, most: float = MOST_HALO) -> Cut:
        wanted = count = min(self.ranges, profile.total // self.paying)
        if count < 2:
            return Cut((), f"{profile.total:,} rows are too few for ranges of time to pay")
        starts = profile.starts(count)
        share = self._halo_share(profile, starts)
        while starts and share * (len(starts) + 1) / len(starts) > most:
            count = max(2, count // 2) if count > 2 else 1
            starts = profile.starts(count)
            share = self._halo_share(profile, starts) if starts else share
        if not starts:
            if profile.least == profile.greatest:
                return Cut((), "all rows have one time")
            note = f"halos would dominate: two ranges of time would add {share:.0%} of the rows"
            return Cut((), note)
        number = "as many as pay" if count < wanted or wanted < self.ranges else f"{count} in all"
        note = f"{number}; {self._halo_text(profile, starts)}"
        if len(starts) + 1 < count:
            note += f"; {len(starts) + 1} instead of {count}, since rows of one time stay together"
        return Cut(starts, note)

    def grouped(self, summary: OrderSummary) -> tuple[tuple[int, ...], list[tuple[int, ...]]]:
        """Cut the rows into groups by their slots, and these into ranges of time.

        Ranges of time alone are balanced whatever the keys, and are taken where halos are small.
        Otherwise slots are put together to groups of about equally many rows, and a slot that has
        too many by itself is a group that is cut by time.

        Returns
        -------
        (tuple of int, list of tuple of int)
            The group of each slot, none if there is one group; and the starts of each group.
        """
        profile = order_profile(summary, self.ranges)
        if not self.keyed:
            return (), [self.cut(profile).starts]
        count = min(self.ranges, profile.total // self.paying)
        if count < 2:
            return (), [()]
        starts = profile.starts(count)
        share = self._halo_share(profile, starts)
        if len(starts) == count - 1 and share * count / len(starts) <= SMALL_HALO:
            return (), [starts]
        return self._by_slots(summary, profile, count)

    def _by_slots(
        self, summary: OrderSummary, profile: OrderProfile, count: int
    ) -> tuple[tuple[int, ...], list[tuple[int, ...]]]:
        rows = summary.by_slot()
        target = rows.sum() / count
        hot = np.flatnonzero(rows > HOT_ROWS * target)
        if len(hot) and rows[hot].sum() > (count - 1) * target:
            return (), [self._hot(profile)]  # the others do not fill a partition
        groups: list[tuple[int, ...]] = []
        slots = np.zeros(SLOTS, np.int64)
        for slot in hot:
            chosen = np.zeros(SLOTS, np.bool_)
            chosen[slot] = True
            own = order_profile(summary.of_slots(chosen), self.ranges)
            # One partition is left for each hot slot that comes, and for all others.
            left = self.ranges - sum(len(starts) + 1 for starts in groups)
            most = min(math.ceil(rows[slot] / target), left - len(hot) + len(groups))
            slots[slot] = len(groups)
            groups.append(replace(self, ranges=most)._hot(own))
        bins = np.zeros(max(1, count - sum(len(starts) + 1 for starts in groups)))
        for slot in np.argsort(-rows, kind="stable"):
            if slot not in hot:
                place = int(np.argmin(bins))
                bins[place] += rows[slot]
                slots[slot] = len(groups) + place
        return tuple(slots.tolist()), [*groups, *([()] * len(bins))]

    def _hot(self, profile: OrderProfile) -> tuple[int, ...]:
        return self._unasked(profile, HOT_HALO).starts if self.ranges > 1 else ()

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


LOOKED_AT = 200_000
"""Rows of both inputs that are looked at, about, where Spark knows how many there are."""


def lazy_cuts(times: DataFrame, rule: RangeRule, width: int, rows: int | None) -> Column:
    """Return the cuts for a time-based window (:data:`CUTS`).

    Parameters
    ----------
    times : DataFrame
        Columns ``side``, ``time``, and ``slot`` if the rule has keys, of the rows of both inputs.
    rule : RangeRule
        By which they are cut.
    width : int
        Of the window in order numbers.
    rows : int or None
        About how many rows there are, if Spark knows: then a sample tells enough.
    """
    weight = max(1.0, (rows or 0) / LOOKED_AT)
    if weight > 1:
        times = times.sample(fraction=1 / weight, seed=1)

    def splitjoin_cuts(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        slots, groups = rule.grouped(OrderSummary.of(batches, weight))
        halos = tuple(time_halos(starts, width, rule.query.how) for starts in groups)
        yield Cuts(halos, slots).row()

    summaries = times.mapInArrow(splitjoin_order_summary, _SUMMARY).repartition(1)
    return _the_only(summaries.mapInArrow(splitjoin_cuts, from_arrow_schema(CUTS)))

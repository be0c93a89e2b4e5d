# SPDX-License-Identifier: Apache-2.0
"""Which rows before the start of a range of time its rows can meet: the halo of the range.

A range begins at its *start*; its halo on one side begins at a *reach* not above it, and holds that
side's rows from the reach up to the start. Reaches rise with the starts. Rows are told apart by
their order numbers only, never by their places in the input, so it does no harm if an input comes
in another order when it is read again.

A one-sided row belongs to the range in which it leaves the window. Until then it is in the
halos, as others meet it. To know whether it has matched, all that it can have met must be in the
halo of the other side, which therefore reaches back from the oldest such row as far as the window.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from host.reference.arrivals import Side
from host.reference.types import JoinType
from spark_offload.partitioning.tagged import LEAST, literals, steps_reached

__all__ = [
    "HaloCounts",
    "Halos",
    "count_halos",
    "time_halos",
]


@dataclass(frozen=True)
class HaloCounts:
    """Rows in the halos of a count-based window, by partition and side; the first has none.

    A halo begins with all rows of one time, of which the window may hold the last ones only.

    Parameters
    ----------
    sent : tuple of (int, int)
        Rows that are sent to the partition.
    needed : tuple of (int, int)
        Rows, the last ones of them, that its window holds when its own rows begin, or that these
        may have met.
    own : tuple of (int, int)
        Rows of the range itself.
    """

    sent: tuple[tuple[int, int], ...]
    needed: tuple[tuple[int, int], ...]
    own: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Halos:
    """The halos of all ranges of time.

    Parameters
    ----------
    starts : tuple of int
        First order numbers of all ranges but the first.
    reaches : tuple of tuple of int
        By side: first order numbers of the halos of these ranges.
    counts : HaloCounts or None
        For a count-based window.
    departures : tuple of int or None
        For a time-based window, if rows come alone: first order numbers of the rows that leave it
        in these ranges or later.
    """

    starts: tuple[int, ...]
    reaches: tuple[tuple[int, ...], tuple[int, ...]]
    counts: HaloCounts | None = None
    departures: tuple[int, ...] | None = None


def time_halos(starts: Sequence[int], width: int, how: JoinType) -> Halos:
    """Return the halos of a time-based window.

    Parameters
    ----------
    starts : sequence of int
        Of all ranges but the first.
    width : int
        Of the window.
    how : JoinType
        Of the join.
    """
    held = tuple(max(LEAST, start - width) for start in starts)
    twice = tuple(max(LEAST, start - 2 * width) for start in starts)
    left, right = (twice if how.tracks(side.other) else held for side in Side)
    departures = None if how is JoinType.INNER else held
    return Halos(tuple(starts), (left, right), departures=departures)


def count_halos(times: DataFrame, starts: Sequence[int], size: int, how: JoinType) -> Halos:
    """Return the halos of a count-based window; this reads the order columns a few times."""
    census = _census(times, starts)
    ends = [_ends(census, side, len(starts)) for side in Side]
    held = _rows_back(times, starts, size, ends)
    reaches = [
        _rows_back_again(times, held[side.other], size, side) if how.tracks(side.other) else own
        for side, own in zip(Side, held, strict=True)
    ]
    sent = [_sent(times, starts, reaches[side], side) for side in Side]
    needed = [
        sent[side] if how.tracks(side.other) else [min(size, before) for before in ends[side][:-1]]
        for side in Side
    ]
    own_rows = [[end - begin for begin, end in pairwise(ends[side])] for side in Side]
    counts = HaloCounts(*(tuple(zip(*rows, strict=True)) for rows in (sent, needed, own_rows)))
    return Halos(tuple(starts), (reaches[0], reaches[1]), counts)


def _rows_back(
    times: DataFrame, starts: Sequence[int], size: int, ends: Sequence[Sequence[int]]
) -> list[tuple[int, ...]]:
    """Return by side, for each start, the time of the ``size``-th row before it.

    Ranks are exact: rows are counted by range and side, so the row that is ``size`` rows before a
    start stands in a known range, so many rows before its end.
    """
    wanted = {
        (side, place): found
        for side, of_side in enumerate(ends)
        for place in range(1, len(starts) + 1)
        if (found := _place_of(of_side, place, size)) is not None
    }
    found_at = _times_at(times, starts, wanted)
    return [
        tuple(found_at.get((side, place), LEAST) for place in range(1, len(starts) + 1))
        for side in range(len(ends))
    ]


def _rows_back_again(
    times: DataFrame, held: Sequence[int], size: int, side: Side
) -> tuple[int, ...]:
    """Return the time of the ``size``-th row of ``side`` before each of ``held``, rising times.

    These are the times of the oldest rows of the other side that the window holds at the starts;
    those of one time count as if all of them came first, as it does no harm to reach further.
    """
    marks = sorted(set(held) - {LEAST})
    rows = times.where(F.col("side") == int(side))
    ends = _ends(_census(rows, marks), side, len(marks))
    none = [0] * len(ends)
    found = _rows_back(rows, marks, size, [ends, none] if side is Side.R else [none, ends])[side]
    reached = dict(zip(marks, found, strict=True))
    return tuple(reached.get(mark, LEAST) for mark in held)


Census = Mapping[tuple[int, int], int]


def _in_ranges(times: DataFrame, starts: Sequence[int]) -> DataFrame:
    known = times.where(F.col("time").isNotNull())
    return known.withColumn("part", F.expr(steps_reached("time", literals(starts))))


def _census(times: DataFrame, starts: Sequence[int]) -> Census:
    """Return by side and range how many rows there are."""
    groups = _in_ranges(times, starts).groupBy("side", "part")
    found = groups.agg(F.count("*").alias("rows")).collect()
    return {(group.side, group.part): group.rows for group in found}


def _ends(census: Census, side: int, starts: int) -> list[int]:
    """Return how many rows of the side come before each range; a last one: all rows."""
    rows = (census.get((side, part), 0) for part in range(starts + 1))
    return list(accumulate(rows, initial=0))


def _place_of(ends: Sequence[int], place: int, size: int) -> tuple[int, int] | None:
    """Return the range in which the ``size``-th row before range ``place`` stands, and which row
    of it that is, counted from its end; None if there are not so many rows."""
    if ends[place] < size:
        return None
    part = max(part for part in range(place) if ends[place] - ends[part] >= size)
    return part, size - (ends[place] - ends[part + 1])


def _times_at(
    times: DataFrame, starts: Sequence[int], wanted: Mapping[tuple[int, int], tuple[int, int]]
) -> dict[tuple[int, int], int]:
    """Return by side and range, as ``wanted`` has them, the time of the wanted row."""
    if not wanted:
        return {}
    backwards = Window.partitionBy("side", "part").orderBy(F.desc("time"))
    ranked = _in_ranges(times, starts).withColumn("rank", F.row_number().over(backwards))
    # The bound lets Spark forget all rows but the last ones before it sorts the others.
    last = ranked.where(F.col("rank") <= max(rank for _, rank in wanted.values()))
    keys = {place: f"{place[0]} {part} {rank}" for place, (part, rank) in wanted.items()}
    named = F.concat_ws(" ", "side", "part", "rank").alias("key")
    rows = last.where(named.isin(*set(keys.values()))).select(named, "time").collect()
    found = {row.key: row.time for row in rows}
    return {place: found[key] for place, key in keys.items() if key in found}


def _sent(times: DataFrame, starts: Sequence[int], reaches: Sequence[int], side: int) -> list[int]:
    """Return how many rows of the side lie in the halo of each range, the first one included."""
    rows = _in_ranges(times.where(F.col("side") == side), starts)
    last = F.expr(steps_reached("time", literals(reaches))).alias("last")
    groups = rows.groupBy("part", last).count()
    sent = [0] * (len(starts) + 1)
    for part, last, count in groups.collect():
        for place in range(part + 1, last + 1):
            sent[place] += count
    return sent

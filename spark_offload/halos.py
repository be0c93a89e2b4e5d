# SPDX-License-Identifier: Apache-2.0
"""Which rows before the start of a range of time its rows can meet: the halo of the range.

A range begins at its *start*; its halo on one side begins at a *reach* not above it, and holds that
side's rows from the reach up to the start. Reaches rise with the starts. Rows are told apart by
their order numbers only, never by their places in the input, so it does no harm if an input comes
in another order when it is read again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from spark_offload.order_axis import LEAST
from spark_offload.steps import steps_reached

__all__ = ["HaloCounts", "Halos", "count_halos", "time_halos"]


@dataclass(frozen=True)
class HaloCounts:
    """Rows in the halos of a count-based window, by partition and side; the first has none.

    A halo begins with all rows of one time, of which the window may hold the last ones only.

    Parameters
    ----------
    sent : tuple of (int, int)
        Rows that are sent to the partition.
    needed : tuple of (int, int)
        Rows, the last ones of them, that its window holds when its own rows begin.
    """

    sent: tuple[tuple[int, int], ...]
    needed: tuple[tuple[int, int], ...]


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
    """

    starts: tuple[int, ...]
    reaches: tuple[tuple[int, ...], tuple[int, ...]]
    counts: HaloCounts | None = None


def time_halos(times: DataFrame, starts: Sequence[int], width: int, *, joined: bool) -> Halos:
    """Return the halos of a time-based window.

    Parameters
    ----------
    times : DataFrame
        Columns ``side`` and ``time``.
    starts : sequence of int
        Of all ranges but the first.
    width : int
        Of the window.
    joined : bool
        Whether every halo is to hold the last row before its range at least, so that each row
        stands in some partition with the one before it. This reads the order columns.
    """
    reaches = [[max(LEAST, start - width) for start in starts]] * 2
    if joined and starts:
        census = _census(times, starts)
        reaches = [
            [
                reach if before is None else min(reach, before)
                for reach, before in zip(own, _last_before(census, side, starts), strict=True)
            ]
            for side, own in enumerate(reaches)
        ]
    return Halos(tuple(starts), (tuple(reaches[0]), tuple(reaches[1])))


def count_halos(times: DataFrame, starts: Sequence[int], size: int) -> Halos:
    """Return the halos of a count-based window; this reads the order columns twice.

    Ranks are exact: rows are counted by range and side, so the row that is ``size`` rows before a
    start stands in a known range, so many rows before its end.
    """
    census = _census(times, starts)
    ends = {side: _ends(census, side, len(starts)) for side in (0, 1)}
    wanted = {
        (side, place): found
        for side in (0, 1)
        for place in range(1, len(starts) + 1)
        if (found := _place_of(ends[side], place, size)) is not None
    }
    ranked = _times_at(times, starts, wanted)
    reaches: tuple[list[int], list[int]] = ([], [])
    sent, needed = [(0, 0)], [(0, 0)]
    for place in range(1, len(starts) + 1):
        rows = []
        for side in (0, 1):
            before = ends[side][place]
            if (side, place) in wanted:
                part, rank = wanted[side, place]
                time, from_there = ranked[side, part, rank]
                reaches[side].append(time)
                rows.append(before - ends[side][part + 1] + from_there)
            else:
                reaches[side].append(LEAST)
                rows.append(before)
        sent.append((rows[0], rows[1]))
        needed.append((min(size, ends[0][place]), min(size, ends[1][place])))
    counts = HaloCounts(tuple(sent), tuple(needed))
    return Halos(tuple(starts), (tuple(reaches[0]), tuple(reaches[1])), counts)


Census = Mapping[tuple[int, int], tuple[int, int]]


def _in_ranges(times: DataFrame, starts: Sequence[int]) -> DataFrame:
    known = times.where(F.col("time").isNotNull())
    return known.withColumn("part", steps_reached("time", starts))


def _census(times: DataFrame, starts: Sequence[int]) -> Census:
    """Return by side and range: how many rows there are, and the last time."""
    groups = _in_ranges(times, starts).groupBy("side", "part")
    found = groups.agg(F.count("*").alias("rows"), F.max("time").alias("last")).collect()
    return {(group.side, group.part): (group.rows, group["last"]) for group in found}


def _last_before(census: Census, side: int, starts: Sequence[int]) -> list[int | None]:
    """Return for each start the last time of the side before it, if there is one."""
    last: int | None = None
    found = []
    for part in range(len(starts)):
        last = census[side, part][1] if (side, part) in census else last
        found.append(last)
    return found


def _ends(census: Census, side: int, starts: int) -> list[int]:
    """Return how many rows of the side come before each range; a last one: all rows."""
    ends = [0]
    for part in range(starts + 1):
        ends.append(ends[-1] + census.get((side, part), (0, 0))[0])
    return ends


def _place_of(ends: Sequence[int], place: int, size: int) -> tuple[int, int] | None:
    """Return the range in which the ``size``-th row before range ``place`` stands, and which row
    of it that is, counted from its end; None if there are not so many rows."""
    if ends[place] < size:
        return None
    part = max(part for part in range(place) if ends[place] - ends[part] >= size)
    return part, size - (ends[place] - ends[part + 1])


def _times_at(
    times: DataFrame, starts: Sequence[int], wanted: Mapping[tuple[int, int], tuple[int, int]]
) -> dict[tuple[int, int, int], tuple[int, int]]:
    """Return by side, range and rank from its end: the time of that row, and how many rows of the
    side and range are not before that time."""
    ranks = sorted({(side, part, rank) for (side, _), (part, rank) in wanted.items()})
    if not ranks:
        return {}
    columns = [pa.array(column, pa.int64()) for column in zip(*ranks, strict=True)]
    asked = times.sparkSession.createDataFrame(
        pa.Table.from_arrays(columns, names=["asked_side", "asked_part", "rank"])
    )
    backwards = Window.partitionBy("side", "part").orderBy(F.desc("time"))
    counted = _in_ranges(times, starts).groupBy("side", "part", "time").agg(F.count("*").alias("n"))
    reached = counted.withColumn(
        "reached", F.sum("n").over(backwards.rowsBetween(Window.unboundedPreceding, 0))
    )
    found = reached.join(
        F.broadcast(asked),
        (F.col("side") == F.col("asked_side"))
        & (F.col("part") == F.col("asked_part"))
        & (F.col("reached") >= F.col("rank"))
        & (F.col("reached") - F.col("n") < F.col("rank")),
    ).collect()
    return {(row.side, row.part, row["rank"]): (row.time, row.reached) for row in found}

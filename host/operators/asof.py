# SPDX-License-Identifier: Apache-2.0
"""As-of joins on the host: each left row with the right row that is closest to it in time."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from host.columns import EncodedSide, encode
from host.columns.codes import Codes, combined, dense
from host.columns.kinds import column_type, contiguous
from host.columns.scale import bound_in_ticks
from host.columns.times import TimePlan, require_temporal
from host.devices.software import SOFTWARE_MANIFEST
from host.errors import UsageError
from host.protocol.manifest import Manifest
from host.query.queries import AsofQuery
from host.query.tables import output_schema
from host.reference.asof import Direction
from host.reference.types import NO_ROW, JoinType
from host.reference.window import TimeWindow

__all__ = [
    "AsofSides",
    "AsofStream",
    "Neighbours",
    "SortedRows",
    "Times",
    "beyond",
    "closest_parts",
    "closest_rows",
    "encode_sides",
    "joined_rows",
    "places",
    "require_tolerance",
]

# Find the right row of every left row at once, by binary searches.
#
# Right rows are numbered in the order of time. The rows of a key, taken by these numbers, form a
# group, and ``key * (number of right rows + 1) + number`` sorts first by group and then by time.
# A left row is placed among all right rows by its time, which gives a number, and among those of
# its group by the same formula: the neighbours of that place are the closest rows before and
# after it.

Bools = npt.NDArray[np.bool_]
Int64s = npt.NDArray[np.int64]
UInt64s = npt.NDArray[np.uint64]


@dataclass(frozen=True, eq=False)
class Times:
    """Rows of one side of an as-of join.

    Parameters
    ----------
    time : array of uint64
        Time of each row. Those of the right side never decrease.
    key : array of int64, optional
        Key of each row, from 0 to less than the number of rows of both sides; None if all rows
        have the same key.
    """

    time: UInt64s
    key: Int64s | None = None


class Neighbours(Protocol):
    """Finds the right rows of each left row's key around a place among all right rows."""

    def last_before(self, number: Int64s) -> Iterator[Int64s]:
        """Yield the last row of each left row's key whose number is less than ``number``.

        Each part is about the left rows that follow those of the part before. None is empty, but
        one that is about no left row at all.
        """
        ...

    def first_from(self, number: Int64s) -> Int64s:
        """Return the first row of each left row's key whose number is at least ``number``."""
        ...


def closest_parts(
    left: Times,
    right: Times,
    direction: Direction,
    *,
    tolerance: int | None = None,
    exact: bool = True,
    neighbours: Neighbours | None = None,
) -> Iterator[Int64s]:
    """Yield the number of the right row that each left row is joined with, as soon as it is known.

    Parameters
    ----------
    left, right : Times
        The rows; either both sides have keys, or neither.
    direction, tolerance, exact
        As for :func:`host.reference.asof.reference_asof`, of which this is the fast form.
    neighbours : Neighbours, optional
        What finds right rows of these sides; by default :class:`SortedRows`. A row may be missing
        if it is farther away than the tolerance.

    Yields
    ------
    array of int64
        One number for each of the next left rows, ``NO_ROW`` if there is no right row for it. What
        looks back alone comes in the parts of ``neighbours``, and anything else comes at once.
    """
    groups = SortedRows(left, right) if neighbours is None else neighbours
    parts: Iterator[Int64s] = iter(())
    if direction.looks_back:
        parts = groups.last_before(places(right.time, left.time, after=exact))
    if not direction.looks_ahead:
        begin = 0
        for back in parts:
            times = left.time[begin : begin + len(back)]
            yield _within(back, _distances(times, right.time, back), tolerance)
            begin += len(back)
        return
    back = np.full(len(left.time), NO_ROW, np.int64)
    if direction.looks_back:
        back = np.concatenate(list(parts))
    ahead = groups.first_from(places(right.time, left.time, after=not exact))
    earlier, later = (_distances(left.time, right.time, rows) for rows in (back, ahead))
    # No distance is farther than the one of a missing row, so a row that exists wins.
    is_back = (back != NO_ROW) & ((ahead == NO_ROW) | (earlier <= later))
    yield _within(np.where(is_back, back, ahead), np.where(is_back, earlier, later), tolerance)


def closest_rows(left: Times, right: Times, direction: Direction, **options: Any) -> Int64s:
    """Return what :func:`closest_parts` yields for the same arguments, all parts as one."""
    return np.concatenate(list(closest_parts(left, right, direction, **options)))


class SortedRows:
    """Finds right rows by binary searches among all of them, sorted by key and time.

    Parameters
    ----------
    left, right : Times
        The rows of both sides.
    """

    def __init__(self, left: Times, right: Times) -> None:
        self._rows = len(right.time)
        self._base: Int64s | None = None
        if left.key is not None and right.key is not None:
            # The numbers of the rows are below this, so keys do not run into one another.
            unit = self._rows + 1
            self._base = left.key * unit
            self._sorted = right.key * unit + np.arange(self._rows)
            self._sorted.sort()

    def last_before(self, number: Int64s) -> Iterator[Int64s]:
        """Yield the last row of each left row's key whose number is less than ``number``."""
        if self._base is None:
            yield np.where(number > 0, number - 1, NO_ROW)
        else:
            yield self._row(np.searchsorted(self._sorted, self._base + number) - 1)

    def first_from(self, number: Int64s) -> Int64s:
        """Return the first row of each left row's key whose number is at least ``number``."""
        if self._base is None:
            return np.where(number < self._rows, number, NO_ROW)
        return self._row(np.searchsorted(self._sorted, self._base + number))

    def _row(self, place: Int64s) -> Int64s:
        """Return the row at a place of the sorted ones, or none if it is of another key."""
        assert self._base is not None
        if not self._rows:
            return np.full(len(place), NO_ROW, np.int64)
        inside = (place >= 0) & (place < self._rows)
        row = self._sorted[np.clip(place, 0, self._rows - 1)] - self._base
        return np.where(inside & (row >= 0) & (row < self._rows), row, NO_ROW)


def places(times: UInt64s, of: UInt64s, *, after: bool) -> Int64s:
    """Return how many ``times`` are less than each one, or not greater if equal ones count."""
    return np.searchsorted(times, of, side="right" if after else "left").astype(np.int64)


def beyond(distance: UInt64s, tolerance: int | None) -> Bools:
    """Return which distances are more than the tolerance."""
    if tolerance is None or tolerance > np.iinfo(np.uint64).max:
        return np.zeros(len(distance), np.bool_)
    return distance > np.uint64(tolerance)


def _within(found: Int64s, distance: UInt64s, tolerance: int | None) -> Int64s:
    """Return the rows that were found, without those that are farther away than the tolerance."""
    return np.where(beyond(distance, tolerance), NO_ROW, found)


def _distances(times: UInt64s, right: UInt64s, rows: Int64s) -> UInt64s:
    """Return how far right rows are away from times; zero where there is none."""
    if not len(right):
        return np.zeros(len(rows), np.uint64)
    other = right[np.maximum(rows, 0)]
    distance = np.maximum(times, other) - np.minimum(times, other)
    return np.where(rows == NO_ROW, np.uint64(0), distance)


# Put rows of two tables side by side.


def joined_rows(
    tables: tuple[pa.Table, pa.Table], numbers: tuple[Int64s, Int64s], schema: pa.Schema
) -> pa.RecordBatch:
    """Return the given rows of two tables as one batch.

    Parameters
    ----------
    tables : tuple of pa.Table
        The left and the right table.
    numbers : tuple of array of int64
        Row numbers of each; ``NO_ROW`` for nulls.
    schema : pa.Schema
        Schema of the batch: the left columns, then the right ones.
    """
    columns = []
    for table, rows in zip(tables, numbers, strict=True):
        missing = rows == NO_ROW
        places = pa.array(rows, mask=missing if missing.any() else None)
        columns += [contiguous(column) for column in table.take(places).columns]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


# Two tables as the times and keys of an as-of join.

#: Integers of 64 bits.
AnyInts = npt.NDArray[np.int64] | npt.NDArray[np.uint64]

_LAST = np.uint64((1 << 64) - 1)


@dataclass(frozen=True, eq=False)
class AsofSides:
    """Two tables as times and keys.

    A row with a null in a key is joined with nothing. Such rows have no key here.

    Parameters
    ----------
    row : array of int64
        Row numbers of the left table, in the order of time.
    keyed : array of int64
        Positions in ``row`` of the rows with a key.
    right_row : array of int64
        Row numbers of the right rows with a key, in the order of time.
    left, right : Times
        Times and keys of ``row[keyed]`` and of ``right_row``.
    all_times : tuple of array of uint64
        Times of all rows of either table, in the order of time.
    tolerance : int or None
        Largest distance, in units of the times.
    plan : TimePlan
        How values of the columns become times.
    """

    row: Int64s
    keyed: Int64s
    right_row: Int64s
    left: Times
    right: Times
    all_times: tuple[UInt64s, UInt64s]
    tolerance: int | None
    plan: TimePlan

    def mirrored(self) -> "AsofSides":
        """Return the same rows in a time that runs backwards, so that looking ahead looks back.

        Rows of one time are in the opposite order too.
        """

        def turned(times: Times) -> Times:
            keys = None if times.key is None else times.key[::-1]
            return Times(_LAST - times.time[::-1], keys)

        return replace(
            self,
            row=self.row[::-1],
            keyed=(len(self.row) - 1 - self.keyed)[::-1],
            right_row=self.right_row[::-1],
            left=turned(self.left),
            right=turned(self.right),
            all_times=(_LAST - self.all_times[0][::-1], _LAST - self.all_times[1][::-1]),
        )

    def joined(self, found: Int64s, first: int = 0) -> tuple[Int64s, Int64s]:
        """Return the rows of the left table up to where these tuples end, and their right rows.

        Rows without a key come before the next row that has one.

        Parameters
        ----------
        found : array of int64
            The tuple of ``right`` for some consecutive tuples of ``left``, ``NO_ROW`` for none.
        first : int
            The first of these tuples. The rows up to it have been returned.
        """
        end = first + len(found)
        begins = int(self.keyed[first]) if first else 0
        ends = int(self.keyed[end]) if end < len(self.keyed) else len(self.row)
        numbers = np.full(ends - begins, NO_ROW, np.int64)
        there = found != NO_ROW
        numbers[self.keyed[first:end][there] - begins] = self.right_row[found[there]]
        return self.row[begins:ends], numbers


def encode_sides(left: pa.Table, right: pa.Table, query: AsofQuery) -> AsofSides:
    """Return the times and keys of two tables.

    Raises
    ------
    UsageError
        If the query does not suit the tables; see :class:`host.operators.asof_tables.AsofJoin`.
    """
    # Key fields of 64 bits hold whatever can be compared.
    encoded = encode(left, right, query.pairs, Manifest.load(SOFTWARE_MANIFEST))
    keyed = _with_keys(encoded.left), _with_keys(encoded.right)
    fields = [
        _numbered(encoded.left.keys[name][keyed[0]], encoded.right.keys[name][keyed[1]])
        for name in encoded.left.keys
    ]
    keys: tuple[Int64s | None, Int64s | None] = (None, None)
    if fields:
        codes = combined(fields)
        if len(fields) > 1:
            codes = _numbered(codes.left, codes.right)
        keys = codes.left.astype(np.int64), codes.right.astype(np.int64)
    times = encoded.left.timestamp, encoded.right.timestamp
    return AsofSides(
        encoded.left.row,
        keyed[0],
        encoded.right.row[keyed[1]],
        Times(times[0][keyed[0]], keys[0]),
        Times(times[1][keyed[1]], keys[1]),
        times,
        encoded.window.lifespan if isinstance(encoded.window, TimeWindow) else None,
        encoded.times,
    )


def require_tolerance(left: pa.Schema, query: AsofQuery) -> None:
    """Raise if the tolerance is no length of the left column of time.

    Raises
    ------
    UsageError
        If a number is given for a temporal column, or a duration for another one.
    """
    on = column_type(left, query.on[0], "left")
    require_temporal(on)
    window = query.pairs.window
    length = window.lifespan if isinstance(window, TimeWindow) else query.tolerance
    bound_in_ticks(length, on, on.tick, "The tolerance")


def _with_keys(side: EncodedSide) -> Int64s:
    """Return which tuples of a side have no null in a key."""
    if side.valid is None:
        return np.arange(len(side))
    return np.flatnonzero(side.valid)


def _numbered(left: AnyInts, right: AnyInts) -> Codes:
    """Return codes that are less than the number of values, which may mean counting the distinct.

    Values that lie close enough together are their own codes, but for the least one.
    """
    least = min((int(values.min()) for values in (left, right) if len(values)), default=0)
    most = max((int(values.max()) for values in (left, right) if len(values)), default=0)
    if most - least < len(left) + len(right):
        low = left.dtype.type(least)
        return Codes((left - low).view(np.uint64), (right - low).view(np.uint64), most - least + 1)
    return dense(
        *(pa.chunked_array([pa.array(values.view(np.uint64))]) for values in (left, right))
    )


# The as-of join of rows that come in pieces: each left row leaves when no row can change it.
#
# Between two pieces two things are kept: left rows that a row to come could still be joined with,
# and right rows that a waiting left row or one to come could still be joined with.

#: No time is later.
_END = (1 << 64) - 1


class AsofStream:
    """An as-of join whose rows come in pieces.

    Parameters
    ----------
    left, right : pa.Schema
        Columns of the inputs.
    query : AsofQuery
        The join.
    ordered : bool
        Whether results come in the order of the left rows' times. A row that can still change then
        holds up the later ones.
    backwards : bool
        Whether pieces come from the latest to the earliest, the rows of each in their usual order,
        and results too, the latest row first. This suits a join that looks ahead: in a time that
        runs backwards it looks back, so no row has to wait for a later one.

    Attributes
    ----------
    schema : pa.Schema
        Schema of the results: the left columns, then the right ones.
    waiting : pa.Table
        Left rows whose right row is not decided yet.
    kept : pa.Table
        Right rows that left rows can still be joined with.

    Raises
    ------
    UsageError
        If the query does not suit the columns.
    """

    def __init__(
        self,
        left: pa.Schema,
        right: pa.Schema,
        query: AsofQuery,
        *,
        ordered: bool = True,
        backwards: bool = False,
    ) -> None:
        if backwards and query.direction is not Direction.FORWARD:
            raise UsageError(
                f"Only a join that looks forward takes rows backwards, not {query.direction.value}."
            )
        require_tolerance(left, query)
        self.schema = output_schema(left, right, query.suffix, query.how)
        self.waiting = left.empty_table()
        self.kept = right.empty_table()
        self._query = query
        self._ordered = ordered
        self._backwards = backwards
        self._direction = Direction.BACKWARD if backwards else query.direction
        encode_sides(self.waiting, self.kept, query)  # raises if the columns do not suit

    def rows_in_order(self, left: pa.Table, right: pa.Table) -> pa.RecordBatch:
        """Take the next rows of inputs in the order of time; return what is decided.

        No row that comes later may have an earlier time than any row of this piece; or a later one,
        backwards.
        """
        return self._decide(left, right, lambda sides: max(map(_latest, sides.all_times)))

    def rows_until(self, left: pa.Table, right: pa.Table, time: object) -> pa.RecordBatch:
        """Take more rows in any order; return what is decided.

        No row that comes later may have an earlier time than ``time``, a value of the left column
        of time.
        """

        def reached(sides: AsofSides) -> int:
            # Rounded down, which decides later at worst. A time before all rows decides nothing.
            plan = sides.plan
            return (plan.ticks(time) - (plan.origin or 0)) // plan.divisor

        return self._decide(left, right, reached)

    def last_rows(self, left: pa.Table, right: pa.Table) -> pa.RecordBatch:
        """Take the last rows, in any order; return all that is left."""
        return self._decide(left, right, None)

    def _decide(
        self, left: pa.Table, right: pa.Table, reached: Callable[[AsofSides], int] | None
    ) -> pa.RecordBatch:
        """Join all rows at hand; return the decided ones, and keep what is needed of the others."""
        # In input order, which is what counts among rows of one time.
        turn = -1 if self._backwards else 1
        left = pa.concat_tables([self.waiting, left][::turn])
        right = pa.concat_tables([self.kept, right][::turn])
        sides = encode_sides(left, right, self._query)
        if self._backwards:
            sides = sides.mirrored()
        found = closest_rows(
            sides.left,
            sides.right,
            self._direction,
            tolerance=sides.tolerance,
            exact=self._query.allow_exact_matches,
        )
        time = _END if reached is None else min(reached(sides), _END)
        decided = np.ones(len(sides.row), np.bool_)
        if reached is not None:
            decided[sides.keyed] = self._decided(sides, found, time)
            if self._ordered:
                decided = np.logical_and.accumulate(decided)
        rows, numbers = sides.joined(found)
        given = decided & (numbers != NO_ROW) if self._query.how is JoinType.INNER else decided
        batch = joined_rows((left, right), (rows[given], numbers[given]), self.schema)
        self.waiting = left.take(pa.array(rows[~decided][::turn])).combine_chunks()
        kept = sides.right_row[:0]
        if reached is not None:
            kept = sides.right_row[self._needed(sides, ~decided[sides.keyed], time)]
        self.kept = right.take(pa.array(kept[::turn])).combine_chunks()
        return batch

    def _decided(self, sides: AsofSides, found: Int64s, reached: int) -> Bools:
        """Return which left rows no row at or after the time ``reached`` can change."""
        times = sides.left.time
        if reached < 0:
            return np.zeros(len(times), np.bool_)
        time = np.uint64(reached)
        # Whether a row to come is too late to be an earlier partner, or the same time's last one.
        passed = times < time if self._query.allow_exact_matches else times <= time
        if self._direction is Direction.BACKWARD:
            return passed
        # A row to come is at least so far ahead. Of equally far rows the one at hand stays.
        ahead = np.where(time > times, time - times, np.uint64(0))
        there = found != NO_ROW
        partner = sides.right.time[found[there]]
        own = times[there]
        settled = beyond(ahead, sides.tolerance)
        settled[there] = np.maximum(partner, own) - np.minimum(partner, own) <= ahead[there]
        return settled if self._direction is Direction.FORWARD else settled & passed

    def _needed(self, sides: AsofSides, waiting: Bools, reached: int) -> Int64s:
        """Return the right rows that waiting left rows and those to come can be joined with."""
        times = sides.right.time
        if reached < 0:
            return np.arange(len(times))
        # No left row that is still without its partner has an earlier time than this.
        least = np.uint64(min([reached, *sides.left.time[waiting].tolist()]))
        first = int(np.searchsorted(times, least))
        needed = np.zeros(len(times), np.bool_)
        needed[first:] = True
        if self._direction.looks_back and first:
            keys = sides.right.key
            before = np.zeros(first, np.int64) if keys is None else keys[:first]
            newest = np.full(int(before.max()) + 1, NO_ROW, np.int64)
            newest[before] = np.arange(first)  # of several rows of a key, the last one stays
            newest = newest[newest != NO_ROW]
            needed[newest] = ~beyond(least - times[newest], sides.tolerance)
        return np.flatnonzero(needed)


def _latest(times: UInt64s) -> int:
    """Return the latest time, -1 if there is none."""
    return int(times[-1]) if len(times) else -1

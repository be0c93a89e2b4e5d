# SPDX-License-Identifier: Apache-2.0
"""The as-of join of the software engine: each left row with the right row closest to it in time."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from host.arrays import Bools, Int64s, UInt64s
from host.reference.types import NO_ROW, Direction

__all__ = [
    "AsofSearch",
    "Neighbours",
    "SortedRows",
    "Times",
    "places",
]


_TOP = (1 << 64) - 1


@dataclass(frozen=True, eq=False)
class Times:
    """Rows of one side of an as-of join, in the order of time.

    Parameters
    ----------
    time : array of uint64
        Time of each row; times never decrease.
    key : array of int64, optional
        Key of each row, from 0 to less than the number of rows of both sides; None if all rows
        have the same key.
    """

    time: UInt64s
    key: Int64s | None = None

    def backwards(self) -> "Times":
        """Return the rows in a time that runs backwards."""
        return Times(
            np.uint64(_TOP) - self.time[::-1], None if self.key is None else self.key[::-1]
        )


class Neighbours(Protocol):
    """Finds the right rows of each left row's key around a place among all right rows."""

    def last_before(self, number: Int64s, *, backwards: bool = False) -> Iterator[Int64s]:
        """Yield the last row of each left row's key whose number is less than ``number``.

        Each part is about the left rows that follow those of the part before. None is empty, but
        one that is about no left row at all.

        Parameters
        ----------
        number : array of int64
        backwards : bool
            Whether the rows of both sides are taken, numbered and returned from the last to the
            first, in a time that runs backwards: so what is ahead is found.
        """
        ...


class SortedRows:
    """Finds right rows by one sort of the rows of both sides by key and time.

    Behind the sort, the closest right row of each place is a running maximum, so no row is searched
    for by itself.

    Parameters
    ----------
    left, right : Times
        The rows of both sides; either both have keys, or neither.
    """

    def __init__(self, left: Times, right: Times) -> None:
        self._keys = None if left.key is None or right.key is None else (left.key, right.key)

    def last_before(self, number: Int64s, *, backwards: bool = False) -> Iterator[Int64s]:
        """See :meth:`Neighbours.last_before`."""
        if self._keys is None:
            yield np.where(number > 0, number - 1, NO_ROW)
        else:
            left, right = (keys[::-1] if backwards else keys for keys in self._keys)
            yield self._closest(left, right, number)

    def _closest(self, left: Int64s, right: Int64s, number: Int64s) -> Int64s:
        """Return the last row of each left key whose number is less than ``number``, ascending."""
        found = np.full(len(left), NO_ROW, np.int64)
        count = len(left) + len(right)
        if not len(left) or not len(right):
            return found
        merged = np.ones(count, np.bool_)  # whether the row at a place of both sides is a right one
        merged[number + np.arange(len(left))] = False
        # Key, place and side as one number: sorting numbers takes a fifth of the time of `argsort`.
        packed = np.empty(count, np.int64)
        packed[merged], packed[~merged] = right, left
        bits = count.bit_length()
        packed <<= bits
        packed |= np.arange(count)
        packed <<= 1
        packed |= merged
        packed.sort()
        # Numbers ascend, so the greatest one of a right row up to a place is the closest one.
        side = packed & 1
        nearest = packed * side
        np.maximum.accumulate(nearest, out=nearest)
        seekers = np.flatnonzero(side == 0)
        packed, nearest = packed[seekers], nearest[seekers]
        there = np.flatnonzero((nearest & 1) & (packed ^ nearest < 2 << bits))
        mask = (1 << bits) - 1
        mine = packed[there] >> 1 & mask
        theirs = nearest[there] >> 1 & mask
        # The number of a row is its place without the rows of the other side before it.
        rights = np.cumsum(merged, dtype=np.int32 if bits < 32 else np.int64)
        found[mine - rights[mine]] = rights[theirs] - 1
        return found


@dataclass(frozen=True)
class AsofSearch:
    """Search of an as-of join; the fast :func:`host.reference.asof.reference_asof`.

    Parameters
    ----------
    direction : Direction
        Where to look.
    tolerance : int, optional
        Largest distance in time, in units of the times.
    exact : bool
        Whether a right row with the same time counts.
    """

    direction: Direction
    tolerance: int | None = None
    exact: bool = True

    def parts(
        self, left: Times, right: Times, neighbours: Neighbours | None = None
    ) -> Iterator[Int64s]:
        """Yield the number of the right row that each left row is joined with, once it is known.

        Parameters
        ----------
        left, right : Times
            The rows; either both sides have keys, or neither.
        neighbours : Neighbours, optional
            What finds right rows of these sides; by default :class:`SortedRows`. A row may be
            missing if it is farther away than the tolerance.

        Yields
        ------
        array of int64
            One number for each of the next left rows, ``NO_ROW`` if there is no right row for it.
            What looks back alone comes in the parts of ``neighbours``, and anything else comes at
            once.
        """
        groups = SortedRows(left, right) if neighbours is None else neighbours
        parts: Iterator[Int64s] = iter(())
        if self.direction.looks_back:
            parts = groups.last_before(places(right.time, left.time, after=self.exact))
        if not self.direction.looks_ahead:
            begin = 0
            for back in parts:
                if self.tolerance is not None:
                    times = left.time[begin : begin + len(back)]
                    back = self._within(back, _distances(times, right.time, back))
                begin += len(back)
                yield back
            return
        back = np.full(len(left.time), NO_ROW, np.int64)
        if self.direction.looks_back:
            back = np.concatenate(list(parts))
        rows = len(right.time)
        number = rows - places(right.time, left.time, after=not self.exact)[::-1]
        last = np.concatenate(list(groups.last_before(number, backwards=True)))[::-1]
        ahead = np.where(last == NO_ROW, NO_ROW, rows - 1 - last)
        earlier, later = (_distances(left.time, right.time, rows) for rows in (back, ahead))
        # No distance is farther than the one of a missing row, so a row that exists wins.
        is_back = (back != NO_ROW) & ((ahead == NO_ROW) | (earlier <= later))
        yield self._within(np.where(is_back, back, ahead), np.where(is_back, earlier, later))

    def rows(self, left: Times, right: Times, neighbours: Neighbours | None = None) -> Int64s:
        """Return what :meth:`parts` yields for the same arguments, all parts as one."""
        return np.concatenate(list(self.parts(left, right, neighbours)))

    def settled(self, left: Times, right: Times, found: Int64s, reached: int) -> Bools:
        """Return which left rows no right row at or after the time ``reached`` can change.

        Parameters
        ----------
        left, right : Times
            The rows so far.
        found : array of int64
            What :meth:`rows` returned for them.
        reached : int
            No row to come has an earlier time.
        """
        times = left.time
        if reached < 0:
            return np.zeros(len(times), np.bool_)
        time = np.uint64(reached)
        # Whether a row to come is too late to be an earlier partner, or the same time's last one.
        passed = times < time if self.exact else times <= time
        if self.direction is Direction.BACKWARD:
            return passed
        # A row to come is at least so far ahead. Of equally far rows the one at hand stays.
        ahead = np.where(time > times, time - times, np.uint64(0))
        there = found != NO_ROW
        partner = right.time[found[there]]
        own = times[there]
        settled = self._beyond(ahead)
        settled[there] = np.maximum(partner, own) - np.minimum(partner, own) <= ahead[there]
        return settled if self.direction is Direction.FORWARD else settled & passed

    def needed(self, left: Times, right: Times, waiting: Bools, reached: int) -> Int64s:
        """Return the right rows that waiting left rows and those to come can be joined with.

        Parameters
        ----------
        left, right : Times
            The rows so far.
        waiting : array of bool
            Which left rows are still without their partner.
        reached : int
            No row to come has an earlier time.
        """
        times = right.time
        if reached < 0:
            return np.arange(len(times))
        # No left row that is still without its partner has an earlier time than this.
        first_waiting = int(np.argmax(waiting)) if waiting.any() else None
        least = np.uint64(
            reached if first_waiting is None else min(reached, int(left.time[first_waiting]))
        )
        first = int(np.searchsorted(times, least))
        needed = np.zeros(len(times), np.bool_)
        needed[first:] = True
        if self.direction.looks_back and first:
            before = np.zeros(first, np.int64) if right.key is None else right.key[:first]
            newest = np.full(int(before.max()) + 1, NO_ROW, np.int64)
            newest[before] = np.arange(first)  # of several rows of a key, the last one stays
            newest = newest[newest != NO_ROW]
            needed[newest] = ~self._beyond(least - times[newest])
        return np.flatnonzero(needed)

    def _beyond(self, distance: UInt64s) -> Bools:
        """Return which distances are more than the tolerance."""
        if self.tolerance is None or self.tolerance > _TOP:
            return np.zeros(len(distance), np.bool_)
        return distance > np.uint64(self.tolerance)

    def _within(self, found: Int64s, distance: UInt64s) -> Int64s:
        """Return the rows that were found, without those farther away than the tolerance."""
        return np.where(self._beyond(distance), NO_ROW, found)


def places(times: UInt64s, of: UInt64s, *, after: bool) -> Int64s:
    """Return how many ``times`` are less than each one, or not greater if equal ones count."""
    return np.searchsorted(times, of, side="right" if after else "left").astype(np.int64)


def _distances(times: UInt64s, right: UInt64s, rows: Int64s) -> UInt64s:
    """Return how far right rows are away from times; zero where there is none."""
    if not len(right):
        return np.zeros(len(rows), np.uint64)
    other = right[np.maximum(rows, 0)]
    distance = np.maximum(times, other) - np.minimum(times, other)
    return np.where(rows == NO_ROW, np.uint64(0), distance)

# SPDX-License-Identifier: Apache-2.0
"""Find the right row of every left row at once, by binary searches.

Right rows are numbered in the order of time. The rows of a key, taken by these numbers, form a
group, and ``key * (number of right rows + 1) + number`` sorts first by group and then by time. A
left row is placed among all right rows by its time, which gives a number, and among those of its
group by the same formula: the neighbours of that place are the closest rows before and after it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from host.reference.direction import Direction
from host.reference.join_type import NO_ROW

__all__ = [
    "Neighbours",
    "SortedRows",
    "Times",
    "beyond",
    "closest_parts",
    "closest_rows",
    "places",
]

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

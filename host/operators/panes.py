# SPDX-License-Identifier: Apache-2.0
"""Windowed aggregation on arrays: by panes, and by a sweep over windows that hold most keys."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from typing import TypeAlias

import numpy as np

from host.arrays import Array, Bools, Int64s
from host.engine.equal_keys import order_and_values, order_by_both

__all__ = [
    "COMBINES",
    "Cells",
    "Combine",
    "WindowStates",
    "cells_of",
    "reduce_ranges",
    "reduce_segments",
    "run_begins",
]

# Runs of equal rows, among rows that are sorted.


def run_begins(columns: Sequence[Array]) -> Bools:
    """Return which rows differ from the one before in any of their columns; the first one does."""
    changes = reduce(np.logical_or, (column[1:] != column[:-1] for column in columns))
    begins: Bools = np.concatenate([[True], changes])[: len(columns[0])]
    return begins


# Windowed aggregation on arrays, by panes: every tuple is reduced once, every window from panes.
#
# A *cell* is the state of one key in one pane. The cells of a window are neighbours among those
# of its key, so its state is a reduction over a range of cells.

#: Combination of two arrays of states, element by element; associative and commutative.
Combine: TypeAlias = Callable[[Array, Array], Array]
#: Combinations of the functions that NumPy has.
COMBINES: dict[str, np.ufunc] = {
    "count": np.add,
    "sum": np.add,
    "min": np.minimum,
    "max": np.maximum,
}

#: Sums of floats may be infinite, or NaN where infinities of both signs meet.
_SILENT = np.errstate(over="ignore", invalid="ignore")
#: Most panes of a window that a sweep combines.
_MOST_PANES = 64
#: Largest number of keys and windows for each cell with which a sweep is worth while.
_SPARSEST = 32


@dataclass(frozen=True)
class WindowStates:
    """States of windows, sorted by (window, key).

    Parameters
    ----------
    window : array of int64
        Number n of the window ``[n * advance, n * advance + size)``.
    key : array of int64
        Code of the key.
    states : tuple of array
        The state of each reduction.
    """

    window: Int64s
    key: Int64s
    states: tuple[Array, ...]


@dataclass(frozen=True)
class Cells:
    """States of keys in panes, sorted by (key, pane); each pair of them once.

    Parameters
    ----------
    key, pane : array of int64
        Code of the key, and number of the pane: time divided by its length, rounded down.
    states : tuple of array
        The state of each reduction.
    """

    key: Int64s
    pane: Int64s
    states: tuple[Array, ...]

    def __len__(self) -> int:
        """Return the number of cells."""
        return len(self.key)

    @classmethod
    def none(cls, states: int) -> "Cells":
        """Return no cells, of so many reductions."""
        empty = np.zeros(0, np.int64)
        return cls(empty, empty, (empty,) * states)

    def with_tuples(
        self,
        keys: Int64s,
        panes: Int64s,
        values: Sequence[Array],
        combines: Sequence[Combine],
    ) -> "Cells":
        """Return the cells of the tuples of these cells and of more tuples; see :func:`cells_of`.

        One sort has all of them in order: a state is what its tuple contributes.
        """
        if not len(keys):
            return self
        if len(self):
            keys, panes = np.concatenate([self.key, keys]), np.concatenate([self.pane, panes])
            values = [np.concatenate(pair) for pair in zip(self.states, values, strict=True)]
        return cells_of(keys, panes, values, combines)

    def after(self, pane: int) -> "Cells":
        """Return the cells from ``pane`` on."""
        kept = np.flatnonzero(self.pane >= pane)
        return Cells(self.key[kept], self.pane[kept], tuple(at[kept] for at in self.states))

    @_SILENT
    def windows(
        self,
        length: int,
        advance: int,
        combines: Sequence[Combine],
        *,
        first: int | None = None,
        last: int | None = None,
    ) -> WindowStates:
        """Return the states of all windows that hold a cell.

        Windows of one pane, one behind the other, are the cells, which may then be in any order.

        Parameters
        ----------
        length, advance : int
            Panes of a window, and panes that the next one begins later.
        combines : sequence of Combine
            Combination of each reduction's states.
        first, last : int, optional
            Windows with a lower and with a higher number are left out.
        """
        if not len(self):
            return WindowStates(self.key, self.key, self.states)
        lowest = (int(self.pane.min()) - length) // advance + 1
        highest = int(self.pane.max()) // advance
        lowest = lowest if first is None else max(lowest, first)
        highest = highest if last is None else min(highest, last)
        if length == advance == 1:
            some = np.flatnonzero((lowest <= self.pane) & (self.pane <= highest))
            some = some[order_by_both(self.pane[some], self.key[some])]
            states = tuple(values[some] for values in self.states)
            return WindowStates(self.pane[some], self.key[some], states)
        if self.fills(length, advance, highest - lowest + 1):
            return Sweep(self, combines, length, advance).windows(lowest, highest)
        window, key, begin, end = self._ranges(length, advance, lowest, highest)
        states = tuple(
            reduce_ranges(values, begin, end, combine)
            for values, combine in zip(self.states, combines, strict=True)
        )
        order = order_by_both(window, key)
        return WindowStates(window[order], key[order], tuple(at[order] for at in states))

    def fills(self, length: int, advance: int, windows: int) -> bool:
        """Return whether windows hold so many keys that a sweep over them is worth while."""
        if windows < 1 or length > _MOST_PANES or any(at.dtype == object for at in self.states):
            return False
        keys = int(self.key.max()) + 1
        return keys * windows <= _SPARSEST * len(self) and windows <= len(self)

    def _ranges(
        self, length: int, advance: int, first: int, last: int
    ) -> tuple[Int64s, Int64s, Int64s, Int64s]:
        """Return (window, key, first cell, cell behind the last) of each window of each key."""
        lowest = np.maximum((self.pane - length) // advance + 1, first)
        highest = np.minimum(self.pane // advance, last)
        # A cell adds the windows that no earlier cell of its key is in.
        same = np.flatnonzero(self.key[1:] == self.key[:-1]) + 1
        lowest[same] = np.maximum(lowest[same], highest[same - 1] + 1)
        added = np.maximum(highest - lowest + 1, 0)
        cell = np.repeat(np.arange(len(self), dtype=np.int64), added)
        place = np.arange(len(cell), dtype=np.int64) - np.repeat(np.cumsum(added) - added, added)
        window = lowest[cell] + place
        # The first cell of a window is the one that adds it: earlier cells are before the window,
        # unless the window was left out for them, and then for this one too.
        panes, rank = np.unique(self.pane, return_inverse=True)
        places = self.key * (len(panes) + 1) + rank
        behind = np.searchsorted(panes, window * advance + length)
        end = np.searchsorted(places, self.key[cell] * (len(panes) + 1) + behind)
        return window, self.key[cell], cell, end.astype(np.int64)


@_SILENT
def cells_of(
    keys: Int64s, panes: Int64s, values: Sequence[Array], combines: Sequence[Combine]
) -> Cells:
    """Return the cells of tuples.

    Parameters
    ----------
    keys, panes : array of int64
        Code of a tuple's key, not negative, and the number of its pane. Codes times panes must fit
        64 bits, as those that count distinct keys do.
    values : sequence of array
        What each tuple contributes to each reduction.
    combines : sequence of Combine
        Combination of each reduction's states.
    """
    low = int(panes.min()) if len(panes) else 0
    span = (int(panes.max()) - low + 1) if len(panes) else 1
    if len(keys) and (int(keys.max()) + 1) * span < 1 << 62:
        place = keys * span + (panes - low)
        order, in_order = order_and_values(place)
        ordered = [in_order]
    else:
        order = np.lexsort((panes, keys))
        ordered = [keys[order], panes[order]]
    begins = np.flatnonzero(run_begins(ordered)).astype(np.int64)
    first = order[begins]
    states = tuple(
        reduce_segments(column[order], begins, combine)
        for column, combine in zip(values, combines, strict=True)
    )
    return Cells(keys[first], panes[first], states)


def reduce_segments(values: Array, begins: Int64s, combine: Combine) -> Array:
    """Return the reduction of each segment of an array.

    Parameters
    ----------
    values : array
    begins : array of int64
        Where segments begin: rising, from 0 on; none is empty.
    combine : Combine
        NumPy's own functions take their own way, others about log2 of the longest segment calls.
    """
    if not len(begins):
        return values[:0]
    if combine is np.add and values.dtype == np.int64:
        # Differences of running sums are exact, as both wrap around.
        lasts = np.append(begins[1:], len(values)) - 1
        reduced: Array = np.diff(np.cumsum(values)[lasts], prepend=0)
        return reduced
    if isinstance(combine, np.ufunc):
        return combine.reduceat(values, begins)
    lengths = np.diff(begins, append=len(values))
    while lengths.max() > 1:
        place = np.arange(len(values)) - np.repeat(begins, lengths)
        paired = np.flatnonzero((place % 2 == 0) & (place + 1 < np.repeat(lengths, lengths)))
        values = values.copy()
        values[paired] = combine(values[paired], values[paired + 1])
        values = values[place % 2 == 0]
        lengths = (lengths + 1) // 2
        begins = np.cumsum(lengths) - lengths
    return values


@_SILENT
def reduce_ranges(values: Array, begin: Int64s, end: Int64s, combine: Combine) -> Array:
    """Return the reduction of each range of an array; ranges may overlap, and none is empty.

    A range is put together from runs of 1, 2, 4, … elements, one for each bit of its length, so
    any associative function needs a logarithmic number of calls.
    """
    if combine is np.add and values.dtype == np.int64:
        sums = np.concatenate([[0], np.cumsum(values)])  # exact, as both wrap around
        return sums[end] - sums[begin]
    length, at = end - begin, begin.copy()
    state = np.zeros(len(begin), values.dtype)
    started = np.zeros(len(begin), np.bool_)
    runs, width = values, 1
    while len(begin) and width <= int(length.max()):
        some = np.flatnonzero(length & width)
        found = runs[at[some]]
        going = started[some]
        found[going] = combine(state[some[going]], found[going])
        state[some], started[some] = found, True
        at[some] += width
        runs = combine(runs[: max(len(runs) - width, 0)], runs[width:])
        width *= 2
    return state


# Sweep over windows that hold most keys: one state per key, moved from window to window.
#
# Where the keys of a window are many, this is an order of magnitude faster than the reduction of
# a range of cells for each result, because results come sorted and states are read in order.

#: The keys and the states of a window.
Step: TypeAlias = tuple[Int64s, list[Array]]


class Sweep:
    """Cells by their panes, and the windows over them.

    Parameters
    ----------
    cells : Cells
        Keys are numbers from 0 on.
    combines : sequence of Combine
        Combination of each reduction's states.
    length, advance : int
        Panes of a window, and panes that the next one begins later.
    """

    def __init__(
        self, cells: Cells, combines: Sequence[Combine], length: int, advance: int
    ) -> None:
        order = np.argsort(cells.pane, kind="stable")
        self._key, self._pane = cells.key[order], cells.pane[order]
        self._columns = [column[order] for column in cells.states]
        self._combines, self._length, self._advance = combines, length, advance

    def windows(self, first: int, last: int) -> WindowStates:
        """Return the states of the windows ``first .. last`` in their order."""
        # What leaves a window is taken out of its state where that is exact: for sums of integers.
        # A sum of floats would keep the rounding of what has left.
        slides = all(
            combine is np.add and column.dtype == np.int64
            for combine, column in zip(self._combines, self._columns, strict=True)
        )
        states = [np.zeros(int(self._key.max()) + 1, column.dtype) for column in self._columns]
        way = self._slid if slides else self._rebuilt
        steps = list(way(states, range(first, last + 1)))
        window = np.repeat(np.arange(first, last + 1), [len(found) for found, _ in steps])
        columns = zip(*(values for _, values in steps), strict=True)
        joined = tuple(np.concatenate(column) for column in columns)
        return WindowStates(window, np.concatenate([found for found, _ in steps]), joined)

    def _slid(self, states: list[Array], windows: range) -> Iterator[Step]:
        """Yield each window; panes come in and go out."""
        held = np.zeros(len(states[0]), np.int64)  # cells of each key in the window
        begins = np.array(windows) * self._advance
        came = left = int(np.searchsorted(self._pane, begins[0]))
        for behind, before in zip(
            np.searchsorted(self._pane, begins + self._length).tolist(),
            np.searchsorted(self._pane, begins).tolist(),
            strict=True,
        ):
            for span, sign in ((slice(came, behind), 1), (slice(left, before), -1)):
                keys = self._key[span]
                np.add.at(held, keys, sign)  # several panes of a span may have one key
                for state, column in zip(states, self._columns, strict=True):
                    np.add.at(state, keys, sign * column[span])
            came, left = behind, before
            found = np.flatnonzero(held)
            yield found, [state[found] for state in states]

    def _rebuilt(self, states: list[Array], windows: range) -> Iterator[Step]:
        """Yield each window, combined from its panes one after the other."""
        begin, length = windows[0] * self._advance, self._length
        last = windows[-1] * self._advance + length
        bounds = np.searchsorted(self._pane, np.arange(begin, last + 1)).tolist()
        for window in windows:
            held = np.zeros(len(states[0]), np.bool_)
            place = window * self._advance - begin
            for low, high in pairwise(bounds[place : place + length + 1]):
                keys = self._key[low:high]
                fresh = ~held[keys]
                for state, column, combine in zip(
                    states, self._columns, self._combines, strict=True
                ):
                    values = column[low:high]
                    state[keys] = np.where(fresh, values, combine(state[keys], values))
                held[keys] = True
            found = np.flatnonzero(held)
            yield found, [state[found] for state in states]

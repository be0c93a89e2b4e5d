# SPDX-License-Identifier: Apache-2.0
"""Which core stores which tuple: CORE and SEGMENT, by ``docs/architecture.md``, sections 2 and 3.

Moments are as in :mod:`sim.soak.model`.
"""

from bisect import bisect
from dataclasses import dataclass

import numpy as np

__all__ = ["Places", "Turns", "read_turns"]

#: A segment is refused while a window holds tuples of the one that began so many before it.
REFUSED = 3


@dataclass(frozen=True)
class Places:
    """Where the tuples of one side are stored, in their order.

    Parameters
    ----------
    core, local : int64 arrays
        Core of each tuple, and the tuple's number among those of its window in that core.
    window : int64 array
        Number of the window of each tuple.
    """

    core: np.ndarray
    local: np.ndarray
    window: np.ndarray

    def held(self, low):
        """Return, for each tuple, how many of its core's tuples from ``low`` on came before it."""
        count = len(self.core)
        group = ranked(self.window, self.core)
        order = np.argsort(group * (count + 1) + np.arange(count))
        keys = group[order] * (count + 1) + order
        first = np.searchsorted(keys, group * (count + 1) + low)
        at = np.empty(count, np.int64)
        at[order] = np.arange(count)
        return at - first


class Turns:
    """The segments of a program.

    Parameters
    ----------
    cores : int

    Attributes
    ----------
    begins : list of int
        Moments at which segments begin.
    lives : list of list of int
        The cores of each segment, in the order of their turns.
    """

    def __init__(self, cores):
        self.begins, self.lives = [-1], [list(range(cores))]

    def number(self, moments):
        """Return the number of the segment at each of some moments."""
        return np.searchsorted(self.begins, moments) - 1

    def live(self, moments):
        """Return how many cores store at each of some moments."""
        return np.array([len(live) for live in self.lives])[self.number(moments)]

    def table(self):
        """Return the cores of each segment, a row, in the order of their turns; then -1."""
        most = len(self.lives[0])
        return np.array([live + [-1] * (most - len(live)) for live in self.lives])

    def answering(self, moments, masks):
        """Tell of each turn at each of some moments, a row, whether a core has it and answers."""
        core = self.table()[self.number(moments)]
        return (core >= 0) & ~masks.of(moments[:, None], core)

    def places(self, history):
        """Return the :class:`Places` of the tuples of a :class:`sim.soak.history.History`."""
        moments = history.tuples.moment[history.stored]
        window, segment = history.windows.at(moments), self.number(moments)
        at = np.arange(len(moments))
        # The turns begin with a window and with a segment.
        fresh = np.ones(len(moments), bool)
        fresh[1:] = (window[1:] != window[:-1]) | (segment[1:] != segment[:-1])
        turn = at - np.maximum.accumulate(np.where(fresh, at, 0))
        core = self.table()[segment, turn % self.live(moments)]
        group = ranked(window, core)
        order = np.argsort(group, kind="stable")
        local = np.empty(len(moments), np.int64)
        local[order] = at - np.searchsorted(group[order], group[order])
        return Places(core, local, window)


def ranked(window, core):
    """Return a number for each pair of window and core."""
    return window * (int(core.max(initial=0)) + 1) + core


def read_turns(cores, controls, tuples):
    """Return the :class:`Turns` of a program; tell ``controls`` what is illegal and what is not.

    Parameters
    ----------
    cores : int
    controls : sim.soak.controls.Controls
    tuples : sim.soak.tuples.Tuples
        Of both sides, without those that are out of order.
    """
    turns, listed, era = Turns(cores), [], 0
    sides = [Held(controls.windows(n), tuples.moment[tuples.side == n]) for n in (0, 1)]
    for moment, op, value in controls.turns:
        if bisect(controls.clears, moment) != era:
            listed, era = [], bisect(controls.clears, moment)
        if op == "CORE" and 0 <= value < cores and value not in listed:
            listed.append(value)
        elif op == "SEGMENT" and listed and not any(side.needs(moment, turns) for side in sides):
            turns.begins.append(moment)
            turns.lives.append(listed)
            controls.closings.append(moment)
            listed = []
        else:
            controls.illegal.append(moment)
            continue
        controls.counts[op] += 1
    controls.closings.sort()
    return turns


class Held:
    """What the windows of a side hold."""

    def __init__(self, windows, moments):
        self.windows, self.moments = windows, moments

    def needs(self, moment, turns):
        """Tell whether a count-based window holds tuples too old for a segment to begin now."""
        window = int(self.windows.at(moment))
        first, after = np.searchsorted(self.moments, [self.windows.begin[window], moment]).tolist()
        if self.windows.timed[window] or first == after:
            return False
        oldest = max(first, after - int(self.windows.size[window]))
        newest = len(turns.begins)  # the number that the segment would have
        return newest - int(turns.number(self.moments[oldest])) >= REFUSED

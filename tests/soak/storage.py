# SPDX-License-Identifier: Apache-2.0
"""Which tuples the windows hold, which core stores which, and which cores are masked.

By ``docs/architecture.md``, sections 2 and 3. Moments are as in :mod:`tests.soak.model`.
"""

from bisect import bisect
from dataclasses import dataclass

import numpy as np

from .words import WordLayout, as_numbers, parameters_of

__all__ = ["History", "Masks", "Places", "Turns", "is_lawful", "read_turns"]


#: A segment is refused while a window holds tuples of the one that began so many before it.
REFUSED = 3


class History:
    """All stored tuples of one side, numbered by their *places* in the order of arrival.

    Parameters
    ----------
    tuples : tests.soak.reading.Tuples
        Of both sides, none of them out of order.
    side : int
    windows : tests.soak.reading.Windows
        Those of the side.
    faults : tests.soak.reading.Faults
        It knows the eras.
    timestamp_bits : int
        Up to 48, so that a number of 64 bits has room for the era above a timestamp.

    Attributes
    ----------
    stored : int64 array
        Numbers of the side's tuples.
    begins : int64 array
        For each window, the place of its first tuple.
    """

    def __init__(self, tuples, side, windows, faults, timestamp_bits):
        self.tuples, self.windows = tuples, windows
        self.stored = np.flatnonzero(tuples.side == side)
        self.begins = np.searchsorted(tuples.moment[self.stored], windows.begin)
        # Time restarts with an era. Together they never go back.
        era = faults.era(tuples.moment).astype(np.uint64)
        self.clock = era << np.uint64(timestamp_bits) | tuples.time

    def oldest_beside(self):
        """Return, for each stored tuple, the oldest one that stays in the window beside it.

        It is given by its place. Of a full count-based window the oldest tuple leaves.
        """
        window, low, high = self.spans(self.stored)
        size = self.windows.size[window]
        leaves = ~self.windows.timed[window] & (high - low >= size)
        return low + leaves

    def spans(self, others):
        """Return what the window holds at the arrival of some tuples, of either side.

        Returns
        -------
        window : int64 array
            The number of the window for each tuple.
        low, high : int64 arrays
            The places in it are ``low .. high - 1``. Neither falls from one tuple to the next.
        """
        window = self.windows.at(self.tuples.moment[others])
        first, size = self.begins[window], self.windows.size[window]
        high = np.searchsorted(self.stored, others)
        low = np.maximum(high - size, first)
        timed = np.flatnonzero(self.windows.timed[window])
        if len(timed):
            now, lifespan = others[timed], size[timed].astype(np.uint64)
            oldest = self.clock[now] - np.minimum(lifespan, self.tuples.time[now])
            alive = np.searchsorted(self.clock[self.stored], oldest)
            low[timed] = np.clip(alive, first[timed], high[timed])
        return window, low, high


# Turns: CORE and SEGMENT choose which core stores which tuple.


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
        """Return the :class:`Places` of the tuples of a :class:`tests.soak.storage.History`."""
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
    controls : tests.soak.reading.Controls
    tuples : tests.soak.reading.Tuples
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


# Masks: MASK and UNMASK choose which cores answer.


class Masks:
    """The masked cores of a program.

    A program gives new windows after UNMASK, so no window holds tuples that a core has forgotten.

    Parameters
    ----------
    cores : int
    changes : list of (int, int, bool)
        Moment, core, and whether the core is masked from then on, in the order of their moments. A
        core that does not exist is none.
    mute : int, optional
        A core that is masked all the time.
    """

    def __init__(self, cores, changes, mute=None):
        self.begins, self.rows = [-1], [np.arange(cores) == mute]
        for moment, core, masked in changes:
            if 0 <= core < cores and core != mute:
                row = self.rows[-1].copy()
                row[core] = masked
                self.begins.append(moment)
                self.rows.append(row)
        self.rows = np.stack(self.rows)

    def of(self, moments, cores):
        """Tell of each core whether it is masked at the moment beside it."""
        return self.rows[np.searchsorted(self.begins, moments) - 1, cores]

    def changes(self, core):
        """Return the moments of the words that mask a core, or let it take part again."""
        changes = np.diff(self.rows[:, core].astype(np.int8)) != 0
        return np.array(self.begins[1:], np.int64)[changes]


def is_lawful(manifest, words):
    """Tell whether a configuration follows each UNMASK of a core before the next tuple.

    It gives windows of both sides, all bounds, the parts of all fields, first of width 0, and all
    cells. What a core answers without them is not fixed.
    """
    operations, kinds = manifest["operations"], manifest["input_kinds"]
    if "UNMASK" not in operations:
        return True
    layout = WordLayout(manifest["input_word"])
    kind = layout.get(words, "kind")
    is_tuple = np.isin(kind, [kinds[name] for name in ("R", "S", "BOTH") if name in kinds])
    tuples_before = np.cumsum(is_tuple)
    controls = np.flatnonzero(kind == kinds["CONTROL"])
    names = {code: name for name, code in operations.items()}
    fields = len(parameters_of(manifest)["keys"])
    every = {("window", side) for side in (0, 1)}
    for name in {"BOUND_LOW", "BOUND_HIGH", "COORDINATE"} & operations.keys():
        every |= {(name, field) for field in range(fields)}
    if "CELL" in operations:
        every |= {("CELL", part) for part in range(manifest["indices"]["CELL"])}
    missing, since = set(), 0
    for number, before in zip(
        as_numbers(words[controls]), tuples_before[controls].tolist(), strict=True
    ):
        if missing and before > since:
            return False
        op = names.get(layout.value(number, "control.op"))
        index = layout.value(number, "control.index")
        if op == "UNMASK":
            core = layout.value(number, "control.value")
            if 0 <= core < manifest["storage"]["cores"]:
                missing, since = set(every), before
        if op != "COORDINATE" or layout.value(number, "control.value") == 0:
            missing.discard(("window" if op in ("WINDOW", "LIFESPAN") else op, index))
    return not missing or int(is_tuple.sum()) == since

# SPDX-License-Identifier: Apache-2.0
"""Which probes and rounds a star follows, and when it is due.

By ``docs/architecture.md``, "Precision" and "Rounds".
"""

from dataclasses import dataclass

import numpy as np

from .results import order_of
from .words import parameters_of

__all__ = ["Stars", "round_sizes", "rounds_with_stars", "stars_of"]

NEVER = 1 << 62


@dataclass(frozen=True)
class Stars:
    """The stars of a program, in the order in which they are due.

    Parameters
    ----------
    moment : int64 array
        Moment of the word that closed the star's group.
    side : int64 array
    of : int64 array
        For every tuple, the star that follows it.
    probe : int64 array
        For every tuple, its index among the probes of its side since the star before, modulo the
        greatest period of stars.
    """

    moment: np.ndarray
    side: np.ndarray
    of: np.ndarray
    probe: np.ndarray


def group_ends(mine, other, closing, size, patience):
    """Return where the groups of one side begin, and the moments at which they end.

    Parameters
    ----------
    mine, other : int64 arrays
        Moments of the probes of a side, and of the other side's tuples.
    closing : int64 array
        For each probe, the moment of the next word that closes groups.
    size, patience : int64 arrays
        For a group that begins with each probe: how many probes fill it, and how many tuples of the
        other side end it early.

    Returns
    -------
    begins : int64 array
        Which probe is the first of each group; all that follow belong to it, up to the next one.
    ends : int64 array
        Moments at which the groups end: with a probe, a tuple of the other side, or a closing word.
    """
    at = np.arange(len(mine))
    full = member(mine, at + size - 1)
    late = member(other, np.searchsorted(other, mine) + patience - 1)
    end = np.minimum(np.minimum(full, late), closing)
    # Groups of one are known. As nothing but a closing word changes the size, none of the others
    # has such a probe in it.
    is_first = size == 1
    others = np.flatnonzero(~is_first)
    after = np.searchsorted(mine[others], end[others], side="right").tolist()
    begins, first, count = [], 0, len(others)
    while first < count:
        begins.append(first)
        first = after[first]
    is_first[others[begins]] = True
    begins = np.flatnonzero(is_first)
    return begins, end[begins]


def member(values, places):
    """Return the values at some places; ``NEVER`` at those beyond the last one."""
    return np.append(values, NEVER)[np.minimum(places, len(values))]


def stars_of(manifest, moments, sides, controls, turns):
    """Return the :class:`Stars` of tuples that were not dropped, all of them before a FLUSH."""
    probes, storage = parameters_of(manifest)["probes"], manifest["storage"]
    period = controls.periods(moments)
    # No star follows a group that ends before its period does.
    patience = np.where(period > probes, NEVER, turns.live(moments) * storage["slack"])
    closings = np.array(controls.closings, np.int64)
    closing = member(closings, np.searchsorted(closings, moments))
    due, side_of = [], []
    of, index = np.zeros(len(moments), np.int64), np.zeros(len(moments), np.int64)
    count = 0
    for side in (0, 1):
        mine, other = np.flatnonzero(sides == side), np.flatnonzero(sides != side)
        begins, ends = group_ends(
            moments[mine], moments[other], closing[mine], period[mine], patience[mine]
        )
        sizes = np.diff(begins, append=len(mine))
        of[mine] = count + np.repeat(np.arange(len(begins)), sizes)
        index[mine] = np.arange(len(mine)) - np.repeat(begins, sizes)
        due.append(ends)
        side_of.append(np.full(len(ends), side))
        count += len(ends)
    due, side_of = np.concatenate(due), np.concatenate(side_of)
    order = order_of(due, side_of)
    rank = np.empty(count, np.int64)
    rank[order] = np.arange(count)
    index %= 1 << parameters_of(manifest)["probe_bits"]
    return Stars(due[order], side_of[order], rank[of], index)


# Rounds of stored tuples: INNER sets how many tuples of a core each has.


def round_sizes(controls, turns, tuples):
    """Return the size of the rounds for each tuple, as a probe; 0 where there are none.

    A segment ends the rounds if a window has received tuples. INNER then sets none until the window
    has been emptied.
    """
    sides = [(controls.windows(n), tuples.moment[tuples.side == n]) for n in (0, 1)]

    def received(side, begin, until):
        """Tell whether the side has received a tuple between two moments."""
        windows, moments = side
        first, after = np.searchsorted(moments, [windows.begin[windows.at(begin)], until])
        return first < after

    def drifted(side, moment):
        """Tell whether a segment has begun in a window of the side that had received tuples."""
        window = side[0].at(moment)
        return any(
            begin < moment and side[0].at(begin) == window and received(side, begin, begin)
            for begin in turns.begins[1:]
        )

    changes = [
        (moment, 0 if size and any(drifted(side, moment) for side in sides) else size)
        for moment, size in controls.rounds
    ]
    changes += [
        (begin, 0)
        for begin in turns.begins[1:]
        if any(received(side, begin, begin) for side in sides)
    ]
    moments, sizes = zip(*sorted(changes), strict=True)
    return np.array(sizes)[np.searchsorted(moments, tuples.moment) - 1]


def rounds_with_stars(cores, answering, size, begin, end):
    """Return which rounds have stars, for probes that see tuples ``begin`` until before ``end``.

    Tuple ``n`` has the turn ``n % cores`` of the lap ``n // cores``, which is its number in its
    core. A star follows a round if the window has a tuple of its last lap, of a core that answers.

    Parameters
    ----------
    cores, size, begin, end : int64 arrays
        For each probe: how many cores store, the size of a round, at least one, and the tuples.
    answering : bool array
        For each probe, a row: of which turns the cores answer.

    Returns
    -------
    probe, number : int64 arrays
        One row for every star, those of a probe in a row.
    """
    first, after = np.full(len(size), NEVER), np.zeros(len(size), np.int64)
    for turn in range(answering.shape[1]):
        # Laps in which a tuple of this turn is in the window, as the rounds that end with them.
        low, high = (-((turn - n) // cores) // size for n in (begin, end))
        some = answering[:, turn] & (low < high)
        first = np.where(some, np.minimum(first, low), first)
        after = np.where(some, np.maximum(after, high), after)
    count = np.maximum(after - first, 0)
    probe = np.repeat(np.arange(len(size)), count)
    offset = np.arange(len(probe)) - np.repeat(np.cumsum(count) - count, count)
    return probe, first[probe] + offset

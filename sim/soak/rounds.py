# SPDX-License-Identifier: Apache-2.0
"""Rounds of stored tuples: ``docs/architecture.md``, "Rounds"."""

import numpy as np

__all__ = ["round_size", "round_sizes", "rounds_with_stars"]

NEVER = 1 << 62


def round_size(storage, value):
    """Return how many tuples of a core are a round after INNER with a value; 0 for no rounds."""
    longest, size = storage["ring_rows"] * storage["lanes"] // 4, 1
    if not value:
        return 0
    while size < longest and value % (2 * size) == 0:
        size *= 2
    return size


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

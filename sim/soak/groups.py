# SPDX-License-Identifier: Apache-2.0
"""Which probes a star follows, and when it is due: ``docs/architecture.md``, "Precision"."""

from bisect import bisect_right
from dataclasses import dataclass

import numpy as np

__all__ = ["Stars", "stars_of"]


@dataclass(frozen=True)
class Stars:
    """The stars of a program, in the order in which they are due.

    Parameters
    ----------
    moment : int64 array
        Moment of the word that closed the star's group.
    side : int64 array
    of : int64 array
        For every tuple, the star that follows it; their number, if none does.
    probe : int64 array
        For every tuple, its index among the probes of its side since the star before.
    """

    moment: np.ndarray
    side: np.ndarray
    of: np.ndarray
    probe: np.ndarray


def group_ends(mine, other, size, patience):
    """Return the ends of groups that end early when ``patience`` tuples of the other side came.

    Parameters
    ----------
    mine, other : lists of int
        Moments of the probes of a side, and of the other side's tuples.
    size : int
        Probes of a full group.

    Returns
    -------
    list of (int, int)
        How many probes there are up to the end of each group, and the moment of the end. Probes
        after the last one belong to an open group.
    """
    ends, first = [], 0
    while first < len(mine):
        full = first + size - 1
        moment = mine[full] if full < len(mine) else None
        late = bisect_right(other, mine[first]) + patience - 1
        if late < len(other) and (moment is None or other[late] < moment):
            moment = other[late]
        if moment is None:
            break
        first = bisect_right(mine, moment, first, min(full + 1, len(mine)))
        ends.append((first, moment))
    return ends


def stars_of(manifest, moments, sides, controls):
    """Return the :class:`Stars` of tuples that were not dropped."""
    probes, storage = manifest["parameters"]["probes"], manifest["storage"]
    patience = storage["cores"] * storage["slack"]
    due, side_of, of = [], [], np.full(len(moments), -1)
    index = np.zeros(len(moments), np.int64)
    count = 0
    for begin, end, period, closed in controls.stretches():
        low, high = np.searchsorted(moments, (begin, end))
        if low == high:
            continue
        places = [low + np.flatnonzero(sides[low:high] == side) for side in (0, 1)]
        for side in (0, 1):
            mine = places[side]
            if not len(mine):
                continue
            if period > probes or period == 1:
                after = np.arange(period, len(mine) + 1, period)
                ends = moments[mine[after - 1]]
            else:
                found = group_ends(
                    moments[mine].tolist(), moments[places[1 - side]].tolist(), period, patience
                )
                after, ends = np.array(found, np.int64).reshape(-1, 2).T
            if closed and (not len(after) or after[-1] < len(mine)):
                after, ends = np.append(after, len(mine)), np.append(ends, end)
            sizes = np.diff(after, prepend=0)
            group = np.repeat(np.arange(len(after)), sizes)
            of[mine[: len(group)]] = count + group
            index[mine] = np.arange(len(mine))
            index[mine[: len(group)]] -= (after - sizes)[group]
            due.append(ends)
            side_of.append(np.full(len(ends), side))
            count += len(ends)
    due = np.concatenate([np.zeros(0, np.int64), *due])
    side_of = np.concatenate([np.zeros(0, np.int64), *side_of])
    order = np.lexsort((side_of, due))
    rank = np.empty(count + 1, np.int64)
    rank[order], rank[-1] = np.arange(count), count
    return Stars(due[order], side_of[order], rank[of], index)

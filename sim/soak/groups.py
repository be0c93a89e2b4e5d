# SPDX-License-Identifier: Apache-2.0
"""Which probes a star follows, and when it is due: ``docs/architecture.md``, "Precision"."""

from dataclasses import dataclass

import numpy as np

from .sorting import order_of

__all__ = ["Stars", "stars_of"]

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
    probes, storage = manifest["parameters"]["probes"], manifest["storage"]
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
    index %= 1 << manifest["parameters"]["probe_bits"]
    return Stars(due[order], side_of[order], rank[of], index)

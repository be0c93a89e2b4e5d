# SPDX-License-Identifier: Apache-2.0
"""The reference join of every type: what outer, semi and anti joins mean, and in which order.

Pairs come by the arrival of their later row, then of the earlier one. A row that comes alone comes
when it leaves the window, so that nothing that arrives later can match it: before the pairs of the
row that pushes it out. That is, over a time-based window, the first row that is later than its time
and the width of the window; over a count-based one, the row of its own side that is so many rows
behind it. What no row pushes out comes at the end. Rows that leave together come in their order of
arrival.
"""

import numpy as np
import numpy.typing as npt

from host.arrivals import Arrivals
from host.errors import UsageError
from host.exact import places, shifted
from host.join_type import NO_ROW, JoinType
from host.reference import Matches
from host.side import Side
from host.window import CountWindow, Window

__all__ = ["reference_rows", "strict_order"]

Int64s = npt.NDArray[np.int64]


def reference_rows(
    arrivals: Arrivals, matches: Matches, window: Window, how: JoinType
) -> tuple[Int64s, Int64s]:
    """Return the results of a join of any type, given the pairs of the inner one.

    Parameters
    ----------
    arrivals : Arrivals
        Both streams, in the order of arrival.
    matches : Matches
        The pairs of the inner join.
    window : CountWindow or TimeWindow
        Of either side.
    how : JoinType
        Which rows are wanted.

    Returns
    -------
    r, s : array of int64
        Each result's tuples as numbers among those of their own sides, in strict order;
        ``NO_ROW`` where there is none.
    """
    pairs = matches.rows(arrivals)
    found = [pairs] if how.has_pairs else []
    for side in Side:
        if how.tracks(side):
            matched = np.zeros(int(np.count_nonzero(arrivals.side == side)), np.bool_)
            matched[pairs[side]] = True
            alone = np.flatnonzero(matched == how.wants_matched)
            none = np.full(len(alone), NO_ROW, np.int64)
            found.append((alone, none) if side is Side.R else (none, alone))
    r, s = (np.concatenate(rows) for rows in zip(*found, strict=True))
    order = strict_order(arrivals, window, r, s)
    return r[order], s[order]


def strict_order(arrivals: Arrivals, window: Window, r: Int64s, s: Int64s) -> Int64s:
    """Return the order in which results come, as a permutation.

    Parameters
    ----------
    arrivals : Arrivals
        Both streams, in the order of arrival.
    window : CountWindow or TimeWindow
        Of either side.
    r, s : array of int64
        Tuples of each result, as numbers among those of their own sides, or ``NO_ROW``.
    """
    later = np.empty(len(r), np.int64)  # the arrival at which a result comes
    earlier = np.empty(len(r), np.int64)
    members = {side: np.flatnonzero(arrivals.side == side) for side in Side}
    both = (r != NO_ROW) & (s != NO_ROW)
    own = members[Side.R][r[both]], members[Side.S][s[both]]
    later[both], earlier[both] = np.maximum(*own), np.minimum(*own)
    for side, mine, other in ((Side.R, r, s), (Side.S, s, r)):
        alone = other == NO_ROW
        earlier[alone] = members[side][mine[alone]]
        later[alone] = _departures(arrivals, window, members[side])[mine[alone]]
    return np.lexsort((earlier, both, later))


def _departures(arrivals: Arrivals, window: Window, members: Int64s) -> Int64s:
    """Return, for all tuples of a side, the arrival that pushes each out of its window."""
    if isinstance(window, CountWindow):
        beyond = np.full(min(window.size, len(members)), len(arrivals), np.int64)
        return np.concatenate([members[window.size :], beyond])
    if arrivals.timestamp is None:
        raise UsageError("A time-based window needs arrivals with timestamps.")
    time = places(arrivals.timestamp)
    last, _ = shifted(time[members], int(window.lifespan))
    return np.searchsorted(time, last, side="right").astype(np.int64)

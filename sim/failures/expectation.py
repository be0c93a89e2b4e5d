# SPDX-License-Identifier: Apache-2.0
"""What a join that lost a core must answer: the reference join without what its record lists."""

import numpy as np

__all__ = ["arrivals", "without_lost"]


def arrivals(left, right, column="t"):
    """Return, for each table, the place of every row among the rows of both.

    Rows arrive by the numbers in ``column``; on a tie those of the left table come first.
    """
    times = np.concatenate([table[column].to_numpy() for table in (left, right)])
    places = np.empty(len(times), np.int64)
    places[np.argsort(times, kind="stable")] = np.arange(len(times))
    return places[: len(left)], places[len(left) :]


def without_lost(pairs, record, places):
    """Return the pairs of the reference join that are not missing, and the missing ones.

    Parameters
    ----------
    pairs : list of (int, int)
        Row numbers of the reference join.
    record : FailureRecord
        What the join lost. The tuples of each entry are evenly spaced.
    places : tuple of array
        Result of :func:`arrivals`.
    """
    missing = set()
    for failure in record.failures:
        for lost in failure.lost:
            step = (lost.last - lost.first) // max(1, lost.count - 1) or 1
            tuples = range(lost.first, lost.last + 1, step)
            assert len(tuples) == lost.count, lost
            side, other = lost.side, lost.side.other
            missing |= {
                pair
                for pair in pairs
                if pair[side] in tuples
                and pair[other] >= lost.probes_from
                and places[other][pair[other]] > places[side][pair[side]]
            }
    return [pair for pair in pairs if pair not in missing], missing

# SPDX-License-Identifier: Apache-2.0
"""Which stored tuples of a span match a probe, for many probes at once.

Keys come as they are ordered: a list of ``uint64`` arrays, one for each field
(:meth:`sim.soak.words.WordLayout.get_ordered`). A *span* is a range ``low .. high - 1`` of places
in the stored tuples.
"""

import numpy as np

__all__ = ["equal_pairs", "limits", "pairs_of", "pairs_within"]

#: Comparisons of a block of probes with the places that any of them sees.
BLOCK = 1 << 18


def spread(low, high):
    """Return, for ranges ``low .. high - 1``, the number of each one's range and its members."""
    counts = np.maximum(high - low, 0)
    owner = np.repeat(np.arange(len(low)), counts)
    begins = np.cumsum(counts) - counts
    return owner, np.arange(len(owner)) - begins[owner] + low[owner]


def numbered(keys):
    """Return a number for each key, the same for equal ones."""
    number = np.zeros(len(keys[0]), np.int64)
    for field in keys:
        distinct, values = np.unique(field, return_inverse=True)
        _, number = np.unique(number * len(distinct) + values.reshape(-1), return_inverse=True)
        number = number.reshape(-1)
    return number


def equal_pairs(stored, probes, low, high):
    """Return the pairs (probe, place) of equal keys within each probe's span."""
    count = len(stored[0])
    both = numbered([np.concatenate(fields) for fields in zip(stored, probes, strict=True)])
    # Sorted by key, then by place: the matches of a probe lie side by side.
    sorted_by = np.argsort(both[:count], kind="stable")
    order = both[:count][sorted_by] * (count + 1) + sorted_by
    first = np.searchsorted(order, both[count:] * (count + 1) + low)
    after = np.searchsorted(order, both[count:] * (count + 1) + high)
    probe, at = spread(first, after)
    return probe, sorted_by[at]


def limits(values, bits, least, most):
    """Return the least and the greatest number that ``values`` plus ``least .. most`` reach.

    Both are cut to what ``bits`` bits hold; a range without such a number comes as 1 to 0.
    """
    top = (1 << bits) - 1
    least, most = max(least, -top - 1), min(most, top + 1)

    def moved(by):
        """Return the sums, cut, and which of them lie below zero and above ``top``."""
        if by >= 0:
            above = values > np.uint64(max(top - by, 0)) if by <= top else values >= 0
            return np.where(above, np.uint64(top), values + np.uint64(min(by, top))), False, above
        below = values < np.uint64(-by) if -by <= top else values >= 0
        return np.where(below, np.uint64(0), values - np.uint64(min(-by, top))), below, False

    low, _, unreachable = moved(least)
    high, negative, _ = moved(most)
    empty = unreachable | negative | (low > high)
    return np.where(empty, np.uint64(1), low), np.where(empty, np.uint64(0), high)


def pairs_of(stored_count, low, high, compare):
    """Return the pairs (probe, place) within each probe's span for which ``compare`` holds.

    Parameters
    ----------
    stored_count : int
        Stored tuples in all.
    low, high : int64 arrays
        The span of each probe; neither falls from one probe to the next.
    compare : callable
        ``compare(probes, places)``, both slices, returns a matrix of truth values.
    """
    found, begin = [(np.zeros(0, np.int64), np.zeros(0, np.int64))], 0
    while begin < len(low):
        size = max(1, BLOCK // max(int(high[begin] - low[begin]) + 64, 1))
        size = max(64, min(size, 512))
        end = min(begin + size, len(low))
        first, after = int(low[begin]), int(high[end - 1])
        if after > first:
            matrix = compare(slice(begin, end), slice(first, after))
            probe, place = np.nonzero(matrix)
            probe, place = probe + begin, place + first
            seen = (place >= low[probe]) & (place < high[probe])
            found.append((probe[seen], place[seen]))
        begin = end
    return tuple(np.concatenate(part) for part in zip(*found, strict=True))


def pairs_within(stored, ranges, low, high):
    """Return the pairs (probe, place) whose stored fields all lie in the probe's ranges.

    ``ranges`` has, for every field, the least and the greatest value for each probe.
    """

    def compare(probes, places):
        matrix = None
        for field, (least, most) in zip(stored, ranges, strict=True):
            part = field[None, places]
            fits = (part >= least[probes, None]) & (part <= most[probes, None])
            matrix = fits if matrix is None else matrix & fits
        return matrix

    return pairs_of(len(stored[0]), low, high, compare)

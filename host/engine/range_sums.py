# SPDX-License-Identifier: Apache-2.0
"""Sums over two ranges at once: of places in an order, and of a second coordinate.

The places are sorted by the bits of the coordinate, from the highest on, as in a wavelet matrix
(Claude, Navarro, 2012): a query follows its two bounds through the bits and takes what lies below
them from running sums. So a query costs as many steps as the coordinate has bits, however many
places its ranges hold.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

__all__ = [
    "sums_in_ranges",
]

Int64s = npt.NDArray[np.int64]


def sums_in_ranges(
    coordinate: Int64s,
    columns: Sequence[Int64s],
    places: tuple[Int64s, Int64s],
    bounds: tuple[Int64s, Int64s],
) -> list[Int64s]:
    """Return the sums of some columns for each query, modulo 2 ** 64.

    Parameters
    ----------
    coordinate : array of int64
        The coordinate of each place, not negative.
    columns : sequence of array of int64
        What is added up, by place.
    places : tuple of array of int64
        For each query, its first place, and the one behind its last.
    bounds : tuple of array of int64
        For each query, the least coordinate that counts, and the least above it that does not.
    """
    queries = len(places[0])
    # The sums below the upper bounds, and those below the lower ones, which are taken off.
    start, end = (np.concatenate([ends, ends]) for ends in places)
    limit = np.concatenate([bounds[1], bounds[0]])
    sums = [np.zeros(2 * queries, np.int64) for _ in columns]
    most = max(int(limit.max(initial=0)), int(coordinate.max(initial=0)))
    for bit in reversed(range(most.bit_length())):
        ones = coordinate >> bit & 1
        before = np.concatenate([[0], np.cumsum(ones)])  # places with the bit before each one
        order = np.concatenate([np.flatnonzero(ones == 0), np.flatnonzero(ones)])
        coordinate, columns = coordinate[order], [column[order] for column in columns]
        first, last = before[start], before[end]
        start, end = start - first, end - last
        above = np.flatnonzero(limit >> bit & 1)  # all that have no such bit are below the bound
        low, high = start[above], end[above]
        for total, column in zip(sums, columns, strict=True):
            running = np.concatenate([[0], np.cumsum(column)])
            total[above] += running[high] - running[low]
        zeros = len(ones) - int(before[-1])
        start[above], end[above] = first[above] + zeros, last[above] + zeros
    return [total[:queries] - total[queries:] for total in sums]

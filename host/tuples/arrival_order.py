# SPDX-License-Identifier: Apache-2.0
"""Compute the places of two sorted inputs' tuples in their common order of arrival."""

import numpy as np
import numpy.typing as npt

__all__ = ["merge_places", "settled"]

Int64s = npt.NDArray[np.int64]
UInt64s = npt.NDArray[np.uint64]


def settled(left: UInt64s, right: UInt64s) -> tuple[int, int]:
    """Return how many tuples of either side cannot be preceded by a later one.

    More tuples follow on both sides, with timestamps no less than the last ones. On a tie, the left
    side arrives first.

    Parameters
    ----------
    left, right : array of uint64
        Timestamps, ascending; at least one per side.
    """
    if left[-1] <= right[-1]:
        # A later tuple of the left side may tie with its last one, and precedes the right side's
        # tuples.
        return len(left), int(np.searchsorted(right, left[-1], side="left"))
    return int(np.searchsorted(left, right[-1], side="right")), len(right)


def merge_places(left: UInt64s, right: UInt64s) -> tuple[Int64s, Int64s]:
    """Return the place of every tuple of both sides in their common order of arrival.

    Only the places are computed, so that values can be written to them directly.

    Parameters
    ----------
    left, right : array of uint64
        Timestamps, ascending; on a tie the left side arrives first.
    """
    if not len(left) or not len(right):
        return np.arange(len(left)), np.arange(len(right))
    # The shorter side is searched for in the longer one, which gets the places that remain.
    if len(left) <= len(right):
        own = np.searchsorted(right, left, side="left") + np.arange(len(left))
        return own, _others(own, len(left) + len(right))
    own = np.searchsorted(left, right, side="right") + np.arange(len(right))
    return _others(own, len(left) + len(right)), own


def _others(places: Int64s, count: int) -> Int64s:
    """Return the numbers below ``count`` that are not among ``places``."""
    free = np.ones(count, np.bool_)
    free[places] = False
    return np.flatnonzero(free)

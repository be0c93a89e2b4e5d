# SPDX-License-Identifier: Apache-2.0
"""Where the tuples of two sorted inputs stand in the order of their arrival."""

import numpy as np
import numpy.typing as npt

__all__ = ["merge_places", "settled"]

Int64s = npt.NDArray[np.int64]
UInt64s = npt.NDArray[np.uint64]


def settled(left: UInt64s, right: UInt64s) -> tuple[int, int]:
    """How many tuples of either side no later one can come before.

    More tuples follow on both sides, with times as late as the last ones or later; on a tie the
    left side arrives first.

    Parameters
    ----------
    left, right : array of uint64
        Timestamps, ascending, at least one on each side.
    """
    if left[-1] <= right[-1]:
        # A later tuple of the left may tie with its last one, and comes before the right's.
        return len(left), int(np.searchsorted(right, left[-1], side="left"))
    return int(np.searchsorted(left, right[-1], side="right")), len(right)


def merge_places(left: UInt64s, right: UInt64s) -> tuple[Int64s, Int64s]:
    """Return the place of every tuple of both sides in their common order of arrival.

    Nothing but the places is computed, so that values can go where they belong at once.

    Parameters
    ----------
    left, right : array of uint64
        Timestamps, ascending; on a tie the left side arrives first.
    """
    if not len(left) or not len(right):
        return np.arange(len(left)), np.arange(len(right))
    # The shorter side is looked up in the longer one; the latter has the places that are left.
    if len(left) <= len(right):
        own = np.searchsorted(right, left, side="left") + np.arange(len(left))
        return own, _others(own, len(left) + len(right))
    own = np.searchsorted(left, right, side="right") + np.arange(len(right))
    return _others(own, len(left) + len(right)), own


def _others(places: Int64s, count: int) -> Int64s:
    """The numbers below ``count`` that are not among ``places``."""
    free = np.ones(count, np.bool_)
    free[places] = False
    return np.flatnonzero(free)

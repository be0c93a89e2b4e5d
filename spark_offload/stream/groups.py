# SPDX-License-Identifier: Apache-2.0
"""Groups of rows, each with a window of its own, and rows of the answer that come alone."""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from host import UsageError
from host.arrays import Int64s

__all__ = [
    "MOST_GROUPS",
    "REGISTRY",
    "group_keys",
]

REGISTRY = -1
"""Key of the one group that holds no rows but what the query was begun with."""

MOST_GROUPS = 3600
"""Most groups of a join; divisible by most numbers of state partitions, 200 among them."""

_CANDIDATES = 1 << 17


@lru_cache(8)
def group_keys(count: int) -> tuple[int, ...]:
    """Return keys for ``count`` groups that Spark puts into as many different partitions.

    Spark places a key by a hash, so the keys 0 to 3 can share two of four partitions. The keys
    returned here have the hashes 0, 1, … modulo :data:`MOST_GROUPS`, and with it modulo every
    number of partitions that divides it. They depend on nothing else, so a query that is started
    again finds its state.

    Parameters
    ----------
    count : int
        From one to :data:`MOST_GROUPS`.

    Raises
    ------
    UsageError
        If there are too many.
    """
    if not 1 <= count <= MOST_GROUPS:
        raise UsageError(
            f"A streaming join can have 1 to {MOST_GROUPS:,} groups of rows, not {count:,}; give "
            f"partitions, for example 8."
        )
    places = _hashes(np.arange(_CANDIDATES, dtype=np.uint32)) % MOST_GROUPS
    found, keys = np.unique(places, return_index=True)
    wanted: Sequence[int] = keys[np.searchsorted(found, np.arange(count))].tolist()
    return tuple(wanted)


def _hashes(keys: npt.NDArray[np.uint32]) -> Int64s:
    """Return Spark's hash of int keys: Murmur3 of four bytes with seed 42."""
    mixed = _rotated(keys * np.uint32(0xCC9E2D51), 15) * np.uint32(0x1B873593)
    state = _rotated(mixed ^ np.uint32(42), 13) * np.uint32(5) + np.uint32(0xE6546B64)
    state ^= np.uint32(4)
    state ^= state >> np.uint32(16)
    state *= np.uint32(0x85EBCA6B)
    state ^= state >> np.uint32(13)
    state *= np.uint32(0xC2B2AE35)
    state ^= state >> np.uint32(16)
    return state.view(np.int32).astype(np.int64)


def _rotated(values: npt.NDArray[np.uint32], by: int) -> npt.NDArray[np.uint32]:
    return (values << np.uint32(by)) | (values >> np.uint32(32 - by))

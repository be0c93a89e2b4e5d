# SPDX-License-Identifier: Apache-2.0
"""The rounds of stored tuples, after which an accelerator with rounds sends stars."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from host.hardware.storage_segments import StorageSegments
from host.manifest import Manifest

__all__ = ["Rounds", "longest_round", "round_size", "rounds_of"]

Int64s = npt.NDArray[np.int64]

#: A ring holds so many rounds at least.
PER_RING = 4


class Rounds(NamedTuple):
    """The rounds that have a star, for each probe: from ``first`` until before ``end``."""

    first: Int64s
    end: Int64s

    @classmethod
    def empty(cls) -> "Rounds":
        """Return the rounds of no probes."""
        return cls(np.zeros(0, np.int64), np.zeros(0, np.int64))


def longest_round(manifest: Manifest) -> int:
    """Return the largest number of tuples in a round of the hardware."""
    return manifest.storage.ring_rows * manifest.storage.lanes // PER_RING


def round_size(manifest: Manifest, value: int) -> int:
    """Return how many tuples a round has after INNER with this value; zero for no rounds.

    It is the largest power of two that divides the value, or the longest round.
    """
    return min(value & -value, longest_round(manifest)) if value else 0


def rounds_of(
    segments: StorageSegments,
    size: int,
    start: Int64s,
    before: Int64s,
    mute: npt.NDArray[np.bool_],
) -> Rounds:
    """Return the rounds that have a star, for probes that see ``start`` until ``before``.

    A round has a star if the last tuple of the round of any core is in the window. The cores that
    ``mute`` flags are none.
    """
    cores = segments.live[~mute[segments.live]]
    if not len(cores):
        return Rounds(np.zeros_like(start), np.zeros_like(start))
    begin = np.zeros((len(start), 1), np.int64)
    low = segments.held(begin, start[:, None], cores[None])
    high = segments.held(begin, before[:, None], cores[None])
    first, end = low // size, high // size  # the first of the rounds that end at or after `low`
    some = first < end
    none = ~some.any(axis=1)
    first = np.where(some, first, np.iinfo(np.int64).max).min(axis=1)
    end = np.where(some, end, 0).max(axis=1)
    return Rounds(np.where(none, 0, first), np.where(none, 0, end))

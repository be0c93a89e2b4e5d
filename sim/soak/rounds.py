# SPDX-License-Identifier: Apache-2.0
"""Rounds of stored tuples: ``docs/architecture.md``, "Rounds"."""

import numpy as np

__all__ = ["round_size", "rounds_with_stars"]


def round_size(storage, value):
    """Return how many tuples of a core are a round after INNER with a value; 0 for no rounds."""
    longest, size = storage["ring_rows"] * storage["lanes"] // 4, 1
    if not value:
        return 0
    while size < longest and value % (2 * size) == 0:
        size *= 2
    return size


def rounds_with_stars(cores, size, begin, end):
    """Return which rounds have stars, for probes that see tuples ``begin`` until before ``end``.

    Tuple ``n`` is in the lap ``n // cores`` of the turns, and number ``n // cores`` of its core. A
    star follows a round if a tuple of its last lap is in the window.

    Parameters
    ----------
    cores : int
    size, begin, end : int64 arrays
        For each probe; the size is at least one.

    Returns
    -------
    probe, number : int64 arrays
        One row for every star, those of a probe in a row.
    """
    first = (begin // cores) // size  # the round of the first lap
    after = np.where(end > begin, ((end - 1) // cores + 1) // size, first)
    count = np.maximum(after - first, 0)
    probe = np.repeat(np.arange(len(size)), count)
    offset = np.arange(len(probe)) - np.repeat(np.cumsum(count) - count, count)
    return probe, first[probe] + offset

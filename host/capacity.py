# SPDX-License-Identifier: Apache-2.0
"""Whether the windows of a join fit an accelerator, known before a tuple is sent."""

import numpy as np

from host.encode import EncodedJoin
from host.errors import CapacityError, WindowOverflowError
from host.exact import UInt64s
from host.manifest import Manifest
from host.side import Side
from host.window import CountWindow

__all__ = ["largest_window", "require_capacity"]


def largest_window(timestamps: UInt64s, lifespan: int, capacity: int) -> tuple[int, int | None]:
    """Measure a time-based window.

    Parameters
    ----------
    timestamps : array of uint64
        Of one side, ascending.
    lifespan : int
        Of the window.
    capacity : int
        Tuples that there is room for.

    Returns
    -------
    needed : int
        Tuples in the window when it is largest.
    first : int or None
        The first tuple that finds ``capacity`` tuples already there, after expiry.
    """
    if not len(timestamps):
        return 0, None
    width = np.uint64(min(lifespan, (1 << 64) - 1))
    oldest = np.where(timestamps >= width, timestamps - width, np.uint64(0))
    begins = np.searchsorted(timestamps, oldest, side="left")
    held = np.arange(len(timestamps)) - begins
    full = held >= capacity
    return int(held.max()) + 1, int(np.argmax(full)) if full.any() else None


def require_capacity(encoded: EncodedJoin, manifest: Manifest) -> None:
    """Raise unless both windows fit.

    Raises
    ------
    CapacityError
        If a count-based window is larger than the capacity.
    WindowOverflowError
        If a time-based one will be, naming the row that overflows it first.
    """
    cores, capacity = manifest.storage.cores, manifest.capacity
    window = encoded.window
    if isinstance(window, CountWindow):
        if window.size > capacity:
            raise CapacityError(int(window.size), capacity, cores=cores)
        return
    needs = []
    for side, tuples in ((Side.R, encoded.left), (Side.S, encoded.right)):
        needed, first = largest_window(tuples.timestamp, int(window.lifespan), capacity)
        if first is not None:
            needs.append((int(tuples.timestamp[first]), side, int(tuples.row[first]), needed))
    if needs:
        _, side, row, _ = min(needs)
        needed = max(need[3] for need in needs)
        label = f"{side.name} ({'left' if side is Side.R else 'right'})"
        raise WindowOverflowError(label, capacity, row, needed=needed, cores=cores)

# SPDX-License-Identifier: Apache-2.0
"""Check before any tuple is sent whether the windows of a join fit an accelerator."""

import numpy as np

from host.encode import Arrangement
from host.errors import AcceleratorLimitError, CapacityError, WindowOverflowError
from host.manifest import JoinAggregateManifest, Manifest
from host.reference.exact import UInt64s
from host.reference.side import Side
from host.reference.window import CountWindow, Window

__all__ = ["largest_window", "require_capacity", "require_pairs", "require_room", "side_label"]


def largest_window(timestamps: UInt64s, lifespan: int, capacity: int) -> tuple[int, int | None]:
    """Measure the largest extent of a time-based window.

    Parameters
    ----------
    timestamps : array of uint64
        Timestamps of one side, ascending.
    lifespan : int
        Lifespan of the window, in units of the timestamps.
    capacity : int
        Tuples of one side that the accelerator holds.

    Returns
    -------
    needed : int
        Number of tuples in the window at its largest.
    first : int or None
        Number of the first tuple that finds ``capacity`` tuples in the window, after expiry.
    """
    if not len(timestamps):
        return 0, None
    width = np.uint64(min(lifespan, (1 << 64) - 1))
    oldest = np.where(timestamps >= width, timestamps - width, np.uint64(0))
    begins = np.searchsorted(timestamps, oldest, side="left")
    held = np.arange(len(timestamps)) - begins
    full = held >= capacity
    return int(held.max()) + 1, int(np.argmax(full)) if full.any() else None


def require_pairs(manifest: Manifest) -> None:
    """Raise unless an accelerator sends the pairs of a join.

    Raises
    ------
    AcceleratorLimitError
        If it is a join aggregate.
    """
    if isinstance(manifest, JoinAggregateManifest):
        raise AcceleratorLimitError(
            "The accelerator is a join aggregate, which sends what the matches of each left row "
            "are reduced to, and no pairs",
            "ask `aggregate_matches` for aggregates, or use a bundle that was generated without "
            "--value-bits",
        )


def require_capacity(window: Window, manifest: Manifest) -> None:
    """Raise unless the accelerator can hold a count-based window.

    Raises
    ------
    CapacityError
        If the window is larger than the capacity.
    """
    if isinstance(window, CountWindow) and window.size > manifest.capacity:
        raise CapacityError(
            int(window.size),
            manifest.capacity,
            cores=manifest.storage.cores,
            engine=manifest.engine,
        )


def require_room(arranged: Arrangement, window: Window, manifest: Manifest) -> None:
    """Raise unless the accelerator can always hold a time-based window over two whole tables.

    Raises
    ------
    WindowOverflowError
        If the window outgrows the capacity. The error names the first row that finds no room.
    """
    if isinstance(window, CountWindow):
        return
    cores, capacity = manifest.storage.cores, manifest.capacity
    needs = []
    for side, times, rows in zip(Side, arranged.times, arranged.rows, strict=True):
        needed, first = largest_window(times, int(window.lifespan), capacity)
        if first is not None:
            needs.append((int(times[first]), side, int(rows[first]), needed))
    if needs:
        _, side, row, _ = min(needs)
        needed = max(need[3] for need in needs)
        raise WindowOverflowError(
            side_label(side), capacity, row, needed=needed, cores=cores, engine=manifest.engine
        )


def side_label(side: Side) -> str:
    """Return a name of a side for messages, such as ``R (left)``."""
    return f"{side.name} ({'left' if side is Side.R else 'right'})"

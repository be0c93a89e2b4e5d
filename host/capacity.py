# SPDX-License-Identifier: Apache-2.0
"""Whether the windows of a join fit an accelerator, known before a tuple is sent."""

from collections.abc import Callable

import numpy as np

from host.encode import Arrangement
from host.errors import CapacityError, WindowOverflowError
from host.exact import UInt64s
from host.manifest import Manifest
from host.side import Side
from host.window import CountWindow, Window

__all__ = ["WindowGauge", "largest_window", "require_capacity", "require_room"]


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


def require_capacity(window: Window, manifest: Manifest) -> None:
    """Raise unless a count-based window fits.

    Raises
    ------
    CapacityError
        If it is larger than the capacity.
    """
    if isinstance(window, CountWindow) and window.size > manifest.capacity:
        raise CapacityError(int(window.size), manifest.capacity, cores=manifest.storage.cores)


def require_room(arranged: Arrangement, window: Window, manifest: Manifest) -> None:
    """Raise unless a time-based window always fits, over two whole tables.

    Raises
    ------
    WindowOverflowError
        If it will not, naming the row that overflows it first.
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
        raise WindowOverflowError(_label(side), capacity, row, needed=needed, cores=cores)


class WindowGauge:
    """Watches the time-based window of one side of a stream, whose tuples come batch by batch.

    Parameters
    ----------
    side : Side
        For the message.
    lifespan : int
        Of the window.
    manifest : Manifest
        Of the accelerator.
    """

    def __init__(self, side: Side, lifespan: int, manifest: Manifest) -> None:
        self._side = side
        self._width = np.uint64(min(lifespan, (1 << 64) - 1))
        self._capacity = manifest.capacity
        self._cores = manifest.storage.cores
        self._recent = np.zeros(0, np.uint64)  # timestamps: as many as there is room for, or fewer
        self._parts: list[UInt64s] = []  # those after them
        self._waiting = 0

    def see(self, times: UInt64s, row_of: Callable[[int], int]) -> None:
        """Take the next timestamps; ``row_of`` says which row a tuple of them is.

        Raises
        ------
        WindowOverflowError
            If a tuple finds no room, naming its row.
        """
        # A tuple overflows if the one that came `capacity` tuples before it is still in the window.
        before = len(self._recent) + self._waiting
        if before + len(times) > self._capacity:
            recent = np.concatenate([self._recent, *self._parts])
            both = np.concatenate([recent, times])
            first = max(0, self._capacity - before)  # of `times`, that can overflow
            late = both[before + first - self._capacity : len(both) - self._capacity]
            full = times[first:] - late <= self._width
            if full.any():
                row = row_of(first + int(np.argmax(full)))
                raise WindowOverflowError(
                    _label(self._side), self._capacity, row, cores=self._cores
                )
            self._recent, self._parts, self._waiting = both[-self._capacity :], [], 0
        else:
            self._parts.append(times)
            self._waiting += len(times)


def _label(side: Side) -> str:
    return f"{side.name} ({'left' if side is Side.R else 'right'})"

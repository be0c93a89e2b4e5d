# SPDX-License-Identifier: Apache-2.0
"""Whether a time-based window of a stream outgrows the accelerator, noticed before it does."""

from collections.abc import Callable

import numpy as np

from host.capacity import side_label
from host.errors import WindowOverflowError
from host.exact import UInt64s
from host.manifest import Manifest
from host.runtime import Columns
from host.side import Side
from host.streams.side_log import SideLog

__all__ = ["WindowGauge"]


class WindowGauge:
    """Watches the window of one side, whose tuples come batch by batch.

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
        self._lifespan = np.uint64(min(lifespan, (1 << 64) - 1))
        self._capacity = manifest.capacity
        self._cores = manifest.storage.cores
        self._engine = manifest.engine
        self._log = SideLog()

    def see(self, times: UInt64s, row_of: Callable[[int], int]) -> None:
        """Take the next timestamps; ``row_of`` says which row a tuple of them is.

        Raises
        ------
        WindowOverflowError
            If a tuple finds no room, naming its row.
        """
        at = self.overflow(times)
        if at is not None:
            raise WindowOverflowError(
                side_label(self._side),
                self._capacity,
                row_of(at),
                cores=self._cores,
                engine=self._engine,
            )

    def overflow(self, times: UInt64s) -> int | None:
        """Take the next timestamps; return which of them is the first that finds no room."""
        log = self._log
        first = max(0, self._capacity - log.count)  # of `times`, that can find no room
        base = log.count + first - self._capacity
        log.append(Columns({"time": times}))
        found = None
        if first < len(times):
            # It finds none if the tuple `capacity` places before it has not expired.
            earlier = log.part("time", base, base + len(times) - first)
            full = times[first:] - earlier <= self._lifespan
            if full.any():
                found = first + int(np.argmax(full))
        log.forget(log.count - self._capacity)
        return found

# SPDX-License-Identifier: Apache-2.0
"""Notice that a time-based window of a stream outgrows the accelerator before it happens."""

from collections.abc import Callable

import numpy as np

from host.errors import WindowOverflowError
from host.hardware.capacity import side_label
from host.manifest import Manifest
from host.reference.exact import UInt64s
from host.reference.side import Side
from host.runtime import Columns
from host.tuples.side_log import SideLog

__all__ = ["WindowGauge"]


class WindowGauge:
    """Watches the window of one side, whose tuples arrive batch by batch.

    Parameters
    ----------
    side : Side
        Side, for the error message.
    lifespan : int
        Lifespan of the window, in units of the timestamps.
    manifest : Manifest
        Manifest of the accelerator.
    """

    def __init__(self, side: Side, lifespan: int, manifest: Manifest) -> None:
        self._side = side
        self._lifespan = np.uint64(min(lifespan, (1 << 64) - 1))
        self._capacity = manifest.capacity
        self._cores = manifest.storage.cores
        self._engine = manifest.engine
        self._log = SideLog()

    def see(self, times: UInt64s, row_of: Callable[[int], int]) -> None:
        """Take the next timestamps; ``row_of`` maps an index in them to a row number.

        Raises
        ------
        WindowOverflowError
            If a tuple finds no room; the error names its row.
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
        """Take the next timestamps; return the index of the first without room, or None."""
        log = self._log
        first = max(0, self._capacity - log.count)  # index of the first that can find no room
        base = log.count + first - self._capacity
        log.append(Columns({"time": times}))
        found = None
        if first < len(times):
            # A tuple finds no room if the tuple `capacity` places before it has not expired.
            earlier = log.part("time", base, base + len(times) - first)
            full = times[first:] - earlier <= self._lifespan
            if full.any():
                found = first + int(np.argmax(full))
        log.forget(log.count - self._capacity)
        return found

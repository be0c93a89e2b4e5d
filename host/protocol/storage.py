# SPDX-License-Identifier: Apache-2.0
"""The storage rule: where the cores keep a tuple, and which tuple a result refers to."""

from dataclasses import dataclass

import numpy as np

from host.arrays import Bools, Int64s
from host.errors import DeviceError
from host.protocol.manifest import Manifest, Storage

__all__ = [
    "StorageRule",
    "require_stored",
]


@dataclass(frozen=True)
class StorageRule:
    """Round robin over the cores, then over the lanes, then over the rows of a core's ring.

    Parameters
    ----------
    cores, lanes, ring_rows : int
        Number of cores, lanes per row, and rows per ring in the storage of one side.
    """

    cores: int
    lanes: int
    ring_rows: int

    @classmethod
    def of(cls, manifest: Manifest | Storage) -> "StorageRule":
        """Return the storage rule of an accelerator."""
        storage = manifest.storage if isinstance(manifest, Manifest) else manifest
        return cls(storage.cores, storage.lanes, storage.ring_rows)

    @property
    def slots(self) -> int:
        """Number of tuples in one core's ring."""
        return self.ring_rows * self.lanes

    def places(self, ordinals: Int64s) -> tuple[Int64s, Int64s, Int64s]:
        """Return ``(core, row, lane)`` of tuples, given by their numbers within their side."""
        core, local = ordinals % self.cores, ordinals // self.cores
        return core, (local // self.lanes) % self.ring_rows, local % self.lanes

    def ordinals(self, before: Int64s, core: Int64s, row: Int64s, lane: Int64s) -> Int64s:
        """Return the numbers, within their side, of the stored tuples of pairs.

        Parameters
        ----------
        before : array of int64
            For each pair, the number of tuples of the stored side that preceded the probe since
            CLEAR, or since the side's WINDOW or LIFESPAN.
        core, row, lane : array of int64
            Place of the stored tuple as the pair gives it (``core`` is the core's number).

        Raises
        ------
        DeviceError
            If a pair refers to a place where nothing can be stored yet.
        """
        # Powers of two, which are common, avoid the division.
        held = before - core + (self.cores - 1) if self.cores > 1 else before
        newest = _quotient(held, self.cores) - 1
        slot = row * self.lanes + lane if self.lanes > 1 else row
        back = newest - slot
        slots = np.int64(self.slots)
        local = newest - (back & (slots - 1) if not self.slots & (self.slots - 1) else back % slots)
        if local.size and (int(local.min()) < 0 or int(core.max()) >= self.cores):
            require_stored((local >= 0) & (core < self.cores), before, core, row, lane)
        ordinals: Int64s = local * self.cores + core if self.cores > 1 else local
        return ordinals


def require_stored(stored: Bools, before: Int64s, core: Int64s, row: Int64s, lane: Int64s) -> None:
    """Raise unless there is a stored tuple at the places of all pairs."""
    if not stored.all():
        bad = int(np.argmin(stored))
        raise DeviceError(
            f"The device answered with core {core[bad]}, row {row[bad]}, lane {lane[bad]} to a "
            f"probe that {before[bad]} tuples precede, where nothing is stored; its bundle and its "
            f"hardware do not belong together."
        )


def _quotient(values: Int64s, divisor: int) -> Int64s:
    if divisor & (divisor - 1):
        return values // divisor
    return values >> np.int64(divisor.bit_length() - 1) if divisor > 1 else values

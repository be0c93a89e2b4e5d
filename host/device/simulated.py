# SPDX-License-Identifier: Apache-2.0
"""The simulated accelerator: the simulator library of a bundle, called on whole arrays."""

from collections.abc import Iterator
from contextlib import contextmanager
import ctypes
from pathlib import Path
import threading

import numpy as np

from host.device.contract import Device, Exchange, Stamps, check_words
from host.device.simulator_library import Done, load_library
from host.errors import DeviceError
from host.exact import UInt64s
from host.manifest import Manifest

__all__ = ["SimulatedDevice"]


class SimulatedDevice(Device):
    """Clock-cycle-accurate simulation of a bundle.

    Every instance is a simulation of its own, right after reset. Different instances may be used
    by different threads at once (the interpreter's lock is released while one runs); a single one
    serves them one after another. A word that was not accepted must be the first one of the next
    call.

    Parameters
    ----------
    bundle : path-like
        Folder with the manifest and the library.
    uri : str, optional
        What it was opened as.
    seed : int
        Seed of the stalls and, when not zero, of what memories and registers hold at the start.
    stall_in, stall_out : int
        For tests: in how many of 256 cycles an input word is withheld (until it is offered; then
        it stays) and a result word is not taken.

    Raises
    ------
    ManifestError
        If the bundle is missing, foreign or stale, or its library is.
    """

    def __init__(
        self,
        bundle: str | Path,
        *,
        uri: str | None = None,
        seed: int = 0,
        stall_in: int = 0,
        stall_out: int = 0,
    ) -> None:
        for name, value in [("stall_in", stall_in), ("stall_out", stall_out)]:
            if not 0 <= value < 256:
                raise ValueError(f"Parameter {name!r} must be 0 to 255, not {value!r}")
        self.uri = f"sim:{bundle}" if uri is None else uri
        self.manifest = Manifest.load(bundle)
        self._library = load_library(Path(bundle).absolute(), self.manifest)
        self._handle: int | None = self._library.splitjoin_create(seed, stall_in, stall_out)
        self._running = threading.Lock()

    def exchange(
        self,
        words: UInt64s,
        results: UInt64s,
        *,
        cycles: int,
        stamps: Stamps | None = None,
    ) -> Exchange:
        """See :meth:`Device.exchange`; the simulation stands still between two calls."""
        check_words(self.manifest, words, results)
        accepted_at = _stamp_address(stamps.accepted, len(words)) if stamps else None
        produced_at = _stamp_address(stamps.produced, len(results)) if stamps else None
        done = Done()
        with self._alone() as handle:
            self._library.splitjoin_exchange(
                handle,
                words.ctypes.data,
                len(words),
                results.ctypes.data,
                len(results),
                max(0, cycles),
                accepted_at,
                produced_at,
                ctypes.byref(done),
            )
        return Exchange(done.accepted, done.produced, done.cycles)

    def counters(self) -> dict[str, int]:
        """Return the performance counters; reading one takes a clock cycle."""
        with self._alone() as handle:
            return {
                counter.name: self._library.splitjoin_counter(handle, counter.address)
                for counter in self.manifest.counters
            }

    @property
    def cycle(self) -> int:
        """Clock cycles since the device was opened."""
        with self._alone() as handle:
            return int(self._library.splitjoin_cycle(handle))

    def close(self) -> None:
        """End the simulation; closing it again does nothing."""
        with self._running:
            handle, self._handle = self._handle, None
            if handle is not None:
                self._library.splitjoin_destroy(handle)

    def __del__(self) -> None:
        if getattr(self, "_handle", None) is not None:
            self.close()

    @contextmanager
    def _alone(self) -> Iterator[int]:
        """Wait until nobody else uses the simulation."""
        with self._running:
            if self._handle is None:
                raise DeviceError(f"Device {self.uri!r} is closed.")
            yield self._handle


def _stamp_address(array: UInt64s, least: int) -> int:
    if (
        array.dtype != np.uint64
        or array.ndim != 1
        or len(array) < least
        or not array.flags.c_contiguous
        or not array.flags.writeable
    ):
        raise DeviceError(f"Stamps must be writable uint64 arrays of at least {least} numbers.")
    return array.ctypes.data

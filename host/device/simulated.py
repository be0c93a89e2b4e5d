# SPDX-License-Identifier: Apache-2.0
"""Simulated accelerators: a bundle's simulator library, called on whole arrays."""

from collections.abc import Iterator
from contextlib import contextmanager
import ctypes
from pathlib import Path
import threading
from typing import Any

import numpy as np

from host.device.contract import Device, Exchange, Stamps, check_words
from host.device.memory_pace import MemoryPace
from host.device.simulator_library import Done, load_library
from host.errors import DeviceError
from host.manifest import AggregateManifest, BundleManifest, Manifest, load_join_manifest
from host.reference.exact import UInt64s

__all__ = ["SimulatedAggregate", "SimulatedDevice", "Simulation"]


class Simulation:
    """Clock-cycle-accurate simulation of a bundle, whatever its accelerator computes.

    Every instance is a separate simulation, which starts after reset. Different threads may use
    different instances at the same time, because the interpreter's lock is released while one runs.
    Threads that share an instance use it one after another. A word that was not accepted must be
    the first word of the next call.

    Parameters
    ----------
    bundle : path-like
        Folder with the manifest and the library.
    manifest : BundleManifest
        Its manifest.
    uri : str, optional
        URI that the device was opened with.
    seed : int
        Seed of the stalls and, unless zero, of the initial contents of memories and registers.
    stall_in, stall_out : int
        For tests: number of cycles out of 256 in which an input word is withheld (an offered word
        stays until it is accepted), and in which no result word is taken.
    memory : MemoryPace, optional
        How long the external memories of the windows take. By default, they take the latency that
        the accelerator hides, and never pause.

    Raises
    ------
    ValueError
        If a number is out of range, or a ``memory`` is given and windows are on the chip.
    ManifestError
        If the bundle or its library is missing, foreign or stale.

    Attributes
    ----------
    turn_seconds : float
        Longest time for which a call waits until the call of another thread has returned.
    close_seconds : float
        Longest time for which :meth:`close` waits until another thread's call has returned.
    """

    turn_seconds = 300.0
    close_seconds = 30.0

    manifest: BundleManifest

    def __init__(
        self,
        bundle: str | Path,
        manifest: BundleManifest,
        *,
        uri: str | None = None,
        seed: int = 0,
        stall_in: int = 0,
        stall_out: int = 0,
        memory: MemoryPace | None = None,
    ) -> None:
        for name, value in [("stall_in", stall_in), ("stall_out", stall_out)]:
            if not 0 <= value < 256:
                raise ValueError(f"Parameter {name!r} must be 0 to 255, not {value!r}")
        self.uri = f"sim:{bundle}" if uri is None else uri
        self.manifest = manifest
        if memory is not None and self.manifest.memory is None:
            raise ValueError(
                f"Parameter 'memory' is for windows in external memory, but those of {self.uri!r} "
                f"are on the chip; leave it out"
            )
        self._library = load_library(Path(bundle).absolute(), self.manifest)
        self._handle: int | None = self._library.splitjoin_create(seed, stall_in, stall_out)
        if memory is not None:
            self._library.splitjoin_memory(
                self._handle, memory.latency, memory.jitter, memory.stalls, memory.faults
            )
        self._running = threading.Lock()
        self._closing = False

    def exchange(
        self,
        words: UInt64s,
        results: UInt64s,
        *,
        cycles: int,
        stamps: Stamps | None = None,
    ) -> Exchange:
        """See :meth:`Device.exchange`; the simulation is paused between two calls."""
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
        """Return the performance counters; reading a counter takes two clock cycles."""
        with self._alone() as handle:
            return {
                counter.name: self._library.splitjoin_counter(handle, counter.address)
                for counter in self.manifest.counters
            }

    @property
    def cycle(self) -> int:
        """Number of clock cycles since the device was opened."""
        with self._alone() as handle:
            return int(self._library.splitjoin_cycle(handle))

    def close(self) -> None:
        """End the simulation; closing it again does nothing.

        Raises
        ------
        DeviceError
            If another thread is still inside a call after :attr:`close_seconds`. That call cannot
            be interrupted; when it returns, its thread ends the simulation, and until then its
            memory stays in use. A program can exit nevertheless if the thread is a daemon.
        """
        again, self._closing = self._closing, True
        if not self._running.acquire(timeout=0 if again else self.close_seconds):
            if not again:
                raise DeviceError(
                    f"Device {self.uri!r} did not close within {self.close_seconds:g} s, for a "
                    f"call of another thread has not returned; its counters cannot be read "
                    f"meanwhile. The device closes when that call returns, or with the process."
                )
            return
        try:
            self._destroy()
        finally:
            self._running.release()

    def __del__(self) -> None:
        # No thread is inside a call, because the call would refer to the device. When the
        # interpreter exits, a thread may have been stopped inside a call; the process then frees
        # the memory.
        if getattr(self, "_handle", None) is not None and self._running.acquire(blocking=False):
            self._destroy()

    def _destroy(self) -> None:
        """Free the simulation, which nobody else may be using."""
        handle, self._handle = self._handle, None
        if handle is not None:
            self._library.splitjoin_destroy(handle)

    @contextmanager
    def _alone(self) -> Iterator[int]:
        """Wait until nobody else uses the simulation, and yield its handle."""
        if self._closing:
            raise DeviceError(f"Device {self.uri!r} is closed.")
        if not self._running.acquire(timeout=self.turn_seconds):
            raise DeviceError(
                f"Device {self.uri!r} is busy: a call of another thread has not returned within "
                f"{self.turn_seconds:g} s. Use a device from one thread, or open one for each."
            )
        try:
            if self._handle is None or self._closing:
                raise DeviceError(f"Device {self.uri!r} is closed.")
            yield self._handle
        finally:
            if self._closing:
                self._destroy()
            self._running.release()


class SimulatedDevice(Simulation, Device):
    """Simulation of a bundle of joins; what a :class:`Simulation` takes besides a manifest.

    That of a join aggregate has a :class:`~host.manifest.JoinAggregateManifest`.
    """

    manifest: Manifest

    def __init__(self, bundle: str | Path, **options: Any) -> None:
        super().__init__(bundle, load_join_manifest(bundle), **options)


class SimulatedAggregate(Simulation):
    """Simulation of a bundle of windowed aggregates, in the same way.

    Its results are values, stars and marks (:class:`~host.manifest.AggregateManifest`).
    """

    manifest: AggregateManifest

    def __init__(self, bundle: str | Path, **options: Any) -> None:
        super().__init__(bundle, AggregateManifest.load(bundle), **options)


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

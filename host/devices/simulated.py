# SPDX-License-Identifier: Apache-2.0
"""Simulated accelerators: a bundle's library, checked, loaded and called on whole arrays."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
import ctypes
from dataclasses import dataclass
from functools import cache
import hashlib
from pathlib import Path
import shlex
import sys
import threading
from typing import Any

import numpy as np

from host.arrays import UInt64s
from host.devices.contract import Device, Exchange, Stamps, check_words
from host.errors import DeviceError, ManifestError
from host.files.atomic import checksum_file, matches
from host.installation import command
from host.protocol.manifest import AggregateManifest, BundleManifest, Manifest, load_join_manifest

__all__ = [
    "Done",
    "LIBRARY",
    "MemoryPace",
    "SimulatedAggregate",
    "SimulatedDevice",
    "Simulation",
    "is_usable",
    "load_library",
    "processor_of",
    "read_library",
    "this_processor",
]

# How long the external memories of a simulated accelerator take, and whether they fail.


@dataclass(frozen=True, kw_only=True)
class MemoryPace:
    """Latency, pauses and errors of every external memory of a simulation.

    Parameters
    ----------
    latency : int
        Cycles from a request to its first beat, or from the last beat of a write to its response;
        at least one.
    jitter : int
        Cycles that are added at random, at the most.
    stalls : int
        Number of cycles out of 256 in which a channel pauses, at random.
    faults : int
        Number of bursts out of 65,536 that are answered with an error, at random.

    Raises
    ------
    ValueError
        If a number is out of range.
    """

    latency: int
    jitter: int = 0
    stalls: int = 0
    faults: int = 0

    def __post_init__(self) -> None:
        ranges = {
            "latency": (1, 1 << 32), "jitter": (0, 1 << 32), "stalls": (0, 255),
            "faults": (0, 1 << 16),
        }  # fmt: skip
        for name, (least, most) in ranges.items():
            value = getattr(self, name)
            if not least <= value <= most:
                raise ValueError(f"Parameter {name!r} must be {least} to {most}, not {value!r}")


# The processor that a compiled file is for, from its ELF header (Linux and most other Unixes).

#: Names of processors by the header's field ``e_machine``.
NAMES = {
    3: "x86",
    8: "MIPS",
    21: "POWER",
    22: "IBM Z",
    40: "ARM",
    62: "x86-64",
    183: "AArch64",
    243: "RISC-V",
    258: "LoongArch",
}

#: Number of bytes of a file that :func:`processor_of` reads.
HEADER = 20


def processor_of(contents: bytes) -> str | None:
    """Return the processor that an ELF file is for; None if ``contents`` is not an ELF file."""
    if len(contents) < HEADER or contents[:4] != b"\x7fELF":
        return None
    order = "big" if contents[5] == 2 else "little"
    code = int.from_bytes(contents[18:20], "big" if order == "big" else "little")
    name = NAMES.get(code, f"processor {code}")
    return f"{name} ({64 if contents[4] == 2 else 32} bits, {order}-endian)"


@cache
def this_processor() -> str | None:
    """Return the processor that this Python runs on; None if its executable does not tell."""
    try:
        with open(sys.executable, "rb") as program:
            return processor_of(program.read(HEADER))
    except OSError:
        return None


# Find, check and load the simulator library of a bundle.

#: The simulator library in a bundle's folder; `python -m sim build` puts it there.
LIBRARY = "splitjoin.so"


class Done(ctypes.Structure):
    """Result of one call of ``splitjoin_exchange``."""

    _fields_ = [
        ("accepted", ctypes.c_uint64),
        ("produced", ctypes.c_uint64),
        ("cycles", ctypes.c_uint64),
    ]


_HANDLE = _ARRAY = ctypes.c_void_p
_NUMBER, _SMALL = ctypes.c_uint64, ctypes.c_uint32

_PROTOTYPES: dict[str, tuple[type | None, list[type]]] = {
    "create": (_HANDLE, [_NUMBER, _SMALL, _SMALL]),
    "destroy": (None, [_HANDLE]),
    "reset": (None, [_HANDLE]),
    "cycle": (_NUMBER, [_HANDLE]),
    "counter": (_NUMBER, [_HANDLE, _SMALL]),
    "exchange": (
        None,
        [_HANDLE, _ARRAY, _NUMBER, _ARRAY, _NUMBER, _NUMBER, _ARRAY, _ARRAY, ctypes.POINTER(Done)],
    ),
}

#: Functions of accelerators whose windows are in external memory.
_MEMORY_PROTOTYPES: dict[str, tuple[type | None, list[type]]] = {
    "memory": (None, [_HANDLE, _NUMBER, _NUMBER, _SMALL, _SMALL]),
}

#: Libraries of this process by a hash of their contents, and the number of loads from each path.
_loaded: dict[bytes, ctypes.CDLL] = {}
_loads: Counter[Path] = Counter()
_loading = threading.Lock()


def read_library(folder: Path) -> bytes:
    """Return the contents of a bundle's simulator library if it can be loaded on this machine.

    Nothing is loaded, because loading a damaged library would end the process.

    Parameters
    ----------
    folder : Path
        Folder of the bundle.

    Raises
    ------
    ManifestError
        If the library is missing, damaged, or made for another processor.
    """
    path = folder / LIBRARY
    try:
        contents = path.read_bytes()
    except OSError as error:
        raise ManifestError(folder, f"has no simulator library; {_remedy(folder)}") from error
    if not matches(contents, path):
        raise ManifestError(
            folder,
            f"has a simulator library that is damaged, as it differs from its checksum in "
            f"{checksum_file(path).name!r}; {_remedy(folder)}",
        )
    processor, here = processor_of(contents), this_processor()
    if processor and here and processor != here:
        raise ManifestError(
            folder,
            f"has a simulator library for another processor: it is for {processor}, and this "
            f"machine is {here}; {_remedy(folder)} on this machine",
        )
    return contents


def is_usable(folder: Path) -> bool:
    """Return whether a bundle has a simulator library that can be loaded on this machine."""
    try:
        read_library(folder)
    except ManifestError:
        return False
    return True


def load_library(bundle: Path, manifest: BundleManifest) -> ctypes.CDLL:
    """Load the library of a bundle after checking that it belongs to the bundle.

    If the bundle was replaced after this process had loaded its library, the new library is loaded
    as well.

    Parameters
    ----------
    bundle : Path
        Folder of the bundle, or a file in it.
    manifest : BundleManifest
        Manifest of the bundle.

    Raises
    ------
    ManifestError
        If the library is missing, was built from another bundle, or cannot be loaded.
    """
    folder = bundle if bundle.is_dir() else bundle.parent
    path = folder / LIBRARY
    remedy = _remedy(folder)
    foreign = f"has a simulator library that was built from something else; {remedy}"
    name = f"splitjoin-bundle:{manifest.hash}\0".encode()
    contents = read_library(folder)
    if name not in contents:
        raise ManifestError(folder, foreign)
    key = hashlib.sha256(contents).digest()
    with _loading:
        if key in _loaded:
            return _loaded[key]
        try:
            library = ctypes.CDLL(_unused_name(path))
        except OSError as error:
            raise ManifestError(
                folder, f"has a simulator library that does not load here ({error}); {remedy}"
            ) from error
        # The file may have been replaced since it was read.
        if (ctypes.c_char * len(name)).in_dll(library, "splitjoin_bundle").raw != name:
            raise ManifestError(folder, foreign)
        more = _MEMORY_PROTOTYPES if manifest.memory else {}
        for what, (result, arguments) in {**_PROTOTYPES, **more}.items():
            function = getattr(library, f"splitjoin_{what}")
            function.restype, function.argtypes = result, arguments
        _loaded[key] = library
    return library


def _remedy(folder: Path) -> str:
    return f"build it with `{command(f'sim build {shlex.quote(str(folder))}')}`"


def _unused_name(path: Path) -> str:
    """Return a spelling of ``path`` under which this process has not loaded a library.

    For a known name, the dynamic loader returns the library that it loaded before, even if the file
    has changed since.
    """
    _loads[path] += 1
    return f"{path.parent}/{'./' * (_loads[path] - 1)}{path.name}"


# Simulated accelerators: a bundle's simulator library, called on whole arrays.


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

    That of a join aggregate has a :class:`~host.protocol.manifest.JoinAggregateManifest`.
    """

    manifest: Manifest

    def __init__(self, bundle: str | Path, **options: Any) -> None:
        super().__init__(bundle, load_join_manifest(bundle), **options)


class SimulatedAggregate(Simulation):
    """Simulation of a bundle of windowed aggregates, in the same way.

    Its results are values, stars and marks (:class:`~host.protocol.manifest.AggregateManifest`).
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

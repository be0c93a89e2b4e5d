# SPDX-License-Identifier: Apache-2.0
"""The contract of every device, and functions to open the device that a URI names."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
import importlib
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol, Self
from urllib.parse import parse_qsl

import numpy as np

from host.arrays import UInt64s
from host.errors import DeviceError, UsageError, unusable_uri
from host.protocol.manifest import BundleManifest, Manifest

if TYPE_CHECKING:
    from host.devices.simulated import SimulatedAggregate

__all__ = [
    "Device",
    "Exchange",
    "Stamps",
    "WordDevice",
    "check_words",
    "device_kind",
    "is_shared",
    "open_aggregate",
    "open_device",
    "require_bundle",
    "uri_options",
]

# The contract of every device: offer input words, collect result words, never block.


class Exchange(NamedTuple):
    """Result of one call of :meth:`Device.exchange`.

    Attributes
    ----------
    accepted, produced : int
        Number of input words taken from the front of ``words``, and of result words put at the
        front of ``results``.
    cycles : int
        Number of clock cycles run; zero for a device without a clock.
    """

    accepted: int
    produced: int
    cycles: int

    @classmethod
    def uncounted(cls, accepted: int, produced: int, stamps: "Stamps | None") -> "Exchange":
        """Return the result of a device without a clock; its ``stamps``, if any, become zeros."""
        if stamps is not None:
            stamps.accepted[:accepted] = 0
            stamps.produced[:produced] = 0
        return cls(accepted, produced, 0)


@dataclass(frozen=True)
class Stamps:
    """Arrays into which :meth:`Device.exchange` writes the cycle of every transfer.

    Parameters
    ----------
    accepted, produced : array of uint64
        Arrays at least as long as ``words`` and ``results``. Cycles count since the device was
        opened.
    """

    accepted: UInt64s
    produced: UInt64s

    @classmethod
    def for_arrays(cls, words: UInt64s, results: UInt64s) -> "Stamps":
        """Return stamps for exchanges of these arrays."""
        return cls(np.zeros(len(words), np.uint64), np.zeros(len(results), np.uint64))


class WordDevice(Protocol):
    """Driver of any accelerator, whatever it computes; see :class:`Device`."""

    uri: str

    def exchange(
        self, words: UInt64s, results: UInt64s, *, cycles: int, stamps: Stamps | None = None
    ) -> Exchange:
        """Offer words and collect results, without blocking."""

    def counters(self) -> dict[str, int]:
        """Return the performance counters."""

    def close(self) -> None:
        """Release the device."""


class Device(ABC):
    """An open accelerator; a context manager that closes the device.

    Attributes
    ----------
    uri : str
        URI that the device was opened with.
    manifest : Manifest
        Description of the accelerator.
    is_software_engine : bool
        Whether :class:`host.engine.software.SoftwareEngine` answers joins, so that no words are
        made for them.
    """

    uri: str
    manifest: Manifest
    is_software_engine: bool = False

    @abstractmethod
    def exchange(
        self,
        words: UInt64s,
        results: UInt64s,
        *,
        cycles: int,
        stamps: Stamps | None = None,
    ) -> Exchange:
        """Offer ``words`` in order and collect result words in order, without blocking.

        Returns when ``cycles`` clock cycles have run, when ``results`` is full, or when the last
        result is a MARK. A caller calls it in a loop, with a deadline of its own. The device may
        read accepted words also after that, so a caller does not write where they stand.

        Parameters
        ----------
        words : array of uint64, (n, ceil(input bits / 64)), C-contiguous
            Input words; n may be zero.
        results : array of uint64, (m, ceil(result bits / 64)), C-contiguous, writable
            Room for result words; m may be zero.
        cycles : int
            Largest number of clock cycles to run; ignored by a device without a clock.
        stamps : Stamps, optional
            Receives the cycle in which each word was accepted and each result emitted.

        Raises
        ------
        DeviceError
            If the device is closed or broken.
        """

    def allocate(self, shape: tuple[int, int]) -> UInt64s:
        """Return an array for words, with undefined contents, that the device reads without a copy.

        Words in any other array are right as well.
        """
        return np.empty(shape, np.uint64)

    @abstractmethod
    def counters(self) -> dict[str, int]:
        """Return the performance counters, by their names in the manifest."""

    @abstractmethod
    def close(self) -> None:
        """Release the device; closing it again has no effect.

        Closing does not wait forever. If another thread is inside a call that does not return,
        closing raises after some seconds.

        Raises
        ------
        DeviceError
            If another thread is still inside a call.
        """

    def close_after(self, error: BaseException | None) -> None:
        """Close the device after work that ended with ``error``, or without one.

        An error raised by closing is added to ``error`` as a note, because ``error`` came first.
        """
        try:
            self.close()
        except DeviceError as refusal:
            if error is None:
                raise
            error.add_note(str(refusal))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self.close_after(error)


def check_words(manifest: BundleManifest, words: UInt64s, results: UInt64s) -> None:
    """Raise :exc:`~host.errors.DeviceError` unless both arrays have the shape of the contract."""
    for name, array, word in [
        ("words", words, manifest.input_word),
        ("results", results, manifest.result_word),
    ]:
        if (
            array.dtype != np.uint64
            or array.ndim != 2
            or array.shape[1] != word.columns
            or not array.flags.c_contiguous
        ):
            raise DeviceError(
                f"Array {name!r} must be C-contiguous uint64 of shape (n, {word.columns}), not "
                f"{array.dtype} of shape {array.shape}."
            )
    if not results.flags.writeable:
        raise DeviceError("Array 'results' must be writable.")


_LOAD = "load the bundle's bitstream, or name the bundle of the bitstream that is there"


def require_bundle(
    uri: str, board: str, bundle: str, what: str = "manifest hash", remedy: str = _LOAD
) -> None:
    """Raise :exc:`~host.errors.DeviceError` unless hardware says what its bundle says."""
    if board != bundle:
        told = f"Device {uri!r} has the {what} {board}, but the bundle has {bundle}; {remedy}."
        raise DeviceError(told, "other")


# Devices, and functions to open them.

_KINDS = ("software", "sim")
#: Kinds of devices behind a link and behind a bus, which are pieces of hardware.
_LINK_KINDS = ("serial", "tcp", "udp")
_BUS_KINDS = ("axi", "pynq")
#: Kind of devices that are kernels of Vitis, which are pieces of hardware, too.
_KERNEL_KIND = "xrt"


def open_device(uri: str) -> Device:
    """Open the device that ``uri`` names.

    Parameters
    ----------
    uri : str
        ``"sim:BUNDLE"`` runs the bundle's simulator library, and ``"sim:"`` that of the default
        index, which is built when it is first needed. ``"software:"`` is the software
        engine, which is always available. ``"software:BUNDLE"`` is a model of the bundle's hardware
        with the same results. ``"serial:PATH?baud=N&bundle=DIR"`` is a
        board at a serial port, ``"tcp:HOST:PORT?bundle=DIR"`` one behind a TCP server, and
        ``"udp:HOST:PORT?bundle=DIR"`` one with Ethernet; all of them take ``reconnect=SECONDS``
        (``docs/link.md``). ``"axi:/dev/xdma0?bundle=DIR"`` is a card behind the driver XDMA, and
        ``"pynq:FILE.bit?bundle=DIR"`` a PYNQ overlay, ``"xrt:FILE.xclbin?bundle=DIR"`` a kernel of
        Vitis (``docs/guide-dma.md``).
        ``"PACKAGE.MODULE:PLACE"`` (a dotted name)
        calls ``open_device(place)`` of that module, for devices that are not the kit's.

    Raises
    ------
    UsageError
        If there is no such kind of device.
    ManifestError
        If the bundle cannot be used.
    DeviceError
        If no board answers, or another one than the bundle's.
    """
    kind = device_kind(uri)
    scheme, _, place = uri.partition(":")
    if kind == "software":
        from host.devices.software import SOFTWARE_MANIFEST, SoftwareDevice

        device = SoftwareDevice(Path(place) if place else SOFTWARE_MANIFEST, uri=uri)
        device.is_software_engine = not place
        return device
    if kind == "sim":
        from host.devices.simulated import SimulatedDevice

        if not place:
            from host.devices.bundles import default_bundle

            bundle = default_bundle("index")
            return SimulatedDevice(bundle, uri=f"{uri}{bundle}")
        return SimulatedDevice(Path(place), uri=uri)
    if kind in _LINK_KINDS:
        from host.devices.linked import LinkedDevice

        return LinkedDevice(uri)
    if kind in _BUS_KINDS:
        from host.devices.bus import open_bus

        return open_bus(uri)
    if kind == _KERNEL_KIND:
        from host.devices.kernel import open_kernel

        return open_kernel(uri)
    return _opened_by_module(scheme, place, uri)


def open_aggregate(uri: str) -> "SimulatedAggregate":
    """Open the accelerator of windowed aggregates that ``"sim:BUNDLE"`` names.

    Raises
    ------
    UsageError
        If it is another kind of device, for those only join.
    ManifestError
        If the bundle cannot be used.
    """
    if device_kind(uri) != "sim":
        raise unusable_uri(uri, "cannot aggregate, as only simulated ones can so far")
    _, _, place = uri.partition(":")
    if not place:
        raise unusable_uri(uri, "lacks its bundle")
    from host.devices.simulated import SimulatedAggregate

    return SimulatedAggregate(Path(place), uri=uri)


def device_kind(uri: str) -> str:
    """Return the kind of a device: its scheme, or ``"module"`` for one that is not the kit's.

    Raises
    ------
    UsageError
        If there is no such kind of device.
    """
    if not isinstance(uri, str):
        raise UsageError(
            f"A device is an open one, or its address, such as 'software:' or 'sim:build/demo', "
            f"not {uri!r}."
        )
    scheme, separator, _ = uri.partition(":")
    if not separator:
        raise unusable_uri(uri, "names no kind of device")
    if scheme in (*_KINDS, *_LINK_KINDS, *_BUS_KINDS, _KERNEL_KIND):
        return scheme
    if "." in scheme:
        return "module"
    raise unusable_uri(uri, f"has the unknown scheme {scheme!r}")


def uri_options(uri: str, known: set[str]) -> tuple[str, dict[str, str]]:
    """Return the place and the options of ``KIND:PLACE?NAME=VALUE&NAME=VALUE``.

    Raises
    ------
    UsageError
        If an option is not one of those ``known``, or ``bundle`` is missing.
    """
    place, _, query = uri.partition(":")[2].partition("?")
    options = dict(parse_qsl(query, keep_blank_values=True))
    for name in options:
        if name not in known:
            listing = ", ".join(sorted(known))
            raise unusable_uri(uri, f"has the unknown option {name!r} (known: {listing})")
    if not options.get("bundle"):
        raise unusable_uri(uri, "lacks its bundle, '?bundle=DIR'")
    return place, options


def is_shared(uri: str) -> bool:
    """Return whether all processes of a machine that open ``uri`` share one device.

    Each process makes its own simulation or model. Devices behind a link, a bus or XRT are pieces
    of hardware, and devices that are not the kit's can be some; processes must use them in turns.

    Raises
    ------
    UsageError
        If there is no such kind of device.
    """
    return device_kind(uri) not in _KINDS


def _opened_by_module(name: str, place: str, uri: str) -> Device:
    """Open a device with the function of a module that is not the kit's."""
    try:
        opener = importlib.import_module(name).open_device
    except (ImportError, AttributeError) as error:
        raise unusable_uri(
            uri, f"needs the function open_device of module {name!r}: {error}"
        ) from error
    device = opener(place)
    if not isinstance(device, Device):
        raise unusable_uri(uri, f"was opened as a {type(device).__name__}, which is no Device")
    return device

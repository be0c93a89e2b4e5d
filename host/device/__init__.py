# SPDX-License-Identifier: Apache-2.0
"""Devices, and functions to open them."""

import importlib
from pathlib import Path
from typing import TYPE_CHECKING

from host.device.contract import Device, Exchange, Stamps, WordDevice
from host.errors import DeviceUriError

if TYPE_CHECKING:
    from host.device.simulated import SimulatedAggregate

__all__ = [
    "Device",
    "Exchange",
    "Stamps",
    "WordDevice",
    "device_kind",
    "is_shared",
    "open_aggregate",
    "open_device",
]

_KINDS = ("software", "sim")
#: Kinds of devices behind a link, which are pieces of hardware.
_LINK_KINDS = ("serial", "tcp", "udp")


def open_device(uri: str) -> Device:
    """Open the device that ``uri`` names.

    Parameters
    ----------
    uri : str
        ``"sim:BUNDLE"`` runs the bundle's simulator library. ``"software:"`` is the software
        engine, which is always available. ``"software:BUNDLE"`` is a model of the bundle's hardware
        with the same results. ``"serial:PATH?baud=N&bundle=DIR"`` is a
        board at a serial port, ``"tcp:HOST:PORT?bundle=DIR"`` one behind a TCP server, and
        ``"udp:HOST:PORT?bundle=DIR"`` one with Ethernet; all of them take ``reconnect=SECONDS``
        (``docs/link.md``). ``"PACKAGE.MODULE:PLACE"`` (a dotted name)
        calls ``open_device(place)`` of that module, for devices that are not the kit's.

    Raises
    ------
    DeviceUriError
        If there is no such kind of device.
    ManifestError
        If the bundle cannot be used.
    LinkError
        If no board answers, or another one than the bundle's.
    """
    kind = device_kind(uri)
    scheme, _, place = uri.partition(":")
    if kind == "software":
        from host.device.software import SOFTWARE_MANIFEST, SoftwareDevice

        device = SoftwareDevice(Path(place) if place else SOFTWARE_MANIFEST, uri=uri)
        device.is_software_engine = not place
        return device
    if kind == "sim":
        if not place:
            raise DeviceUriError(uri, "lacks its bundle")
        from host.device.simulated import SimulatedDevice

        return SimulatedDevice(Path(place), uri=uri)
    if kind in _LINK_KINDS:
        from host.device.linked import LinkedDevice

        return LinkedDevice(uri)
    return _opened_by_module(scheme, place, uri)


def open_aggregate(uri: str) -> "SimulatedAggregate":
    """Open the accelerator of windowed aggregates that ``"sim:BUNDLE"`` names.

    Raises
    ------
    DeviceUriError
        If it is another kind of device, for those only join.
    ManifestError
        If the bundle cannot be used.
    """
    _, _, place = uri.partition(":")
    if device_kind(uri) != "sim":
        raise DeviceUriError(uri, "cannot aggregate, as only simulated ones can so far")
    if not place:
        raise DeviceUriError(uri, "lacks its bundle")
    from host.device.simulated import SimulatedAggregate

    return SimulatedAggregate(Path(place), uri=uri)


def device_kind(uri: str) -> str:
    """Return the kind of a device: its scheme, or ``"module"`` for one that is not the kit's.

    Raises
    ------
    DeviceUriError
        If there is no such kind of device.
    """
    scheme, separator, _ = uri.partition(":")
    if not separator:
        raise DeviceUriError(uri, "names no kind of device")
    if scheme in _KINDS or scheme in _LINK_KINDS:
        return scheme
    if "." in scheme:
        return "module"
    raise DeviceUriError(uri, f"has the unknown scheme {scheme!r}")


def is_shared(uri: str) -> bool:
    """Return whether all processes of a machine that open ``uri`` share one device.

    Each process makes its own simulation or model. Devices behind a link are pieces of
    hardware, and devices that are not the kit's can be some; processes must use them in turns.

    Raises
    ------
    DeviceUriError
        If there is no such kind of device.
    """
    return device_kind(uri) not in _KINDS


def _opened_by_module(name: str, place: str, uri: str) -> Device:
    """Open a device with the function of a module that is not the kit's."""
    try:
        opener = importlib.import_module(name).open_device
    except (ImportError, AttributeError) as error:
        raise DeviceUriError(
            uri, f"needs the function open_device of module {name!r}: {error}"
        ) from error
    device = opener(place)
    if not isinstance(device, Device):
        raise DeviceUriError(uri, f"was opened as a {type(device).__name__}, which is no Device")
    return device

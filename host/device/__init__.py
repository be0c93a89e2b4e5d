# SPDX-License-Identifier: Apache-2.0
"""Devices, and how to open one."""

import importlib
from pathlib import Path

from host.device.contract import Device, Exchange, Stamps
from host.errors import DeviceUriError

__all__ = ["Device", "Exchange", "Stamps", "open_device"]


def open_device(uri: str) -> Device:
    """Open the device that ``uri`` names.

    Parameters
    ----------
    uri : str
        ``"sim:BUNDLE"`` runs the bundle's simulator library. ``"software:"`` is the reference
        join with a manifest of its own, and always there. ``"software:BUNDLE"`` answers from the
        reference join with the result words of the bundle's hardware. ``"PACKAGE.MODULE:PLACE"``
        (a dotted name) calls ``open_device(place)`` of that module, for devices of one's own.

    Raises
    ------
    DeviceUriError
        If there is no such kind of device.
    ManifestError
        If the bundle cannot be used.
    """
    scheme, separator, place = uri.partition(":")
    if not separator:
        raise DeviceUriError(uri, "names no kind of device")
    if scheme == "software":
        from host.device.software import SOFTWARE_MANIFEST, SoftwareDevice

        return SoftwareDevice(Path(place) if place else SOFTWARE_MANIFEST, uri=uri)
    if scheme == "sim":
        if not place:
            raise DeviceUriError(uri, "lacks its bundle")
        from host.device.simulated import SimulatedDevice

        return SimulatedDevice(Path(place), uri=uri)
    if "." in scheme:
        return _opened_by_module(scheme, place, uri)
    raise DeviceUriError(uri, f"has the unknown scheme {scheme!r}")


def _opened_by_module(name: str, place: str, uri: str) -> Device:
    """Let a module that is not the kit's open the device."""
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

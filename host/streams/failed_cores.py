# SPDX-License-Identifier: Apache-2.0
"""Which cores of a device take part in a query, and the words that tell the device so."""

from weakref import WeakKeyDictionary

import numpy as np

from host.device import Device
from host.exact import UInt64s
from host.manifest import Manifest
from host.words import WordCodec

__all__ = ["failed_cores", "has_gates", "note_failed", "participation"]

_FAILED: "WeakKeyDictionary[Device, frozenset[int]]" = WeakKeyDictionary()


def has_gates(manifest: Manifest) -> bool:
    """Return whether the cores of an accelerator can be masked, and tell when they fail."""
    return "MASK" in manifest.operations


def failed_cores(device: Device) -> frozenset[int]:
    """Return the cores that have failed since the device was opened."""
    return _FAILED.get(device, frozenset())


def note_failed(device: Device, core: int) -> None:
    """Remember for later queries on the device that a core has failed."""
    _FAILED[device] = failed_cores(device) | {core}


def participation(device: Device) -> UInt64s:
    """Return the words that come first in a query: they mask the failed cores and no others."""
    codec = WordCodec(device.manifest)
    failed = failed_cores(device)
    words = [
        codec.pack_control("MASK" if core in failed else "UNMASK", value=core)
        for core in range(device.manifest.storage.cores)
    ]
    return np.concatenate(words)

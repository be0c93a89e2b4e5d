# SPDX-License-Identifier: Apache-2.0
"""Which cores of a device take part in a query, and the words that tell the device so."""

from collections.abc import Iterable
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from host.cores.core_contents import fewest_cores
from host.cores.turns import segment_words
from host.device import Device
from host.errors import CoreFailureError, UsageError
from host.manifest import Manifest
from host.reference.exact import UInt64s
from host.reference.side import Side
from host.reference.window import Window
from host.words import WordCodec

__all__ = [
    "Exclusion",
    "NewTurns",
    "exclude",
    "failed_cores",
    "has_gates",
    "note_failed",
    "note_new",
    "participation",
]

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


def note_new(device: Device, told: Iterable[int]) -> list[int]:
    """Remember the cores that results tell have failed; return those that were not known yet."""
    new = sorted(set(told) - failed_cores(device))
    for core in new:
        note_failed(device, core)
    return new


class NewTurns(NamedTuple):
    """Which cores take turns after a failure.

    Attributes
    ----------
    live : tuple of int
        The cores, in the order of their turns.
    first : dict of Side to int or None
        If the accelerator was cleared and tuples were sent again: the number of the first one of
        each side.
    """

    live: tuple[int, ...]
    first: dict[Side, int] | None = None


class Exclusion(NamedTuple):
    """How an accelerator goes on without cores that have failed.

    Attributes
    ----------
    live : list of int
        The cores that go on, in the order of their turns.
    masks : array of uint64
        The words that mask the cores.
    segment : array of uint64
        The words that begin a segment of the live cores.
    """

    live: list[int]
    masks: UInt64s
    segment: UInt64s


def exclude(
    device: Device,
    new: list[int],
    cores: Iterable[int],
    window: Window,
    *,
    others: Iterable[int] = (),
) -> Exclusion:
    """Return how a device goes on without the cores that have failed.

    Parameters
    ----------
    device : Device
        The device.
    new : list of int
        The cores that have just failed, at least one; they are known to have failed.
    cores : iterable of int
        The cores that took turns so far.
    window : CountWindow or TimeWindow
        Window of either side.
    others : iterable of int
        Cores that took no turns, and take them from now on if those that are left do not suffice.

    Raises
    ------
    CoreFailureError
        If no core is left, or if the window does not fit the cores that are left.
    """
    gone = failed_cores(device)
    live = [core for core in cores if core not in gone]
    if len(live) < fewest_cores(device.manifest, window):
        live += [core for core in others if core not in gone and core not in live]
    if not live:
        raise CoreFailureError(device.uri, min(gone), "No core is left; reset the device.")
    codec = WordCodec(device.manifest)
    masks = np.concatenate([codec.pack_control("MASK", value=core) for core in new])
    try:
        segment = segment_words(device.manifest, live, window)
    except UsageError as error:
        raise CoreFailureError(device.uri, new[0], str(error)) from error
    return Exclusion(live, masks, segment)

# SPDX-License-Identifier: Apache-2.0
"""Devices that fail as real ones do, and that no two tasks can have at once.

Their addresses are ``tests.spark_offload.faulty:WAY@PLACE``: PLACE is a file name of the device's
own, and WAY what it does: ``sound``, ``breaks`` and ``hangs`` (both after some words have passed),
``absent`` (it does not open). It answers by the reference join.
"""

import os
from pathlib import Path

import host
from host.devices import Exchange
from host.errors import DeviceError

__all__ = ["FaultyDevice", "address", "open_device"]

WORDS = 200
"""Words that a device takes before it fails."""

CYCLES = 1 << 40
"""Clock cycles that a device says to have run without progress when it hangs."""


def address(way, place, *, module=__name__):
    """Return the address of a device."""
    return f"{module}:{way}@{place}"


class FaultyDevice(host.Device):
    """A device around the software device."""

    def __init__(self, way, place):
        if way == "absent":
            raise FileNotFoundError(f"no such card: {place}")
        self.uri = address(way, place)
        self._way, self._left = way, WORDS
        # Raises if another one has it: such a device would mix two streams up.
        self._busy = Path(f"{place}.busy")
        os.close(os.open(self._busy, os.O_CREAT | os.O_EXCL))
        with open(f"{place}.log", "a") as log:
            print(os.getpid(), file=log)
        self._inner = host.open_device("software:")
        self.manifest = self._inner.manifest

    def exchange(self, words, results, *, cycles, stamps=None):
        if self._way != "sound":
            words = words[: self._left]
            if not self._left and self._way == "breaks":
                raise DeviceError("The link is down.")
        done = self._inner.exchange(words, results, cycles=cycles, stamps=stamps)
        self._left = max(0, self._left - done.accepted)
        idle = self._way == "hangs" and not done.accepted and not done.produced
        return Exchange(done.accepted, done.produced, CYCLES) if idle else done

    def counters(self):
        return self._inner.counters()

    def close(self):
        self._inner.close()
        self._busy.unlink(missing_ok=True)


def open_device(place):
    """Return the device of an address, its module left out."""
    way, _, name = place.partition("@")
    return FaultyDevice(way, name)

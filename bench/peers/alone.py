# SPDX-License-Identifier: Apache-2.0
"""The simulation of a command by itself: the words that its device took are offered again.

``bench.peers.alone:BUNDLE`` is the address of a simulated device that records them.
"""

from dataclasses import dataclass, field

import numpy as np

from host import open_device as open_named
from host.devices import Device
from host.errors import DeviceTimeoutError
from host.protocol.codecs import WordCodec

__all__ = ["Recording", "open_device", "recorded", "simulate"]

#: Results that are collected at a time, and clock cycles of one exchange.
RESULT_WORDS, EXCHANGE_CYCLES = 1 << 16, 1 << 20


@dataclass
class Recording:
    """What a device took and answered.

    Parameters
    ----------
    uri : str
        The simulated device.
    parts : list of array of uint64
        Words that it accepted.
    marks : int
        Marks that it answered with, the last of them at the end.
    """

    uri: str
    parts: list = field(default_factory=list)
    marks: int = 0


class _Recorder(Device):
    """A simulated device that notes what it takes."""

    def __init__(self, recording):
        self.inner, self.recording = open_named(recording.uri), recording
        self.uri, self.manifest = f"recorded {recording.uri}", self.inner.manifest
        self._codec = WordCodec(self.manifest)

    def exchange(self, words, results, *, cycles, stamps=None):
        done = self.inner.exchange(words, results, cycles=cycles, stamps=stamps)
        self.recording.parts.append(words[: done.accepted].copy())
        self.recording.marks += int(self._codec.marks(results[: done.produced]).sum())
        return done

    def counters(self):
        return self.inner.counters()

    def close(self):
        self.inner.close()


_recordings = []


def open_device(place):
    """Return a simulation of the bundle ``place`` that records its words."""
    _recordings.append(Recording(f"sim:{place}"))
    return _Recorder(_recordings[-1])


def recorded(run, bundle):
    """Call ``run`` with the address of a device that records; return its recording."""
    run(f"bench.peers.alone:{bundle}")
    return _recordings.pop()


def simulate(recording):
    """Open a device and let it work on the words of a recording; return its clock cycles.

    Raises
    ------
    DeviceTimeoutError
        If nothing goes in or comes out for a whole exchange.
    """
    words, marks, cycles = np.concatenate(recording.parts), recording.marks, 0
    with open_named(recording.uri) as device:
        codec = WordCodec(device.manifest)
        results = np.zeros((RESULT_WORDS, device.manifest.result_word.columns), np.uint64)
        while marks:
            done = device.exchange(words, results, cycles=EXCHANGE_CYCLES)
            if not (done.accepted or done.produced):
                raise DeviceTimeoutError(device.uri, f"{done.cycles} cycles", device.counters())
            words = words[done.accepted :]
            marks -= int(codec.marks(results[: done.produced]).sum())
            cycles += done.cycles
    return cycles

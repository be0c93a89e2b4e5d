# SPDX-License-Identifier: Apache-2.0
"""A software device whose cores fail at places of the stream, and queries to try it with."""

from hdl.parameters import JoinParameters, KeyField
from host.devices.software import SoftwareDevice
from host.protocol.codecs import WordCodec

__all__ = ["FailingDevice", "gated", "open_device"]


def gated(**options):
    """Return parameters of a small accelerator whose cores have gates."""
    chosen = {"keys": (KeyField(name="x", bits=16),), "sub_window": 40, "timestamp_bits": 20}
    parameters = JoinParameters.of(**{"cores": 4, "probes": 2, **chosen, **options})
    return parameters.with_(failure_cycles=parameters.longest_silence)


class FailingDevice(SoftwareDevice):
    """A software device in which cores fail after so many tuples since it was opened.

    Parameters
    ----------
    bundle : path-like
    failures : list of (int, int)
        How many tuples come before a failure, and the core that fails; ascending.
    piece : int
        Words that an exchange takes at the most.
    """

    def __init__(self, bundle, failures=(), *, piece=50):
        super().__init__(bundle)
        self._coming = list(failures)
        self._taken = 0
        self._piece = piece
        self._tuple_counts = WordCodec(self.manifest).tuple_counts

    def exchange(self, words, results, *, cycles, stamps=None):
        words = words[: self._piece]
        if self._coming:
            ahead = self._tuple_counts(words).cumsum() + self._taken
            words = words[: int(ahead.searchsorted(self._coming[0][0])) + 1]
        done = super().exchange(words, results, cycles=cycles, stamps=stamps)
        self._taken += int(self._tuple_counts(words[: done.accepted]).sum())
        while self._coming and self._taken >= self._coming[0][0] and done.accepted == len(words):
            self.fail(self._coming.pop(0)[1])
        return done


def open_device(place):
    """Return the device of ``BUNDLE,TUPLES,CORE``: that core fails after so many tuples."""
    bundle, tuples, core = place.rsplit(",", 2)
    return FailingDevice(bundle, [(int(tuples), int(core))])

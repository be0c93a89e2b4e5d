# SPDX-License-Identifier: Apache-2.0
"""When an index gets other seeds: after a join whose walks were long for few results.

A change of seeds empties both windows, so it is made where they are empty anyway: with the
configuration of the next join on the device, which is the next partition or micro-batch of a query
that consists of several. Changing them in the middle of a join would mean to send both windows
again, and to leave out what their tuples find among one another.
"""

from collections.abc import Mapping

from host.device import Device

__all__ = ["HashWatch", "hash_choice"]

#: Entries that a probe may read beside its results, as a multiple of what a good hash would cost.
PATIENCE = 4
#: Probes below which nothing is concluded.
LEAST_PROBES = 1 << 12

_choices: dict[str, int] = {}


def hash_choice(device: Device) -> int:
    """Return the seeds that joins on the device at this address use now, in this process."""
    return _choices.get(device.uri, 0)


class HashWatch:
    """Watches one join on an index engine, and chooses other seeds at its end if that may help.

    Parameters
    ----------
    device : Device
        An open device that does nothing at the moment.

    Attributes
    ----------
    choice : int
        The seeds that the join uses.
    note : str
        What was found and done at its end; empty if nothing was.
    """

    def __init__(self, device: Device) -> None:
        self._device = device
        self._before = self._counters()
        self.choice = hash_choice(device)
        self.note = ""

    def _counters(self) -> Mapping[str, int]:
        return self._device.counters() if self._device.manifest.engine == "index" else {}

    def finish(self) -> None:
        """Look at the counters after the last result; the first time, choose other seeds."""
        after = self._counters()
        grown = {name: value - self._before.get(name, 0) for name, value in after.items()}
        probes = grown.get("tuples_r", 0) + grown.get("tuples_s", 0)
        entries, results = grown.get("region_busy", 0), grown.get("results", 0)
        if probes < LEAST_PROBES or entries <= PATIENCE * self._expected(probes, results):
            return
        self.note = (
            f"an index read {entries:,} entries for {probes:,} probes and {results:,} results"
        )
        if self.choice == hash_choice(self._device) == 0:
            _choices[self._device.uri] = 1
            self.note += "; the next join on this device hashes keys with other seeds"

    def _expected(self, probes: int, results: int) -> int:
        """Entries that probes read if buckets are filled at random: results, and neighbours."""
        manifest = self._device.manifest
        assert manifest.index is not None
        storage = manifest.storage
        load = max(1, storage.sub_window >> manifest.index.bucket_bits)
        return results + probes * storage.cores * load

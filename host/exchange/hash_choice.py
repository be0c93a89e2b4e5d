# SPDX-License-Identifier: Apache-2.0
"""Choose other hash seeds for an index after a join that read many entries for few results.

A change of seeds empties both windows. It is therefore made with the configuration of the next join
on the device, when the windows are empty anyway; the next join is often the next partition or
micro-batch of the same query. A change in the middle of a join would require sending both windows
again, and leaving out the pairs that their tuples find among themselves.
"""

from collections.abc import Mapping

from host.device import Device

__all__ = ["HashWatch", "hash_choice"]

#: Factor by which a probe may read more entries than with a good hash.
PATIENCE = 4
#: Least number of probes from which a conclusion is drawn.
LEAST_PROBES = 1 << 12

_choices: dict[str, int] = {}


def hash_choice(device: Device) -> int:
    """Return the choice of seeds that joins on this device's URI now use in this process."""
    return _choices.get(device.uri, 0)


class HashWatch:
    """Watches one join on an index engine, and may choose other seeds for the next one.

    Parameters
    ----------
    device : Device
        An open device that is idle.

    Attributes
    ----------
    choice : int
        The choice of seeds that the join uses.
    note : str
        What was found and done at the end of the join; empty if there was nothing to report.
    """

    def __init__(self, device: Device) -> None:
        self._device = device
        self._before = self._counters()
        self.choice = hash_choice(device)
        self.note = ""

    def _counters(self) -> Mapping[str, int]:
        return self._device.counters() if self._device.manifest.engine == "index" else {}

    def finish(self) -> None:
        """Check the counters after the last result; choose other seeds if none were chosen yet."""
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
        """Return the entries read in randomly filled buckets: results and their neighbours."""
        manifest = self._device.manifest
        assert manifest.index is not None
        storage = manifest.storage
        load = max(1, storage.sub_window >> manifest.index.bucket_bits)
        return results + probes * storage.cores * load

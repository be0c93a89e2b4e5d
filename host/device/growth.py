# SPDX-License-Identifier: Apache-2.0
"""By how much the counters of a device grow."""

from collections.abc import Mapping

from host.manifest import Manifest

__all__ = ["growth"]


def growth(manifest: Manifest, then: Mapping[str, int], now: Mapping[str, int]) -> dict[str, int]:
    """Return the growth of each counter, which begins again at zero after its last bit."""
    return {
        counter.name: (now[counter.name] - then[counter.name]) % (1 << counter.bits)
        for counter in manifest.counters
        if counter.name in then and counter.name in now
    }

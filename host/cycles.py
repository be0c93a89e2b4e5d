# SPDX-License-Identifier: Apache-2.0
"""How many clock cycles a join will take at the least, from its size, before it runs."""

from dataclasses import dataclass
import math

from host.manifest import Manifest

__all__ = ["JoinSize", "estimated_cycles"]


@dataclass(frozen=True)
class JoinSize:
    """The size of one join on one device.

    Parameters
    ----------
    rows : (float, float)
        Tuples of R and of S.
    windows : (float, float)
        Tuples of R, and of S, in the window when a tuple of the other side comes, on average.
    """

    rows: tuple[float, float]
    windows: tuple[float, float]

    def shared(self, devices: int) -> "JoinSize":
        """Return the part of each of several devices, each of which has its own keys."""
        left, right = self.rows
        left_window, right_window = self.windows
        return JoinSize(
            (left / devices, right / devices), (left_window / devices, right_window / devices)
        )


def estimated_cycles(manifest: Manifest, size: JoinSize) -> int:
    """Estimate the cycles of a join at the least: what it takes if few tuples match.

    A scan's tuples come in full groups, each of which reads the rows of its window once, both
    regions of a core at the same time ("How long a pass takes" in ``docs/scan-engine.md``). An
    index takes a cycle for each tuple, or for one of each side where two share a word; what its
    walks take besides depends on the values.
    """
    tuples = sum(size.rows)
    if manifest.engine == "index":
        return math.ceil(tuples if manifest.tuples_per_word == 1 else max(size.rows))
    storage, probes = manifest.storage, manifest.probes
    passes: list[float] = []
    for tuples_of_side, window in zip(size.rows, reversed(size.windows), strict=True):
        rows = max(1, math.ceil(window / (storage.cores * storage.lanes)))
        if tuples_of_side:
            words = probes * tuples / tuples_of_side  # that arrive from one pass to the next
            passes.append(tuples_of_side / probes * max(rows, words + 1))
    return math.ceil(max([tuples, *passes]))

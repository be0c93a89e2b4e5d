# SPDX-License-Identifier: Apache-2.0
"""Estimate, from the size of a join, the least number of clock cycles that it takes."""

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
        Number of tuples of R and of S.
    windows : (float, float)
        Average number of tuples in the window of R when a tuple of S arrives, and vice versa.
    """

    rows: tuple[float, float]
    windows: tuple[float, float]

    def shared(self, devices: int) -> "JoinSize":
        """Return the share of each device if several devices have disjoint keys."""
        left, right = self.rows
        left_window, right_window = self.windows
        return JoinSize(
            (left / devices, right / devices), (left_window / devices, right_window / devices)
        )


def estimated_cycles(manifest: Manifest, size: JoinSize) -> int:
    """Return the least number of cycles of a join, which is reached if few tuples match.

    In a scan, tuples form full groups. Each group reads the rows of its window once, and both
    regions of a core work at the same time ("How long a pass takes" in ``docs/scan-engine.md``). An
    index takes a cycle per tuple, or per pair of tuples of both sides where two share a word. The
    cycles of its walks depend on the values and are not included.
    """
    tuples = sum(size.rows)
    if manifest.engine == "index":
        return math.ceil(tuples if manifest.tuples_per_word == 1 else max(size.rows))
    storage, probes = manifest.storage, manifest.probes
    passes: list[float] = []
    for tuples_of_side, window in zip(size.rows, reversed(size.windows), strict=True):
        rows = max(1, math.ceil(window / (storage.cores * storage.lanes)))
        if tuples_of_side:
            words = probes * tuples / tuples_of_side  # words that arrive during one pass
            passes.append(tuples_of_side / probes * max(rows, words + 1))
    return math.ceil(max([tuples, *passes]))

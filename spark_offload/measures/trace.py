# SPDX-License-Identifier: Apache-2.0
"""Traces of many results as a few numbers that are cheap to send and to add."""

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["cumulative_counts", "histogram"]

FINE_BITS = 12
"""Bins of a histogram per doubling of the value, as a power of two."""


def histogram(values: npt.NDArray[Any]) -> dict[int, int]:
    """Count non-negative values in bins; each key is the least value of its bin.

    Below 8,192 a bin is one value; above, at most 1/4,096 of it, so that the histograms of several
    tasks can be added whatever their ranges.
    """
    values = np.asarray(values, dtype=np.int64)
    if not len(values):
        return {}
    exponents = np.frexp(np.maximum(values, 1).astype(np.float64))[1].astype(np.int64)
    shifts = np.maximum(exponents - (FINE_BITS + 1), 0)
    lows, counts = np.unique((values >> shifts) << shifts, return_counts=True)
    return {int(low): int(count) for low, count in zip(lows, counts, strict=True)}


def cumulative_counts(
    cycles: npt.NDArray[Any], end: int, points: int = 160
) -> tuple[tuple[int, int], ...]:
    """Return (cycle, events up to it) at evenly spaced cycles up to ``end``."""
    ordered = np.sort(np.asarray(cycles, dtype=np.int64))
    last = max(end, int(ordered[-1]) if len(ordered) else 0)
    if last <= 0:
        return ()
    at = np.unique(np.linspace(0, last, points + 1).astype(np.int64)[1:])
    counts = np.searchsorted(ordered, at, side="right")
    return tuple((int(cycle), int(count)) for cycle, count in zip(at, counts, strict=True))

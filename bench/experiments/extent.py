# SPDX-License-Identifier: Apache-2.0
"""How far the figures go: as far as the documents show, or as far as a few minutes allow."""

from dataclasses import dataclass

from .accelerators import CORES

__all__ = ["FULL", "QUICK", "Extent"]


@dataclass(frozen=True)
class Extent:
    """Numbers of cores, windows and shapes of the figures.

    Most of the time of a few points goes into building their accelerators, so the quick figures
    share them.

    Parameters
    ----------
    cores : tuple of int
        Numbers of join cores; the last one also stands for "many cores".
    windows : tuple of int
        Windows of the figures over cores, in tuples per side.
    sizes : tuple of int
        Logarithms of the windows of the figure over windows.
    orders : tuple of (int, int)
        Cores and window of each series of Figure 19.
    rounds : tuple of int
        Stored tuples of a core per round of each inner order; a core holds 512.
    round_shapes, engines, bands : tuple of str
        Labels of the series that are drawn.
    shares : tuple of float
        Cycles from tuple to tuple in the figure over the input rate, in parts of what the
        comparators need.
    """

    cores: tuple[int, ...]
    windows: tuple[int, ...]
    sizes: tuple[int, ...]
    orders: tuple[tuple[int, int], ...]
    rounds: tuple[int, ...]
    round_shapes: tuple[str, ...]
    engines: tuple[str, ...]
    bands: tuple[str, ...]
    shares: tuple[float, ...]


#: What ``make experiments`` measures, and the documents show.
FULL = Extent(
    cores=CORES,
    windows=(1 << 10, 1 << 11, 1 << 12),
    sizes=(10, 11, 12, 13, 14),
    orders=((8, 1 << 12), (8, 1 << 13), (32, 1 << 10)),
    rounds=(1, 2, 4, 8, 16, 32, 64, 128, 256, 512),
    round_shapes=("one lane", "four lanes", "one lane, two result ports"),
    engines=("scan-1x1", "scan-1x4", "scan-1x16", "scan-4x1", "scan-4x4", "digest-4x4", "index"),
    bands=(
        "whole keys, 4 x 4", "digests, 4 x 4", "whole keys, 26 x 2 (ecp5-band)",
        "digests, 15 x 14 (ecp5-band-digest)",
    ),
    shares=(1.06, 1.12, 1.2, 1.5, 2, 4, 16),
)  # fmt: skip

#: … and what it measures with ``QUICK=1``.
QUICK = Extent(
    cores=(2, 4, 8),
    windows=(1 << 10, 1 << 11),
    sizes=(10, 11),
    orders=((8, 1 << 10), (8, 1 << 11)),
    rounds=(1, 4, 16, 512),
    round_shapes=("one lane",),
    engines=("scan-1x1", "scan-4x4", "index"),
    bands=("whole keys, 4 x 4", "digests, 4 x 4"),
    shares=(1.06, 1.2, 2, 4),
)

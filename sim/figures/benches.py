# SPDX-License-Identifier: Apache-2.0
"""How much of what matters the cocotb benches meet."""

from sim.benches.runner import run_benches
from sim.benches.shapes import SHAPES

from .registry import Result, figure

__all__ = []

#: Of the tuples and stalls, so that the figure is the same every time.
SEED = 1


@figure("cocotb.coverage", unit="of 1", goal=">= 1")
def coverage(report):
    """Cases that the cocotb benches meet, by those that their accelerators can meet.

    Every engine, comparator and shape of a preset; the cases are those of
    :mod:`sim.scenarios.cases`, told from the words. All answers are those of the reference
    join, or nothing is measured.
    """
    share = run_benches(SHAPES, seed=SEED)
    return Result(share, notes=(f"{len(SHAPES)} accelerators, seed {SEED}",))

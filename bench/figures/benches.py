# SPDX-License-Identifier: Apache-2.0
"""The functional coverage of the cocotb benches."""

from sim.benches.runner import run_benches
from sim.benches.shapes import SHAPES

from .registry import Result, figure

__all__ = []

#: Seed of tuples and stalls, fixed so that the figure is the same in every run.
SEED = 1


@figure("cocotb.coverage", unit="of 1", goal=">= 1")
def coverage(report):
    """Share of the cases that the cocotb benches meet, of those that their accelerators can meet.

    The benches cover every engine, comparator and shape of a preset. :mod:`sim.scenarios.cases`
    defines the cases and recognizes them in the words. The figure is measured only if all answers
    agree with the reference join.
    """
    share = run_benches(SHAPES, seed=SEED)
    return Result(share, notes=(f"{len(SHAPES)} accelerators, seed {SEED}",))

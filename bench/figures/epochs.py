# SPDX-License-Identifier: Apache-2.0
"""What an epoch costs, and whether a join under many epochs answers each pair once."""

from functools import cache
from pathlib import Path

from bench.epochs import ENGINES, WINDOWS, compare
from hdl.bundle import write_bundle
from sim.verilated.library import build_library

from .epoch_broadcast import EpochRun
from .registry import Result, figure

__all__ = []

#: Steps of the seed's Table IV: threads before and after a reconfiguration.
STEPS = [
    (1, 2), (5, 9), (9, 16), (18, 31), (30, 52), (40, 69),
    (5, 2), (9, 3), (18, 7), (30, 12), (40, 17), (60, 25), (70, 30),
]  # fmt: skip
#: Tuples and epochs of each of the joins.
TUPLES, EPOCHS = 250_000, 2_500


@cache
def broadcast():
    """Return the run of all steps, in an accelerator of as many cores as the largest needs."""
    run = EpochRun(max(map(max, STEPS)), STEPS)
    run.run()
    return run


@figure("epoch.reconfiguration_cycles", unit="cycles", goal="<= 16")
def reconfiguration_cycles(report):
    """Cycles from SEGMENT to the first tuple of the new epoch at the last core; the worst step.

    All steps of the seed's Table IV, from 1 -> 2 up to 70 -> 30 active cores, in the ingress and
    the distribution tree of an accelerator of 70 cores, in Amaranth's simulator. Cores take a word
    in every cycle; a core that does not delays epochs as it delays all words. The goal is twice the
    depth of the tree and 8. In every cycle, all cores are compared: they have the same word, and it
    names the owner that the epoch in force says.

    CORE words come before SEGMENT, one per core. They change nothing until then.
    """
    report("70 cores, all steps of Table IV")
    run = broadcast()
    notes = tuple(
        f"{old} to {new} cores: {cycles} cycles, after {run.preparation[old, new]} of CORE words"
        for (old, new), cycles in run.cycles.items()
    )
    depth = f"depth of the tree {run.depth}, so the goal is {2 * run.depth + 8}"
    return Result(max(run.cycles.values()), notes=(depth, *notes))


#: Tuples of a side in the windows of which the imbalance is measured.
BALANCED = 1 << 12


@figure("epoch.imbalance", unit="%", goal="<= 2")
def imbalance(report):
    """Coefficient of variation of the tuples that cores hold before a step of Table IV; the worst.

    The right half of the seed's Figure 9, for a window of :data:`BALANCED` tuples: a core compares
    each probe with what it holds. What each of the 70 cores is told to store is counted in the
    circuit of ``epoch.reconfiguration_cycles``.
    """
    report("70 cores, windows of 4,096 tuples")
    first = {step[0]: step for step in STEPS}
    run = EpochRun(max(map(max, STEPS)), list(first.values()), BALANCED)
    run.run()
    found = {old: run.imbalance(step) for old, step in sorted(first.items())}
    notes = tuple(f"{old} cores: {percent:.2f} %" for old, percent in found.items())
    return Result(max(found.values()), notes=notes)


@figure("epoch.stall_cycles", unit="cycles", goal="<= 0")
def stall_cycles(report):
    """Cycles in which the input waits, over all steps of Table IV.

    The run of ``epoch.reconfiguration_cycles``: a word is offered in every cycle. What closing the
    groups costs in the cores is ``segments.closing_cycles``.
    """
    report("70 cores, all steps of Table IV")
    return broadcast().stalls


@figure("epoch.lost_or_repeated_pairs", unit="pairs", goal="<= 0")
def lost_or_repeated_pairs(report):
    """Pairs that are lost, repeated or wrong in 1,000,000 tuples under 10,000 random epochs.

    A scan and an index, each with a count-based and a time-based window, simulated; 250,000 tuples
    and 2,500 epochs each, at random places, of random cores in a random order. Compared with the
    reference join, pair by pair. An epoch whose successor comes before the ingress has a free list
    of cores is superseded.
    """
    found = {}
    for engine, parameters in ENGINES.items():
        bundle = Path("build") / "figures" / f"epochs-{engine}"
        write_bundle(parameters, bundle)
        build_library(bundle, report=report)
        for kind, window in WINDOWS.items():
            report(f"{engine}, {kind} window")
            name = f"{engine}, {kind} window"
            found[name] = compare(
                f"sim:{bundle}", window, tuples=TUPLES, epochs=EPOCHS, seed=len(found)
            )
    notes = tuple(
        f"{name}: {one.pairs:,} pairs, {one.epochs:,} epochs and {one.superseded:,} superseded, "
        f"{one.bad} pairs wrong"
        for name, one in found.items()
    )
    return Result(sum(one.bad for one in found.values()), notes=notes)

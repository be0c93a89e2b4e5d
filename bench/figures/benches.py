# SPDX-License-Identifier: Apache-2.0
"""The functional coverage of the cocotb benches."""

from functools import cache

from bench.handshake import HANDSHAKE, LOW_LATENCY
from hdl.parameters import JoinParameters, KeyField
from sim.benches.runner import run_benches
from sim.benches.shapes import SHAPES

from .registry import Result, figure

__all__ = ["CHAINS"]

#: Seed of tuples and stalls, fixed so that the figure is the same in every run.
SEED = 1
KEYS = (KeyField(name="x", bits=8), KeyField(name="y", bits=11, signed=False))
#: Accelerators that only a checkout has, by the names of their benches.
CHAINS = {
    "a handshake join": JoinParameters.of(
        cores=3, sub_window=8, keys=KEYS, timestamp_bits=16, fan_in=2,
        architecture=HANDSHAKE,
    ),
    "a low-latency handshake join": JoinParameters.of(
        cores=3, sub_window=8, keys=KEYS, timestamp_bits=16, fan_in=2, comparator="equality",
        architecture=LOW_LATENCY,
    ),
}  # fmt: skip
CONDITIONS = f"{len(SHAPES) + len(CHAINS)} accelerators, seed {SEED}"


@cache
def covered():
    """Run all benches once for both figures; return what they have covered."""
    return run_benches(SHAPES | CHAINS, seed=SEED)


@figure("cocotb.coverage", unit="of 1", goal=">= 1")
def coverage(report):
    """Share of the cases that the cocotb benches meet, of those that their accelerators can meet.

    The benches cover every engine, comparator and shape of a preset. :mod:`sim.scenarios.cases`
    defines the cases and recognizes them in the words. The figure is measured only if all answers
    agree with the reference join.
    """
    share, _ = covered()
    return Result(share, notes=(CONDITIONS,))


@figure("coverage.crosses", unit="of 1", goal=">= 0.98")
def crosses(report):
    """Share of the crosses that the cocotb benches together meet, of those that any can meet.

    A cross is a kind of word, what the word waited for, the state of the window that it met, and
    the precision (:mod:`sim.scenarios.crosses`).
    """
    _, met = covered()
    holes = [", ".join(names) for names, words in met.items() if not words]
    share = 1 - len(holes) / len(met)
    notes = (f"{len(met)} crosses; {CONDITIONS}", *(f"not met: {hole}" for hole in holes))
    return Result(share, notes=notes, details={"holes": holes})

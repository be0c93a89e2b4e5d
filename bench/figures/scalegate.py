# SPDX-License-Identifier: Apache-2.0
"""How many tuples a ScaleGate passes per cycle."""

from .gate_run import GateRun
from .registry import Result, figure

__all__ = []

#: Numbers of sources, and tuples of a run. Amaranth's simulator runs some hundred cycles per second
#: of the largest gate.
RUNS = {2: 8_000, 8: 8_000, 64: 6_400}
#: Share of cycles in which a source has nothing to offer.
GAPS = 0.25


@figure("scalegate.words_per_cycle", unit="tuples per cycle", goal=">= 0.99")
def words_per_cycle(report):
    """Tuples per cycle of a ScaleGate whose sources pause at random; the least of three gates.

    Each of 2, 8 and 64 sources has random times of the same density, and nothing to offer in a
    quarter of the cycles. Counted at the output while all sources still have tuples. The order is
    compared with the reference.
    """
    found = {}
    for sources, tuples in RUNS.items():
        report(f"ScaleGate of {sources} sources")
        run = GateRun(sources, tuples=tuples, gaps=GAPS, seed=sources)
        run.run(deadline=4 * tuples)
        found[sources] = run.steady
    notes = tuple(
        f"{sources} sources, gaps in {GAPS:.0%} of the cycles: {share:.4f} tuples per cycle"
        for sources, share in found.items()
    )
    return Result(min(found.values()), notes=notes, details={"sources": found})

# SPDX-License-Identifier: Apache-2.0
"""The figure of the soak test: the differences that its recorded runs found."""

import math

from sim.soak.ledger import LEDGER, entries

from .registry import NotMeasured, Result, figure

__all__ = []

#: Number of tuples that the recorded runs must add up to.
ENOUGH = 10**8


@figure("soak.differences", unit="differences", goal="<= 0")
def soak_differences(report):
    """Differences from the model in all runs of ``docs/soak.md``, which must have 10**8 tuples."""
    runs = entries(LEDGER.read_text(encoding="utf-8")) if LEDGER.is_file() else ()
    if not runs:
        raise NotMeasured(f"no run is in docs/{LEDGER.name}: make soak MINUTES=60 RECORD=1")
    tuples, differences = (sum(getattr(run, n) for run in runs) for n in ("tuples", "differences"))
    missing = f", {ENOUGH - tuples:,} fewer than the goal asks for" if tuples < ENOUGH else ""
    commits = ", ".join(dict.fromkeys(run.commit for run in runs))
    return Result(
        differences,
        judged=differences if tuples >= ENOUGH else math.inf,
        notes=(f"{tuples:,} tuples in {len(runs)} runs{missing}; commits: {commits}",),
        details={"tuples": tuples},
    )

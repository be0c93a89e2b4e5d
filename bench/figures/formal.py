# SPDX-License-Identifier: Apache-2.0
"""What ``make formal`` proves, and which share of the mutants its proofs notice."""

from functools import cache

from hdl.fpga.tools import ToolError
from host.installation import processors

from .registry import NotMeasured, Result, figure

__all__ = []

#: Least number of mutants that have to be tried.
LEAST_MUTANTS = 120


@figure("formal.properties", unit="properties", goal=">= 60")
def properties(report):
    """Number of properties that are proved; none if a proof of any component fails."""
    outcomes = proved(report)
    failed = [outcome.name for outcome in outcomes if outcome.failures]
    claims = sum(outcome.claims for outcome in outcomes)
    note = f"{len(outcomes)} proofs" + (f", of which fail: {', '.join(failed)}" if failed else "")
    return Result(0 if failed else claims, notes=(note,))


@figure("formal.mutants_killed", unit="of 1", goal=">= 1")
def mutants_killed(report):
    """Share of the mutants of all proved components that break the proof of their component."""
    outcomes = proved(report)
    killed = sum(len(outcome.killed) for outcome in outcomes)
    tried = killed + sum(len(outcome.survivors) for outcome in outcomes)
    spared = sum(outcome.spared for outcome in outcomes)
    share = killed / tried if tried else 0.0
    return Result(
        share,
        judged=share if tried >= LEAST_MUTANTS else 0.0,
        notes=(f"{killed} of {tried} mutants; {spared} more that another check has to notice",),
        details={"mutants": tried, "spared": spared},
    )


@cache
def proved(report):
    """Run all proofs with all their mutants, once; what has run before is not run again."""
    try:
        from formal.catalogue import PROOFS
        from formal.kept import KEPT, Kept
        from formal.runner import run_proofs

        outcomes = []
        jobs = processors()
        proofs = list(PROOFS.values())
        for outcome in run_proofs(proofs, mutants=None, jobs=jobs, kept=Kept(KEPT)):
            report(f"proof of {outcome.name}: {outcome.claims} properties")
            outcomes.append(outcome)
    except (ImportError, ToolError) as error:
        raise NotMeasured(f"{error}; install what proofs need with: make setup-fpga") from error
    return outcomes

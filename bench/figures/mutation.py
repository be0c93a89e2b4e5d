# SPDX-License-Identifier: Apache-2.0
"""How many faults in modules that decide answers the tests notice, as ``make mutation`` found."""

import json
from pathlib import Path

from .code_digest import code_digest
from .registry import NotMeasured, Result, figure

__all__ = ["SCORES"]

ROOT = Path(__file__).resolve().parents[2]
SCORES = ROOT / "docs" / "mutation.json"


@figure("mutation.score_host", unit="of 1", goal=">= 0.85")
def score_host(report):
    """Share of the host's mutants, of all that were run, that the tests of their module notice."""
    return _score("host/")


@figure("mutation.score_spark", unit="of 1", goal=">= 0.85")
def score_spark(report):
    """Share of the mutants of Spark's tasks and plans that the tests of their module notice."""
    return _score("spark_offload/")


def _score(package):
    """Return the share of the mutants of a package that were noticed; equivalent ones count."""
    try:
        scores = json.loads(SCORES.read_text(encoding="utf-8"))
    except OSError as error:
        raise NotMeasured(f"{SCORES} is missing; write it with: make mutation") from error
    modules = {name: row for name, row in scores.items() if name.startswith(package)}
    if not modules:
        raise NotMeasured(f"no module of {package} was run; make mutation does")
    changed = [
        name
        for name, row in modules.items()
        if code_digest((ROOT / name).read_text(encoding="utf-8")) != row["code"]
    ]
    if changed:
        raise NotMeasured(
            f"{', '.join(changed)} changed since: make mutation OPTIONS='{' '.join(changed)}'"
        )
    noticed = sum(row["killed"] + row["endless"] for row in modules.values())
    run = noticed + sum(row["survived"] + row["untested"] for row in modules.values())
    there = run + sum(row["left out"] for row in modules.values())
    return Result(
        noticed / run,
        notes=(f"{noticed} of {run} mutants that were run, of {there} in {len(modules)} modules",),
        details={"noticed": noticed, "run": run, "mutants": there},
    )

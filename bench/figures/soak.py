# SPDX-License-Identifier: Apache-2.0
"""The ledger of the soak's runs, a table in ``docs/soak.md``, and the figure that it gives."""

from dataclasses import dataclass
import math
from pathlib import Path

from .registry import NotMeasured, Result, figure

__all__ = ["LEDGER", "Entry", "entries", "record"]

LEDGER = Path(__file__).resolve().parents[2] / "docs" / "soak.md"
#: Columns of the table that are numbers.
COUNTS = ("seed", "shapes", "programs", "tuples", "pairs", "cycles", "differences")
#: Number of tuples that the recorded runs must add up to.
ENOUGH = 10**8


@dataclass(frozen=True)
class Entry:
    """One run: its day, the commit that it ran on, and what it counted."""

    day: str
    commit: str
    seed: int
    shapes: int
    programs: int
    tuples: int
    pairs: int
    cycles: int
    differences: int

    def row(self):
        """Return the entry as a row of the table."""
        counts = " | ".join(
            str(self.seed) if name == "seed" else f"{getattr(self, name):,}" for name in COUNTS
        )
        return f"| {self.day} | {self.commit} | {counts} |"


def entries(text):
    """Return the entries of a ledger's text."""
    rows = [[cell.strip() for cell in line.strip("|\n ").split("|")]
            for line in text.splitlines() if line.startswith("| 20")]  # fmt: skip
    return [
        Entry(day, commit, *(int(cell.replace(",", "")) for cell in counts))
        for day, commit, *counts in rows
    ]


def record(entry, path=LEDGER):
    """Add an entry at the end of the ledger, whose table is the last thing in it."""
    text = path.read_text(encoding="utf-8").rstrip("\n")
    path.write_text(f"{text}\n{entry.row()}\n", encoding="utf-8")


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

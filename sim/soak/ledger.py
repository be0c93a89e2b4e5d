# SPDX-License-Identifier: Apache-2.0
"""The ledger of runs, a table in ``docs/soak.md``."""

from dataclasses import dataclass
from pathlib import Path

__all__ = ["LEDGER", "Entry", "entries", "record"]

LEDGER = Path(__file__).resolve().parents[2] / "docs" / "soak.md"
#: Columns of the table that are numbers.
COUNTS = ("seed", "shapes", "programs", "tuples", "pairs", "cycles", "differences")


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

# SPDX-License-Identifier: Apache-2.0
"""Outcomes of proofs as tables, printed or kept in a document between two markers."""

from collections import Counter
from pathlib import Path

__all__ = ["BEGIN", "END", "document", "table", "update"]

BEGIN = "<!-- proofs: begin (written by make formal) -->"
END = "<!-- proofs: end -->"


def table(proof, outcome):
    """Yield the lines that report the outcome of a proof."""
    state = "proved" if outcome.good else "FAILED"
    killed = f"{len(outcome.killed)} mutants" if outcome.killed or outcome.survivors else ""
    yield (
        f"{proof.name:26} {state:7} {outcome.claims:3} properties  {proof.reach:13} {killed:12}"
        f" {outcome.seconds:6.1f} s"
    )
    yield from (f"    {failure}" for failure in outcome.failures)
    yield from (f"    survives: {mutant}" for mutant in outcome.survivors)


def row(proof, outcome):
    """Return the row of the Markdown table for a proof."""
    return (
        f"| `{proof.name}` | {proof.says} | {proof.component} | {outcome.claims} "
        f"| {proof.reach} | {len(outcome.killed)} | {outcome.spared or ''} "
        f"| {outcome.seconds:.0f} |"
    )


def document(proofs, rows):
    """Return the table of proofs and their outcomes as Markdown.

    Parameters
    ----------
    proofs : list of Proof
        In the order of the rows.
    rows : dict of str to str
        Row of each proof, by its name.
    """
    shown = [proof for proof in proofs if proof.name in rows]
    lines = [
        "| proof | what it says | of | properties | holds | mutants killed | spared | s |",
        "|---|---|---|---:|---|---:|---:|---:|",
        *(rows[proof.name] for proof in shown),
    ]
    counts = [[int(cell) for cell in cells_of(rows[proof.name], 4, 6)] for proof in shown]
    claims, killed = map(sum, zip(*counts, strict=True))
    lines += ["", f"In all {len(shown)} proofs, {claims} properties, {killed} mutants killed.", ""]
    lines.append("Why mutants are spared, and of how many changes a reason is if of several:")
    lines.append("")
    for proof in shown:
        reasons = Counter(proof.spared.values())
        told = [f"{why} ({count})" if count > 1 else why for why, count in reasons.items()]
        if told:
            lines.append(f"- `{proof.name}`: {'; '.join(told)}")
    return "\n".join(lines)


def cells_of(line, *columns):
    """Return some cells of a row."""
    cells = [cell.strip() for cell in line.split("|")]
    return [cells[column] for column in columns]


def update(path, proofs, pairs):
    """Replace the text between the markers of a document.

    Rows of proofs that did not run stay as they are.

    Parameters
    ----------
    path : path-like
    proofs : list of Proof
        All proofs, in the order of their rows.
    pairs : list of (Proof, Outcome)
        The proofs that have run.
    """
    path = Path(path)
    text = path.read_text(encoding="utf-8")
    before, begin, rest = text.partition(BEGIN)
    kept, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{path} has no place for proofs, between {BEGIN!r} and {END!r}")
    rows = {
        name.strip("`"): line
        for line in kept.splitlines()
        if line.startswith("| `")
        for name in cells_of(line, 1)
    }
    rows |= {proof.name: row(proof, outcome) for proof, outcome in pairs}
    made = document(proofs, rows)
    path.write_text(f"{before}{BEGIN}\n\n{made}\n\n{END}{after}", encoding="utf-8")

# SPDX-License-Identifier: Apache-2.0
"""Outcomes of proofs as tables, printed or kept in a document between two markers."""

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


def document(pairs):
    """Return the table of proofs and their outcomes as Markdown.

    Parameters
    ----------
    pairs : list of (Proof, Outcome)
    """
    lines = [
        "| proof | what it says | of | properties | holds | mutants killed | spared | s |",
        "|---|---|---|---:|---|---:|---:|---:|",
    ]
    for proof, outcome in pairs:
        lines.append(
            f"| `{proof.name}` | {proof.says} | {proof.component} | {outcome.claims} "
            f"| {proof.reach} | {len(outcome.killed)} | {outcome.spared or ''} "
            f"| {outcome.seconds:.0f} |"
        )
    claims, killed = (sum(counted) for counted in zip(*map(counts, pairs), strict=True))
    proofs = len(pairs)
    lines += ["", f"In all {proofs} proofs, {claims} properties, {killed} mutants killed.", ""]
    lines.append("What is spared, and why:")
    lines.append("")
    for proof, _ in pairs:
        lines += [f"- `{proof.name}`, `{part}`: {why}" for part, why in proof.spared.items()]
    return "\n".join(lines)


def counts(pair):
    """Return the numbers of properties and killed mutants of an outcome."""
    _, outcome = pair
    return outcome.claims, len(outcome.killed)


def update(path, pairs):
    """Replace the text between the markers of a document."""
    path = Path(path)
    text = path.read_text(encoding="utf-8")
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{path} has no place for proofs, between {BEGIN!r} and {END!r}")
    path.write_text(f"{before}{BEGIN}\n\n{document(pairs)}\n\n{END}{after}", encoding="utf-8")

# SPDX-License-Identifier: Apache-2.0
"""The scores of all modules as a file, and as the table of docs/mutation.md."""

from collections import Counter
from collections.abc import Mapping, Sequence
import json
from pathlib import Path

from bench.figures.verification import code_digest
from tests.mutation.catalogue import TARGETS
from tests.mutation.survey import ROOT, Mutant

__all__ = ["BEGIN", "END", "SCORES", "keep", "score_of", "table"]

#: What `make bench` reads.
SCORES = ROOT / "docs" / "mutation.json"
BEGIN, END = "<!-- mutation: begin -->", "<!-- mutation: end -->"


def keep(module: str, mutants: Sequence[Mutant]) -> None:
    """Put the outcome of one module into the file of scores."""
    scores = json.loads(SCORES.read_text(encoding="utf-8")) if SCORES.exists() else {}
    counts = {
        name: sum(mutant.outcome == name for mutant in mutants)
        for name in ("killed", "endless", "survived", "untested", "left out")
    }
    survivors = sorted(
        f"{mutant.function}: {mutant.statement}"
        for mutant in mutants
        if mutant.outcome in ("survived", "untested")
    )
    code = code_digest((ROOT / module).read_text(encoding="utf-8"))
    scores[module] = {"code": code, **counts, "survivors": survivors}
    kept = {name: scores[name] for name in TARGETS if name in scores}
    SCORES.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def score_of(row: Mapping[str, int]) -> tuple[int, int]:
    """Return how many mutants were noticed, and how many were run."""
    noticed = row["killed"] + row["endless"]
    return noticed, noticed + row["survived"] + row["untested"]


def reason_of(module: str, survivor: str) -> str | None:
    """Return why a survivor cannot be noticed, if that is known."""
    for statement, reason in TARGETS[module].equivalent.items():
        if statement in survivor:
            return reason
    return None


def table(scores: Mapping[str, Mapping]) -> str:
    """Return the table of scores and that of reasons for survivors, in Markdown."""
    lines = [
        "| module | decides | mutants | run | noticed | endless | score | equivalent | open |",
        "|---|---|--:|--:|--:|--:|--:|--:|--:|",
    ]
    sums: dict[str, list[int]] = {}
    why: Counter[str] = Counter()
    for module, row in scores.items():
        noticed, every = score_of(row)
        reasons = [(text, reason_of(module, text)) for text in row["survivors"]]
        known = sum(reason is not None for _, reason in reasons)
        there = every + row["left out"]
        numbers = (there, every, noticed, row["endless"], known, len(reasons) - known)
        package = module.partition("/")[0]
        before = sums.get(package, [0] * len(numbers))
        sums[package] = [total + number for total, number in zip(before, numbers, strict=True)]
        lines.append(_row(f"`{module}`", TARGETS[module].why, *numbers))
        for text, reason in reasons:
            if reason is None:
                text = f"**open**, in `{module}`: `{text.replace('|', '&#124;')}`"
            why[reason or text] += 1
    lines += [_row(f"all of `{package}`", "", *total) for package, total in sums.items()]
    note = f"Why the others were not noticed; each is in [{SCORES.name}]({SCORES.name})."
    lines += ["", note, "", "| mutants | reason |", "|--:|---|"]
    return "\n".join([*lines, *(f"| {count} | {text} |" for text, count in why.most_common())])


def _row(name: str, why: str, *numbers: int) -> str:
    there, run, noticed, endless, known, left = numbers
    score = noticed / run if run else 0
    cells = (name, why, there, run, noticed, endless, f"{score:.3f}", known, left)
    return f"| {' | '.join(map(str, cells))} |"


def write(path: Path, scores: Mapping[str, Mapping]) -> None:
    """Replace the table in a document."""
    head, _, rest = path.read_text(encoding="utf-8").partition(BEGIN)
    _, _, tail = rest.partition(END)
    path.write_text(f"{head}{BEGIN}\n\n{table(scores)}\n\n{END}{tail}", encoding="utf-8")

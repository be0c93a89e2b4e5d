# SPDX-License-Identifier: Apache-2.0
"""The table of proofs in a document."""

import pytest

from formal.proof import Proof
from formal.runner import Outcome
from formal.table import BEGIN, END, update


def proof(name, spared=None):
    return Proof(
        name=name, says="it holds", component="Adder", state=None, depth=7, spared=spared or {}
    )


def outcome(name, claims, killed):
    return Outcome(
        name=name, claims=claims, covers=1, failures=[], killed=["a"] * killed, survivors=[],
        spared=0, seconds=1.2,
    )  # fmt: skip


def test_rows_of_other_proofs_stay(tmp_path):
    path = tmp_path / "proofs.md"
    path.write_text(f"Before.\n\n{BEGIN}\n{END}\n\nAfter.\n")
    spared = {"a & b": "for a reason", "a | b": "for a reason", "a": "of its own"}
    proofs = [proof("one"), proof("two", spared), proof("three")]
    update(path, proofs, [(proofs[2], outcome("three", 4, 5)), (proofs[0], outcome("one", 1, 2))])
    update(path, proofs, [(proofs[0], outcome("one", 2, 3))])
    update(path, proofs, [(proofs[1], outcome("two", 10, 20))])
    lines = path.read_text().splitlines()
    rows = [line for line in lines if line.startswith("| `")]
    assert rows == [
        "| `one` | it holds | Adder | 2 | bounded 7 | 3 |  | 1 |",
        "| `two` | it holds | Adder | 10 | bounded 7 | 20 |  | 1 |",
        "| `three` | it holds | Adder | 4 | bounded 7 | 5 |  | 1 |",
    ]
    assert "In all 3 proofs, 16 properties, 28 mutants killed." in lines
    assert "- `two`: for a reason (2); of its own" in lines
    assert (lines[0], lines[-1]) == ("Before.", "After.")


def test_rows_of_proofs_that_are_gone_leave(tmp_path):
    path = tmp_path / "proofs.md"
    path.write_text(f"{BEGIN}\n{END}\n")
    one, two = proof("one"), proof("two")
    update(path, [one, two], [(one, outcome("one", 1, 2)), (two, outcome("two", 3, 4))])
    update(path, [two], [(two, outcome("two", 3, 5))])
    assert "`one`" not in path.read_text()
    assert "In all 1 proofs, 3 properties, 5 mutants killed." in path.read_text()


def test_a_document_without_a_place_is_told(tmp_path):
    path = tmp_path / "proofs.md"
    path.write_text("Nothing.\n")
    with pytest.raises(ValueError, match="has no place for proofs"):
        update(path, [proof("one")], [(proof("one"), outcome("one", 1, 1))])

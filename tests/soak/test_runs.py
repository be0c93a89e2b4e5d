# SPDX-License-Identifier: Apache-2.0
"""A short soak, on shapes that other tests compile as well."""

from dataclasses import replace

import pytest

from hdl.presets import PRESETS
from sim.failures.bundles import built, faulty, manifest_of
from sim.failures.trials import SHAPES as GATED
from tests.conftest import ROOT
from tests.host.devices.test_device_external import LARGE
from tests.host.devices.test_device_external import SHAPES as EXTERNAL
from tests.host.devices.test_device_simulated import PAIRED_PORTS
from tests.host.session.test_driver_simulated import PARAMETERS
from tests.host.small_bundles import BUNDLES
from tests.soak import __main__ as commands
from tests.soak import runs as soaking
from tests.soak import shapes
from tests.soak.checking import Checker
from tests.soak.runs import Soak
from tests.soak.shapes import KINDS, engine_of, random_shape
from tests.soak.workloads import KEYS, SIDES, TIMES

CHAINS = {
    kind: BUNDLES["tiny"].with_(architecture=names[0], cores=3, sub_window=5)
    for kind, names in shapes.CHAINS.items()
}
SHAPES = {
    "scan": PARAMETERS["scan"],
    "rounds, two ports": PAIRED_PORTS,
    "index, two in a word": PARAMETERS["index, two in a word"],
    "scan in rounds": PARAMETERS["scan in rounds"],
    "scan with gates": GATED["scan, arity 2"],
    "scan with gates and rounds": GATED["scan, arity 2"].with_(rounds=True),
    "windows in memory": EXTERNAL["tiny"],
    "large windows in memory": LARGE,
    "windows in memory, two ports": EXTERNAL["groups"],
    "join aggregate": PRESETS["tiny-join-aggregate"],
    **CHAINS,
}
#: No other default test compiles these. What is special about them is in other shapes, or, of the
#: chains, in tests.bench.handshake.
LONG = (
    "scan in rounds", "scan with gates and rounds", *CHAINS,
    "large windows in memory", "windows in memory, two ports", "join aggregate",
    "rounds, two ports", "windows in memory",
)  # fmt: skip
PROGRAMS, EFFORT = 25, 20_000
#: Windows that do not fit on the chip take more cycles to fill.
LARGE_EFFORT = 200_000


def checker_of(parameters):
    # With gates, the accelerator is one whose cores can be made to fail, as the trials have it.
    make = faulty if parameters == GATED["scan, arity 2"] else built
    bundle = make(parameters, lambda text: None, folder=ROOT / "build" / "tests")
    manifest = manifest_of(bundle)
    return manifest, Checker(bundle / "splitjoin.so", manifest)


@pytest.mark.parametrize(
    "shape", [pytest.param(name, marks=[pytest.mark.long] * (name in LONG)) for name in SHAPES]
)
def test_programs_agree_with_the_model(shape):
    manifest, checker = checker_of(SHAPES[shape])
    said = []
    effort = LARGE_EFFORT if SHAPES[shape].engine.has_memory else EFFORT
    run = Soak(20261123, said.append, effort=effort)
    for which in range(PROGRAMS):
        assert not run.case(0, which, manifest, checker), "\n".join(said)
    assert run.tally.programs == PROGRAMS
    assert run.tally.tuples > 100 * PROGRAMS
    assert run.tally.pairs > run.tally.tuples / 10
    used = {name: {value for at, value in run.tally.facts if at == name}
            for name in ("keys", "sides", "time", "control word", "fed")}  # fmt: skip
    assert used["sides"] >= set(SIDES) - {"long runs"}
    assert len(used["keys"]) > len(KEYS) // 2
    assert len(used["time"]) >= len(TIMES) * (SHAPES[shape].timestamp_bits > 0)
    assert used["control word"] == {*manifest["operations"], "(illegal)"}
    assert {way.partition(" ")[0] for way in used["fed"]} == {"whole", "pieces", "crumbs"}
    assert any(way.endswith("and leaps") for way in used["fed"])
    assert {"pieces", "crumbs"} & used["fed"]


class Liar(Checker):
    """Sees a difference wherever two words of a kind stand in a program, in their order."""

    def check(self, words, feeding):
        outcome = super().check(words, feeding)
        op = outcome.control_words
        wrong = op.get("CLEAR", 0) and op.get("WINDOW", 0)
        return replace(outcome, difference="a lie" if wrong else None)


def test_a_difference_is_shrunk_and_printed_with_its_replay():
    manifest, checker = checker_of(SHAPES["scan"])
    checker.__class__ = Liar
    said = []
    run = Soak(4, said.append, effort=3000)
    assert any(run.case(2, which, manifest, checker) for which in range(12))
    text = "\n".join(said)
    assert "replay: make soak SEED=4 CASE=2." in text
    assert "shrunk to 2 words" in text
    assert "WINDOW" in text
    assert "CLEAR" in text


def test_a_case_is_made_from_seed_and_number_alone():
    assert random_shape(3, 17) == random_shape(3, 17) != random_shape(4, 17)
    manifest, checker = checker_of(SHAPES["scan"])
    one, same, other = (
        Soak(seed, print, effort=3000).program(1, 2, manifest, checker) for seed in (8, 8, 9)
    )
    assert (one.words == same.words).all()
    assert one.feeding == same.feeding
    assert one.words.shape != other.words.shape or (one.words != other.words).any()


def test_shapes_in_turn_have_every_engine_and_comparator():
    shapes = [random_shape(1, number) for number in range(len(KINDS))]
    assert [(engine_of(shape), shape.predicate.kind) for shape in shapes] == [
        (engine, {"digest": "equality", "band digest": "band"}.get(comparator, comparator))
        for engine, comparator in KINDS
    ]
    assert [bool(shape.engine.digest_bits) for shape in shapes] == ["digest" in c for _, c in KINDS]


def test_command_prints_coverage_and_counts(monkeypatch, capsys):
    monkeypatch.setattr(soaking, "random_shape", lambda seed, number: SHAPES["scan"])
    monkeypatch.setattr(soaking, "built", lambda parameters, report: built(
        parameters, report, folder=ROOT / "build" / "tests"))  # fmt: skip
    code = commands.run(seed=3, minutes=0.01, shapes=1, recorded=False, report=lambda text: None)
    said = capsys.readouterr().out
    assert code == 0
    assert "control word: " in said
    assert "engine: scan band 1" in said
    assert "seed 3: 1 shapes, " in said
    assert said.endswith(" 0 differences\n")


def test_a_case_that_is_none_is_refused():
    with pytest.raises(ValueError, match=r"Case must be the numbers .* not '12'"):
        commands.replay(1, "12", print)
    with pytest.raises(ValueError, match="--minutes must be more than zero, not 0"):
        commands.run(seed=1, minutes=0, shapes=None, recorded=False, report=print)

# SPDX-License-Identifier: Apache-2.0
"""Predicates of one's own in hardware: what they find, and after how many cycles."""

import random

from amaranth.sim import Simulator
from hypothesis import given, settings
from hypothesis import strategies as st
import pytest

from bench.handshake import HANDSHAKE
from hdl.parameters import JoinParameters, KeyField
from hdl.predicates.rule import Comparator
from host.query.conditions import Condition
from tests.hdl.input_words import criterion_of, stored_key
from tests.paths.conditions import fulfils

XY = (KeyField(name="x", bits=5), KeyField(name="y", bits=4, signed=False))
CARDS = (KeyField(name="card", bits=3, signed=False), KeyField(name="city", bits=2, signed=False))
POINTS = (KeyField(name="x", bits=7), KeyField(name="y", bits=7))


def parameters_of(where=None, keys=XY, **changes):
    return JoinParameters.of(keys=keys, comparator="custom", where=where, **changes)


def random_key(keys, rng):
    """A random key; every third time one near zero, so that predicates hold now and then."""
    key = {}
    for field in keys:
        low = -(1 << field.bits - 1) if field.signed else 0
        bits = rng.choice([field.bits, field.bits, 2])
        key[field.name] = low // (1 << field.bits - bits) + rng.randrange(1 << bits)
    return key


def check(parameters, meaning, *, probe_side=0, seed=0, count=80):
    """Compare random keys in every cycle, with what the text says by Python itself."""
    rng, condition = random.Random(seed), Condition(meaning)
    dut = Comparator(parameters, probe_side=probe_side)
    pairs = [[random_key(parameters.keys, rng) for _ in range(2)] for _ in range(count)]
    expected = [
        fulfils(condition, *((stored, probe) if probe_side else (probe, stored)))
        for probe, stored in pairs
    ]
    found = []

    async def bench(ctx):
        for probe, stored in [*pairs, *[pairs[0]] * dut.latency]:
            for name, value in criterion_of(parameters, probe_side, probe, None).items():
                ctx.set(getattr(dut.criterion, name), value)
            ctx.set(dut.key, stored_key(parameters, stored))
            await ctx.tick()
            found.append(bool(ctx.get(dut.match)))

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    assert found[dut.latency - 1 :][:count] == expected
    return dut.latency


@pytest.mark.parametrize("probe_side", [0, 1])
@pytest.mark.parametrize(
    ("text", "latency"),
    [
        ("abs(l.x - r.x) <= 3 and l.y != r.y", 1),
        ("not (l.x < r.y or l.y >= 2 * r.x + 1)", 1),
        ("-4 <= l.x - r.x < 5 <= max(l.y, r.y, 3)", 1),
        ("(l.x - r.x) * (l.x - r.x) + (l.y - r.y) * (l.y - r.y) <= 36", 3),
        ("min(l.x * r.x, l.y) * l.y - r.x > 7 or l.x == r.y", 5),
    ],
)
def test_a_text_is_decided_after_its_latency(text, latency, probe_side):
    assert check(parameters_of(text), text, probe_side=probe_side) == latency


@st.composite
def conditions(draw):
    """Texts over the fields of two keys."""
    field = st.sampled_from(["l.x", "r.x", "l.y", "r.y"])
    number = st.recursive(
        field | st.integers(-9, 9).map(str),
        lambda part: st.one_of(
            st.tuples(part, st.sampled_from("+-*"), part).map(lambda t: f"({' '.join(t)})"),
            part.map(lambda one: f"abs({one})"),
            st.tuples(part, part).map(lambda t: f"min({t[0]}, {t[1]})"),
        ),
        max_leaves=4,
    )
    sign = st.sampled_from(["==", "!=", "<", "<=", ">", ">="])
    comparison = st.tuples(field, sign, number).map(lambda t: " ".join(t))
    text = st.recursive(
        comparison,
        lambda part: st.one_of(
            st.tuples(part, st.sampled_from(["and", "or"]), part).map(lambda t: f"({' '.join(t)})"),
            part.map(lambda one: f"(not {one})"),
        ),
        max_leaves=3,
    )
    return draw(text)


@settings(max_examples=12, deadline=None)
@given(text=conditions(), seed=st.integers(0, 1 << 20))
def test_random_texts_mean_in_hardware_what_they_mean_to_python(text, seed):
    check(parameters_of(text), text, seed=seed, count=15)


@pytest.mark.parametrize(
    ("name", "keys", "latency"),
    [
        ("hdl.predicates.not_equal:NotEqual", CARDS, 1),
        ("hdl.predicates.distance:within_25", POINTS, 3),
    ],
)
@pytest.mark.parametrize("probe_side", [0, 1])
def test_the_examples_do_what_they_say(name, keys, latency, probe_side):
    parameters = JoinParameters.of(keys=keys, comparator="custom", predicate=name)
    meaning = parameters.to_dict()["engine"]["predicate"]["where"]
    assert check(parameters, meaning, probe_side=probe_side, count=400) == latency
    assert JoinParameters.from_dict(parameters.to_dict()) == parameters


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"where": "l.x < r.z"}, "reads 'r.z'; it may read l.x, l.y, r.x, r.y"),
        ({"where": "l.x + r.y"}, "is a number, no condition; compare it"),
        ({"where": "l.x and r.x > 1"}, "has 'l.x', which is no condition"),
        ({"where": "l.x <"}, "is no Python expression"),
        ({"where": "l.x * r.x > 0", "architecture": HANDSHAKE}, "takes 3 cycles, of 1 to 1 with"),
        ({"where": " * ".join(["l.x"] * 9) + " > 0"}, "takes 17 cycles, of 1 to 16"),
        ({"where": "l.x < r.x", "engine": "index"}, "a custom predicate takes a scan"),
        (
            {"where": "l.x < r.x", "comparator": "band"},
            "goes with comparator 'custom', and only with it",
        ),
        (
            {"where": "l.x < r.x", "predicate": "hdl.predicates.not_equal:NotEqual"},
            "says itself what it means",
        ),
    ],
)
def test_what_cannot_be_built_is_refused(changes, message):
    with pytest.raises(ValueError, match="arameter|Predicate|Expression") as caught:
        JoinParameters.of(**{"keys": XY, "comparator": "custom", **changes})
    assert message in str(caught.value)

# SPDX-License-Identifier: Apache-2.0
from operator import eq, ge

from amaranth.sim import Simulator
from hypothesis import given, settings
from hypothesis import strategies as st
import pytest

from hdl import ecp5 as carry_chain
from hdl.ecp5 import CarryChain
from hdl.predicates.rule import Comparator
from hdl.presets import PRESETS
from tests.hdl.ecp5 import CCU2C, ECP5

OPERATORS = {"equal": eq, "at_least": ge}


@pytest.fixture(autouse=True)
def modelled(monkeypatch):
    monkeypatch.setattr(carry_chain, "Instance", CCU2C)


def pack(fields, widths):
    """One word of several fields."""
    word, first = 0, 0
    for field, width in zip(fields, widths, strict=True):
        word |= field << first
        first += width
    return word


def check(widths, relation, pairs):
    """Compare words, as lists of fields, with what Python says of the fields."""
    dut = CarryChain(widths, relation=relation)
    assert dut.latency == 0
    simulator = Simulator(dut)

    async def bench(ctx):
        for a, b in pairs:
            ctx.set(dut.a, pack(a, widths))
            ctx.set(dut.b, pack(b, widths))
            expected = pack(map(OPERATORS[relation], a, b), [1] * len(widths))
            assert ctx.get(dut.holds) == expected, (a, b)

    simulator.add_testbench(bench)
    simulator.run()


@pytest.mark.parametrize("relation", OPERATORS)
@pytest.mark.parametrize("width", [1, 2, 3, 4])
def test_all_pairs_of_short_words(width, relation):
    words = range(1 << width)
    check([width], relation, [([a], [b]) for a in words for b in words])


@pytest.mark.parametrize("relation", OPERATORS)
@pytest.mark.parametrize("widths", [[1, 1], [2, 1], [1, 2, 2]])
def test_every_field_decides_alone(widths, relation):
    total = sum(widths)

    def split(word):
        return [word >> sum(widths[:n]) & (1 << width) - 1 for n, width in enumerate(widths)]

    words = [split(word) for word in range(1 << total)]
    check(widths, relation, [(a, b) for a in words for b in words])


@pytest.mark.few(1)
@settings(max_examples=12)
@given(widths=st.lists(st.integers(5, 64), min_size=1, max_size=3), data=st.data())
@pytest.mark.parametrize("relation", OPERATORS)
def test_words_that_differ_in_one_bit(relation, widths, data):
    words = [data.draw(st.integers(0, (1 << width) - 1)) for width in widths]
    others = [
        [word ^ (1 << bit if n == field else 0) for n, word in enumerate(words)]
        for field, width in enumerate(widths)
        for bit in range(width)
    ]
    check(widths, relation, [(words, words), *((words, other) for other in others)])


@pytest.mark.parametrize("widths", [[], [4, 0]])
def test_a_field_has_bits(widths):
    with pytest.raises(ValueError, match="cannot be compared"):
        CarryChain(widths, relation="equal")


def test_another_relation_is_refused():
    with pytest.raises(ValueError, match="Relation must be one of"):
        CarryChain([4], relation="less")


@pytest.mark.parametrize("name", ["ecp5-equality", "ecp5-band"])
@settings(max_examples=6)
@given(data=st.data())
def test_the_comparator_of_an_ecp5_is_that_of_other_platforms(name, data):
    parameters = PRESETS[name].scanned
    duts = [Comparator(parameters, probe_side=0) for _ in range(2)]
    simulators = [
        Simulator(dut.elaborate(platform))
        for dut, platform in zip(duts, (None, ECP5()), strict=True)
    ]
    signals = [(part, len(getattr(duts[0].criterion, part))) for part in criterion_parts(duts[0])]
    bits = len(duts[0].key.as_value())
    words = st.one_of(st.integers(0, 3), st.integers(0, (1 << 34) - 1))
    cases = [
        [data.draw(words) & (1 << width) - 1 for _, width in [*signals, ("key", bits)]]
        for _ in range(30)
    ]
    outcomes = []
    for dut, simulator in zip(duts, simulators, strict=True):
        simulator.add_clock(1e-6)
        found = []

        async def bench(ctx, dut=dut, found=found):
            for *criterion, key in cases:
                for (part, width), value in zip(signals, criterion, strict=True):
                    ctx.set(getattr(dut.criterion, part), guarded(part, value, width))
                ctx.set(dut.key.as_value(), key)
                await ctx.tick()
                found.append(ctx.get(dut.match))

        simulator.add_testbench(bench)
        simulator.run()
        outcomes.append(found)
    assert outcomes[0] == outcomes[1]


def criterion_parts(dut):
    """Names of the parts of a comparator's criterion."""
    return list(dut.signature.members["criterion"].signature.members)


def guarded(part, value, width):
    """A part of a criterion with its guard bits as they must be."""
    if not part.startswith(("low", "high")):
        return value - (1 << width) if value >> width - 1 else value
    guards = 1 << 16 | 1 << 33
    return value | guards if part.startswith("high") else value & ~guards

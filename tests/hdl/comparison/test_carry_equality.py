# SPDX-License-Identifier: Apache-2.0
from amaranth.sim import Simulator
from hypothesis import given, settings
from hypothesis import strategies as st
import pytest

from hdl import ecp5 as carry_equality
from hdl.ecp5 import CarryEquality
from hdl.predicates.rule import Comparator
from hdl.presets import PRESETS
from tests.hdl.ecp5 import CCU2C, ECP5


@pytest.fixture(autouse=True)
def modelled(monkeypatch):
    monkeypatch.setattr(carry_equality, "Instance", CCU2C)


def outcomes(width, pairs):
    """Whether the words of each pair are equal, says the hardware."""
    dut = CarryEquality(width)
    assert dut.latency == 0
    simulator = Simulator(dut)
    found = []

    async def bench(ctx):
        for a, b in pairs:
            ctx.set(dut.a, a)
            ctx.set(dut.b, b)
            found.append(ctx.get(dut.equal))

    simulator.add_testbench(bench)
    simulator.run()
    return found


@pytest.mark.parametrize("width", [1, 2, 3, 4, 5])
def test_all_pairs_of_short_words(width):
    pairs = [(a, b) for a in range(1 << width) for b in range(1 << width)]
    assert outcomes(width, pairs) == [a == b for a, b in pairs]


@settings(max_examples=20)
@given(width=st.integers(6, 64), data=st.data())
def test_words_that_differ_in_one_bit_are_not_equal(width, data):
    word = data.draw(st.integers(0, (1 << width) - 1))
    pairs = [(word, word ^ 1 << n) for n in range(width)]
    assert outcomes(width, [(word, word), *pairs]) == [1, *[0] * width]


def test_a_word_has_bits():
    with pytest.raises(ValueError, match="0 bits"):
        CarryEquality(0)


def test_the_comparator_of_an_ecp5_answers_in_the_same_cycle():
    """The parts that other platforms compare are joined in no time, the chain has one register."""
    parameters = PRESETS["ecp5-index"]
    dut = Comparator(parameters, probe_side=0)
    simulator = Simulator(dut.elaborate(ECP5()))
    simulator.add_clock(1e-6)
    name = parameters.keys[0].name

    async def bench(ctx):
        for probe, key in [(5, 5), (5, 4), (-1, -1), (-1, 1), (0, 0)]:
            ctx.set(getattr(dut.criterion, name), probe)
            ctx.set(dut.key, {name: key})
            await ctx.tick()
            assert ctx.get(dut.match) == (probe == key)

    simulator.add_testbench(bench)
    simulator.run()

# SPDX-License-Identifier: Apache-2.0
import random

from amaranth.sim import Simulator
import pytest

from hdl.scan.scanner import PopulationCount
from hdl.tree import tree_levels

WIDTHS = [1, 2, 3, 4, 5, 8, 17, 64]


def count(dut, words):
    """Present a word, or None, in each cycle; return what is at the output in each cycle."""
    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    counts = []
    noise = random.Random(dut.width)

    async def bench(ctx):
        for word in words:
            counts.append(ctx.get(dut.o))
            ctx.set(dut.update, word is not None)
            ctx.set(dut.i, noise.getrandbits(dut.width) if word is None else word)
            await ctx.tick()

    simulator.add_testbench(bench)
    simulator.run()
    return counts


@pytest.mark.parametrize("width", WIDTHS)
def test_every_word_is_counted_after_the_latency(width):
    dut = PopulationCount(width)
    assert dut.latency == len(tree_levels(width, 4))
    generator = random.Random(width)
    words = [0, (1 << width) - 1, *(1 << n for n in range(width))]
    words += [generator.getrandbits(width) for _ in range(100)]
    counts = count(dut, words + [None] * dut.latency)
    assert counts[dut.latency :] == [word.bit_count() for word in words]


@pytest.mark.parametrize("width", WIDTHS)
def test_without_an_update_the_count_stays(width):
    dut = PopulationCount(width)
    generator = random.Random(width)
    words = [generator.choice([None, generator.getrandbits(width)]) for _ in range(200)]
    counts = count(dut, words + [None] * dut.latency)
    expected, last = [], 0
    for word in words:
        last = last if word is None else word.bit_count()
        expected.append(last)
    assert counts[dut.latency :] == expected

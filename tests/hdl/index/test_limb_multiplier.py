# SPDX-License-Identifier: Apache-2.0
"""A multiplier with registers of its own."""

from amaranth.sim import Simulator
import pytest

from hdl.index.cells import LimbMultiplier


def run(dut, testbench):
    """Run a testbench against a clock."""
    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(testbench)
    simulator.run()


@pytest.mark.parametrize("a_bits", [1, 2, 3, 4, 18])
def test_a_product_every_cycle_after_the_stated_latency(a_bits):
    dut = LimbMultiplier(a_bits, 18, gated=False)
    operands = [((7 * n + 1) % (1 << a_bits), (5_003 * n + 9) % (1 << 18)) for n in range(20)]
    operands += [((1 << a_bits) - 1, (1 << 18) - 1)] * dut.latency
    seen = []

    async def multiply(ctx):
        for a, b in operands:
            ctx.set(dut.a, a)
            ctx.set(dut.b, b)
            await ctx.tick()
            seen.append(ctx.get(dut.product))

    run(dut, multiply)
    assert dut.latency == 2
    late = dut.latency - 1
    assert seen[late:] == [a * b for a, b in operands][: len(seen) - late]


def test_gated_registers_change_when_they_are_told_to():
    dut = LimbMultiplier(4, 4, gated=True)

    async def multiply(ctx):
        for load, multiply, expected in [
            (0, 1, 0), (1, 0, 0), (0, 0, 0), (0, 1, 15), (1, 0, 15), (0, 1, 25),
        ]:  # fmt: skip
            ctx.set(dut.a, 3 if expected == 0 else 5)
            ctx.set(dut.b, 5)
            ctx.set(dut.load, load)
            ctx.set(dut.multiply, multiply)
            await ctx.tick()
            assert ctx.get(dut.product) == expected

    run(dut, multiply)

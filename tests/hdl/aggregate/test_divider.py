# SPDX-License-Identifier: Apache-2.0
import random

from amaranth.sim import Simulator
import pytest

from hdl.aggregate.accumulator import SerialDivider


@pytest.mark.parametrize("width", [1, 5, 17])
def test_it_divides_after_the_latency(width):
    dut = SerialDivider(width)
    generator = random.Random(width)
    most = (1 << width) - 1
    pairs = [(0, 1), (most, 1), (most, most), (0, most), (most // 2, most)]
    pairs += [(generator.randint(0, most), generator.randint(1, most)) for _ in range(20)]

    async def bench(ctx):
        for dividend, divisor in pairs:
            ctx.set(dut.dividend, dividend)
            ctx.set(dut.divisor, divisor)
            ctx.set(dut.start, 1)
            await ctx.tick()
            ctx.set(dut.start, 0)
            for _ in range(dut.latency - 1):
                assert not ctx.get(dut.done)
                await ctx.tick()
            assert ctx.get(dut.done)
            assert (ctx.get(dut.quotient), ctx.get(dut.remainder)) == divmod(dividend, divisor)
            await ctx.tick().repeat(generator.randint(1, 2))

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()


def test_a_divider_without_bits_is_refused():
    with pytest.raises(ValueError, match="A divider must have at least one bit, not 0"):
        SerialDivider(0)

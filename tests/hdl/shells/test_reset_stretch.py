# SPDX-License-Identifier: Apache-2.0
from amaranth import Module, ResetInserter, Signal
from amaranth.sim import Simulator
import pytest

from hdl.local_reset import LEAST_CYCLES
from hdl.shells.bus_crossing import ResetStretch
from tests.hdl.cycles import each_cycle


def shown(dut, inputs):
    """Return the output in every cycle, given the input of every cycle."""
    found = []

    def steps(put, get):
        for value in inputs:
            put(restart=value)
            found.append(get("reset"))
            yield

    each_cycle(dut, steps)
    return found


@pytest.mark.parametrize("cycles", [1, 2, LEAST_CYCLES])
def test_reset_lasts_as_long_as_asked(cycles):
    dut = ResetStretch(cycles)
    rest = 2 * cycles + 3
    inputs = [0] * rest + [1] + [0] * rest + [1, 0, 1, 1] + [0] * rest
    expected, left = [], cycles
    for value in inputs:
        expected.append(int(left > 0))
        left = cycles if value else max(left - 1, 0)
    assert shown(dut, inputs) == expected


def test_a_reset_of_no_cycles_is_refused():
    with pytest.raises(ValueError, match="Reset must last at least one cycle, not 0"):
        ResetStretch(0)


def test_one_cycle_of_reset_is_stretched():
    dut, rst = ResetStretch(), Signal()
    m = Module()
    m.submodules.dut = ResetInserter(rst)(dut)
    simulator = Simulator(m)
    simulator.add_clock(1e-6)

    async def bench(ctx):
        await ctx.tick().repeat(LEAST_CYCLES)
        assert not ctx.get(dut.reset)
        ctx.set(rst, 1)
        await ctx.tick()
        ctx.set(rst, 0)
        for _ in range(LEAST_CYCLES):
            assert ctx.get(dut.reset)
            await ctx.tick()
        assert not ctx.get(dut.reset)

    simulator.add_testbench(bench)
    simulator.run()

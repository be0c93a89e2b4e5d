# SPDX-License-Identifier: Apache-2.0
"""Running a bench of the link in Amaranth's own simulator."""

from amaranth import ClockDomain, Module
from amaranth.sim import Simulator

__all__ = ["simulate"]


def simulate(dut, bench, *, deadline):
    """Run ``bench(ctx)`` beside ``dut``, at most ``deadline`` cycles; return the cycles."""
    m = Module()
    m.domains.sync = ClockDomain()
    m.submodules.dut = dut
    simulator = Simulator(m)
    simulator.add_clock(1e-6)
    ended = []
    cycles = 0

    async def run(ctx):
        await bench(ctx)
        ended.append(True)

    async def watch(ctx):
        nonlocal cycles
        while not ended:
            await ctx.tick()
            cycles += 1
            assert ended or cycles < deadline, f"the bench has not ended after {deadline} cycles"

    simulator.add_testbench(run)
    simulator.add_testbench(watch)
    simulator.run()
    return cycles

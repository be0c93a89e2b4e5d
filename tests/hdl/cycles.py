# SPDX-License-Identifier: Apache-2.0
"""Driving a small synchronous component cycle by cycle."""

from amaranth import Module, Signal
from amaranth.sim import Simulator

__all__ = ["each_cycle"]


def each_cycle(dut, steps):
    """Run a component; ``steps`` gives what to do in every cycle.

    Parameters
    ----------
    dut : Component
        Of the clock domain `sync`.
    steps : callable
        Gets functions that set inputs and get outputs by name, and is a generator: what it does
        up to each ``yield`` belongs to one cycle.
    """
    m = Module()
    m.submodules.dut = dut
    m.d.sync += Signal().eq(1)  # a component may have no register, and so no clock
    simulator = Simulator(m)
    simulator.add_clock(1e-6)

    async def bench(ctx):
        def put(**values):
            for name, value in values.items():
                ctx.set(getattr(dut, name), value)

        for _ in steps(put, lambda name: ctx.get(getattr(dut, name))):
            await ctx.tick()

    simulator.add_testbench(bench)
    simulator.run()

# SPDX-License-Identifier: Apache-2.0
"""Driving a small synchronous component cycle by cycle."""

from amaranth.sim import Simulator

__all__ = ["each_cycle"]


def each_cycle(dut, steps):
    """Run a component; ``steps`` gives what to do in every cycle.

    Parameters
    ----------
    dut : Component
        Without a clock domain of its own.
    steps : callable
        Gets functions that set inputs and get outputs by name, and is a generator: what it does
        up to each ``yield`` belongs to one cycle.
    """
    simulator = Simulator(dut)
    simulator.add_clock(1e-6)

    async def bench(ctx):
        def put(**values):
            for name, value in values.items():
                ctx.set(getattr(dut, name), value)

        for _ in steps(put, lambda name: ctx.get(getattr(dut, name))):
            await ctx.tick()

    simulator.add_testbench(bench)
    simulator.run()

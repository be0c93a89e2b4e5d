# SPDX-License-Identifier: Apache-2.0
"""AXI masters and slaves in Amaranth's simulator: random pauses, AXI's handshake rules, a deadline.

A channel is driven by one testbench, as its signals would be by one module of a design.
"""

import random

from amaranth.hdl import Cat, ClockDomain, ClockSignal, Module, Value
from amaranth.sim import Simulator

__all__ = ["AxiBench"]


class AxiBench:
    """Simulate a component with AXI channels.

    Parameters
    ----------
    dut : Component
        Of the domain ``sync``, or with the ports ``aclk`` and ``aresetn``.
    pauses : float
        Probability that a side of a channel pauses in a cycle.
    seed : int
        Seed of the pauses.
    deadline : int
        Cycles after which the simulation fails.
    bus_period : float or None
        Seconds of a cycle of ``s_axi_aclk``, if the component has such a clock.
    """

    def __init__(self, dut, *, pauses=0.0, seed=0, deadline=2000, bus_period=None):
        self.dut, self.pauses, self.deadline, self.seed = dut, pauses, deadline, seed
        self.random = random.Random(seed)
        self.cycle = 0
        top = Module()
        # A component with a clock of its own makes `sync` from it.
        self.domain = "outside" if hasattr(dut, "aclk") else "sync"
        top.domains += ClockDomain(self.domain, reset_less=True)
        top.submodules.dut = dut
        if hasattr(dut, "aclk"):
            top.d.comb += dut.aclk.eq(ClockSignal(self.domain))
        self.lite_domain = self.domain
        if bus_period is not None:
            self.lite_domain = "outside_bus"
            top.domains += ClockDomain(self.lite_domain, reset_less=True)
            top.d.comb += dut.s_axi_aclk.eq(ClockSignal(self.lite_domain))
        self.simulator = Simulator(top)
        self.simulator.add_clock(1e-6, domain=self.domain)
        if bus_period is not None:
            self.simulator.add_clock(bus_period, domain=self.lite_domain)
        self.missing = 0
        self.simulator.add_testbench(self._count, background=True)

    async def _count(self, ctx):
        async for _ in self.tick(ctx):
            self.cycle += 1

    def tick(self, ctx):
        """Return the next edge of the clock."""
        return ctx.tick(self.domain)

    def rests(self):
        """Return whether somebody pauses in this cycle."""
        return self.random.random() < self.pauses

    async def send(self, ctx, valid, ready, *pairs, domain=None):
        """Offer values on a channel until they are taken; ``pairs`` are signals and values."""
        domain = domain or self.domain
        while self.rests():
            await ctx.tick(domain)
        for signal, value in pairs:
            ctx.set(Value.cast(signal), value)
        ctx.set(valid, 1)
        while True:
            *_, taken = await ctx.tick(domain).sample(ready)
            if taken:
                break
        ctx.set(valid, 0)
        for signal, _ in pairs:
            ctx.set(Value.cast(signal), 0)

    async def take(self, ctx, valid, ready, *signals, domain=None):
        """Take values from a channel, and check that they stay until then."""
        domain, shown = domain or self.domain, None
        while True:
            now = not self.rests()
            ctx.set(ready, now)
            *_, offered, values = await ctx.tick(domain).sample(valid, _joined(signals))
            if shown is not None:
                assert offered, f"cycle {self.cycle}: an offer was withdrawn (seed {self.seed})"
                assert values == shown, f"cycle {self.cycle}: an offer changed (seed {self.seed})"
            shown = values if offered else None
            if offered and now:
                ctx.set(ready, 0)
                return _split(values, signals)

    def run(self, *processes, background=()):
        """Run until every one of ``processes`` has returned.

        Raises
        ------
        TimeoutError
            If that takes longer than the deadline.
        """
        self.missing = len(processes)

        def counted(process):
            async def bench(ctx):
                await process(ctx)
                self.missing -= 1

            return bench

        for process in processes:
            self.simulator.add_testbench(counted(process), background=True)
        for process in background:
            self.simulator.add_testbench(process, background=True)

        async def watch(ctx):
            while self.missing:
                await self.tick(ctx)
                if self.cycle > self.deadline:
                    raise TimeoutError(f"No end within {self.deadline} cycles (seed {self.seed})")

        self.simulator.add_testbench(watch)
        self.simulator.run()


def _joined(signals):
    return Cat(Value.cast(signal) for signal in signals)


def _split(value, signals):
    parts = []
    for signal in signals:
        bits = len(Value.cast(signal))
        parts.append(value & (1 << bits) - 1)
        value >>= bits
    return parts

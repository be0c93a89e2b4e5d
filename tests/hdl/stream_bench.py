# SPDX-License-Identifier: Apache-2.0
"""Drives Amaranth streams in Amaranth's own simulator: stalls, stream rules, a deadline."""

import random
import warnings

from amaranth.hdl import ClockDomain, Module, Value
from amaranth.lib.wiring import Component
from amaranth.sim import Simulator

__all__ = ["DeadlineError", "RuleError", "StreamBench"]


class DeadlineError(AssertionError):
    """A simulation took more cycles than it may."""


class RuleError(AssertionError):
    """A producer withdrew or changed a payload that had not been taken."""


class StreamBench:
    """Simulate a component whose ports are streams, with random stalls on all sides.

    Parameters
    ----------
    dut : wiring.Component
        The component under test.
    deadline : int
        Cycles after which the simulation fails.
    stalls : float
        Probability that a source or sink pauses in a cycle.
    seed : int
        Of the stalls; printed in failures.

    Attributes
    ----------
    cycle : int
        Clock cycles so far.
    """

    def __init__(self, dut, *, deadline, stalls=0.0, seed=0):
        self.dut = dut
        self.deadline = deadline
        self.stalls = stalls
        self.seed = seed
        self.cycle = 0
        top = dut
        if isinstance(dut, Component):  # which may be nothing but wires, without a clock
            top = Module()
            top.domains.sync = ClockDomain()
            top.submodules.dut = dut
        self.simulator = Simulator(top)
        self.simulator.add_clock(1e-6)
        self._pending = 0
        self._random = random.Random(seed)

    def pauses(self):
        """Does somebody pause in this cycle?"""
        return self._random.random() < self.stalls

    def source(self, stream, payloads, stamps=None):
        """Send ``payloads`` (integers or layout constants) to an input stream of the component.

        ``stamps``, a list, gets the cycle of every transfer.
        """

        async def process(ctx):
            for payload in payloads:
                while self.pauses():
                    await ctx.tick()
                ctx.set(Value.cast(stream.payload), payload)
                ctx.set(stream.valid, 1)
                while True:
                    *_, ready = await ctx.tick().sample(stream.ready)
                    if ready:
                        break
                if stamps is not None:
                    stamps.append(self.cycle - 1)
                ctx.set(stream.valid, 0)
            self.done()

        self.spawn(process)

    def sink(self, stream, count, stamps=None, *, begin=0, weight=None):
        """Expect ``count`` payloads from an output stream; return the list they will be in.

        Nothing is taken before cycle ``begin``. A payload counts as ``weight`` of it, if given.
        From a stream that is always ready, everything is taken.
        The sink stays ready to the end, so that payloads too many are in the list as well.
        """
        received, missing = [], count
        payload = Value.cast(stream.payload)
        steady = stream.signature.always_ready

        async def process(ctx):
            nonlocal missing
            held = None
            while True:
                ready = steady or (self.cycle >= begin and not self.pauses())
                if not steady:
                    ctx.set(stream.ready, ready)
                *_, valid, value = await ctx.tick().sample(stream.valid, payload)
                if held is not None and (not valid or value != held):
                    raise RuleError(
                        f"Payload {held:#x} was withdrawn or became {value:#x} before it was taken"
                        f" (cycle {self.cycle}, seed {self.seed})"
                    )
                held = value if valid and not ready else None
                if valid and ready:
                    received.append(value)
                    if stamps is not None:
                        stamps.append(self.cycle - 1)
                    before = missing
                    missing -= weight(value) if weight else 1
                    if missing <= 0 < before:
                        self.done()

        if count:
            self.spawn(process)
        else:
            self.simulator.add_testbench(process, background=True)
        return received

    def spawn(self, process):
        """Add a process that calls :meth:`done` once it has nothing left to wait for."""
        self._pending += 1
        self.simulator.add_testbench(process, background=True)

    def done(self):
        """One process more has what it waited for."""
        self._pending -= 1

    def run(self, extra_cycles=4):
        """Run until all sources and sinks are done, then ``extra_cycles`` more.

        Raises
        ------
        DeadlineError
            After ``deadline`` cycles.
        RuleError
            If the component breaks a stream rule.
        """

        async def clock(ctx):
            while self._pending:
                await ctx.tick()
                self.cycle += 1
                if self._pending and self.cycle >= self.deadline:
                    raise DeadlineError(
                        f"{self._pending} sources or sinks still wait after {self.cycle} cycles"
                        f" (seed {self.seed})"
                    )
            await ctx.tick().repeat(extra_cycles)

        self.simulator.add_testbench(clock)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", category=UserWarning)
            self.simulator.run()

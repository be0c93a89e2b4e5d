# SPDX-License-Identifier: Apache-2.0
"""cocotb drivers of AXI4-Stream and AXI4-Lite, with random pauses and a check of AXI's rules.

:mod:`sim.benches.axi_bench` calls :func:`source`, :func:`sink` and :func:`registers`, or those of
another module with the same functions.
"""

import random

from cocotb.triggers import FallingEdge, ReadOnly, RisingEdge

__all__ = ["Channel", "LiteMaster", "TooSlowError", "registers", "sink", "source"]

STREAM = ("data", "keep", "last")


class TooSlowError(AssertionError):
    """Timeout: a channel took more cycles than it may."""


class Channel:
    """Driver of one AXI channel: its valid/ready handshake and the signals of its payload.

    Signals are changed after the falling edge of the clock, so nothing races with the rising edge.

    Parameters
    ----------
    dut : handle
        Module with the signals.
    clk : handle
        Its clock to which they belong.
    prefix : str
        How the names of the signals begin, such as ``"s_axis_t"`` or ``"s_axi_aw"``.
    payload : sequence of str
        The other signals, such as ``("data", "keep", "last")``.
    pauses : float
        Probability that this side pauses in a cycle.
    seed : object
        Seed of the pauses.
    deadline : int
        Cycles that one transfer may take.

    Attributes
    ----------
    stamps : list of int
        Simulation cycle of every transfer, counted by :attr:`clock`.
    """

    def __init__(
        self, dut, clk, prefix, payload, *, pauses=0.0, seed=0, deadline=100_000, clock=None
    ):
        self.clk = clk
        self.valid, self.ready = (getattr(dut, f"{prefix}{name}") for name in ("valid", "ready"))
        self.payload = [getattr(dut, f"{prefix}{name}") for name in payload]
        self.prefix, self.pauses, self.deadline = prefix, pauses, deadline
        self.random = random.Random(f"{prefix} {seed}")
        self.clock = clock
        self.stamps = []

    def stamp(self):
        """Note the cycle of a transfer."""
        if self.clock is not None:
            self.stamps.append(self.clock.cycle)

    async def send(self, *values):
        """Offer values until they are taken."""
        while self.random.random() < self.pauses:
            await FallingEdge(self.clk)
        for signal, value in zip(self.payload, values, strict=True):
            signal.value = value
        self.valid.value = 1
        for _ in range(self.deadline):
            await ReadOnly()  # the value that the rising edge will see
            taken = bool(self.ready.value)
            if taken:
                self.stamp()
            await FallingEdge(self.clk)
            if taken:
                self.valid.value = 0
                return
        raise TooSlowError(f"{self.prefix}: nothing was taken within {self.deadline} cycles")

    async def take(self):
        """Return the values of the next transfer; what is offered must stay until then."""
        shown = None
        for _ in range(self.deadline):
            now = self.random.random() >= self.pauses
            self.ready.value = now
            await ReadOnly()
            offered, values = bool(self.valid.value), None
            if offered:
                values = [int(signal.value) for signal in self.payload]
            if shown is not None:
                assert values == shown, f"{self.prefix}: {shown} became {values} untaken"
            shown = values if offered and not now else None
            if offered and now:
                self.stamp()
            await RisingEdge(self.clk)
            await FallingEdge(self.clk)
            if offered and now:
                self.ready.value = 0
                return values
        raise TooSlowError(f"{self.prefix}: nothing was offered within {self.deadline} cycles")


class LiteMaster:
    """AXI4-Lite master that reads and writes registers one after the other.

    Parameters
    ----------
    dut : handle
        Module with the signals ``s_axi_*``.
    clk : handle
        Its clock to which they belong.
    pauses, seed
        See :class:`Channel`.
    """

    def __init__(self, dut, clk, *, pauses=0.0, seed=0):
        options = {"pauses": pauses, "seed": seed, "deadline": 1000}
        self.aw = Channel(dut, clk, "s_axi_aw", ("addr", "prot"), **options)
        self.w = Channel(dut, clk, "s_axi_w", ("data", "strb"), **options)
        self.b = Channel(dut, clk, "s_axi_b", ("resp",), **options)
        self.ar = Channel(dut, clk, "s_axi_ar", ("addr", "prot"), **options)
        self.r = Channel(dut, clk, "s_axi_r", ("data", "resp"), **options)
        self.give_up()

    def give_up(self):
        """Offer and take nothing, as in a reset."""
        for signal in (self.aw.valid, self.w.valid, self.ar.valid, self.b.ready, self.r.ready):
            signal.value = 0

    async def read(self, address):
        """Return value and response of a register."""
        await self.ar.send(address, 0)
        return await self.r.take()

    async def write(self, address, value, strobe=15):
        """Write a register; return the response."""
        steps = [self.aw.send(address, 0), self.w.send(value, strobe)]
        if self.aw.random.random() < 0.5:
            steps.reverse()
        for step in steps:
            await step
        (response,) = await self.b.take()
        return response


def source(dut, name, **options):
    """Return the driver of an AXI4-Stream input, whose signals' names begin with ``name``."""
    driver = Channel(dut, dut.aclk, f"{name}_t", STREAM, **options)
    driver.valid.value = 0
    return driver


def sink(dut, name, **options):
    """Return the monitor of an AXI4-Stream output, whose signals' names begin with ``name``."""
    driver = Channel(dut, dut.aclk, f"{name}_t", STREAM, **options)
    driver.ready.value = 0
    return driver


def registers(dut, clk, resetn, **options):
    """Return the AXI4-Lite master of the registers, clocked by ``clk``, reset by ``resetn``."""
    return LiteMaster(dut, clk, **options)

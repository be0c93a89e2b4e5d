# SPDX-License-Identifier: Apache-2.0
"""The board's endpoint in Amaranth's simulator, and the host's in Python, with a line between."""

import random

from hdl.link.endpoint import BoardEndpoint
from host.devices.link import HostEndpoint, Timing

from .noise import Noise
from .simulation import simulate

__all__ = ["LineBench"]


class LineBench:
    """A conversation between the two endpoints. A cycle takes a microsecond.

    Parameters
    ----------
    chosen : LinkSettings
        Settings of the board.
    pace : int
        Cycles that a byte takes on the line.
    rate : float
        Share of bytes that are damaged.
    stalls : float
        Share of cycles in which no word is offered to the board, or taken from it.
    """

    def __init__(self, chosen, *, pace=2, rate=0.0, stalls=0.0, seed=0):
        self.dut = BoardEndpoint(chosen)
        self.pace, self.stalls = pace, stalls
        self.random = random.Random(seed)
        self.noises = [Noise(rate, seed + n) for n in range(2)]
        self.timing = Timing(
            timeout=chosen.timeout_cycles / 1e6, heartbeat=chosen.heartbeat_cycles / 1e6
        )
        self.host = self.new_host(0x5EED)
        self.cycle = 0
        self.queue = b""  # on the way to the board
        self.results, self.words = [], []  # to be sent by the board, and that came out of it
        self.bytes_out = 0
        self.held = None  # a result that is offered

    def new_host(self, session):
        """Return a host for another session."""
        return HostEndpoint(session, send_slots=4, receive_slots=6, timing=self.timing)

    def run(self, bench, *, deadline=100_000):
        """Run ``bench``, which awaits :meth:`step`; return the cycles."""
        return simulate(self.dut, bench, deadline=deadline)

    async def step(self, ctx):
        """Let a cycle pass: bytes on the line every ``pace`` cycles, words whenever they can."""
        dut, now = self.dut, self.cycle / 1e6
        slot = self.cycle % self.pace == 0
        if slot:
            if not self.queue:
                self.queue = self.noises[0](self.host.transmit_frame(now))
            ctx.set(dut.i.payload, self.queue[0] if self.queue else 0)
            ctx.set(dut.i.valid, bool(self.queue))
            self.queue = self.queue[1:]
        else:
            ctx.set(dut.i.valid, 0)
        ctx.set(dut.o.ready, slot)
        if slot and ctx.get(dut.o.valid):
            self.host.receive(self.noises[1](bytes((ctx.get(dut.o.payload),))), now)
            self.bytes_out += 1
        self.offer(ctx)
        taking = self.random.random() >= self.stalls
        ctx.set(dut.words.ready, taking)
        if taking and ctx.get(dut.words.valid):
            self.words.append(ctx.get(dut.words.payload))
        self.cycle += 1
        await ctx.tick()

    def offer(self, ctx):
        """Offer the next result, and hold it until it is taken."""
        dut = self.dut
        if self.held is None and self.results and self.random.random() >= self.stalls:
            self.held = self.results.pop(0)
        ctx.set(dut.results.valid, self.held is not None)
        ctx.set(dut.results.payload, self.held or 0)
        if self.held is not None and ctx.get(dut.results.ready):
            self.held = None

    async def until(self, ctx, condition):
        """Let cycles pass until a condition holds."""
        while not condition():
            await self.step(ctx)

    def exchange(self, inputs, outputs, *, after=None, deadline=100_000):
        """Send ``inputs`` to the board and ``outputs`` to the host, at once.

        Parameters
        ----------
        inputs, outputs : list of int
            Words.
        after : coroutine function, optional
            Called with the context of the simulation when all words have come.
        deadline : int
            Cycles after which the simulation fails.

        Returns
        -------
        list of int
            Words that have come to the host; :attr:`words` has those that have come to the board.
        """
        sizes = self.dut.settings.input_bytes, self.dut.settings.result_bytes
        left = b"".join(word.to_bytes(sizes[0], "little") for word in inputs)
        self.results = list(outputs)
        got = bytearray()

        async def bench(ctx):
            nonlocal left
            while len(self.words) < len(inputs) or len(got) < sizes[1] * len(outputs):
                if self.host.is_open:
                    left = left[self.host.sender.offer(left) :]
                    got.extend(self.host.receiver.take(1000))
                await self.step(ctx)
            if after is not None:
                await after(ctx)

        self.run(bench, deadline=deadline)
        ends = range(0, len(got), sizes[1])
        return [int.from_bytes(got[at : at + sizes[1]], "little") for at in ends]

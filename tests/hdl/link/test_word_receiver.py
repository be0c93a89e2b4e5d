# SPDX-License-Identifier: Apache-2.0
import random

import pytest

from hdl.link.receiving import Arrivals, WordReceiver
from host.devices.link.endpoint import Receiver
from sim.link.simulation import simulate
from tests.hdl.link.link_settings import settings


class Pair:
    """What receives frames of words: where they are stored, and which ones are taken."""

    def __init__(self, ctx, arrivals, receiver):
        self.ctx, self.arrivals, self.receiver = ctx, arrivals, receiver
        self.words = []

    async def tick(self, cycles=1):
        ctx, arrivals, receiver = self.ctx, self.arrivals, self.receiver
        for _ in range(cycles):
            ctx.set(arrivals.front, ctx.get(receiver.front))
            ctx.set(receiver.expected, ctx.get(arrivals.expected))
            if ctx.get(receiver.o.valid) and ctx.get(receiver.o.ready):
                self.words.append(ctx.get(receiver.o.payload))
            await ctx.tick()

    async def frame(self, number, payload, *, good=True):
        """Let a frame arrive; return whether it was taken."""
        ctx, arrivals, receiver = self.ctx, self.arrivals, self.receiver
        ctx.set(arrivals.sequence, number)
        ctx.set(receiver.sequence, number)
        for index, byte in enumerate([*payload, 1, 2, 3, 4]):
            ctx.set(receiver.byte, byte)
            ctx.set(receiver.index, index)
            ctx.set(arrivals.begun, index == 0)
            ctx.set(arrivals.front, ctx.get(receiver.front))
            ctx.set(receiver.strobe, ctx.get(arrivals.fits))
            await self.tick()
        ctx.set(receiver.strobe, 0)
        ctx.set(receiver.length, len(payload))
        ctx.set(arrivals.arrived, good)
        ctx.set(arrivals.front, ctx.get(receiver.front))
        accepted = ctx.get(arrivals.accept)
        ctx.set(receiver.accept, accepted)
        await self.tick()
        ctx.set(arrivals.arrived, 0)
        ctx.set(receiver.accept, 0)
        return accepted


def run(chosen, bench):
    """Run ``bench(pair)`` with both parts in one circuit."""
    from amaranth import Module
    from amaranth.lib import wiring

    class Both(wiring.Component):
        def __init__(self):
            self.receiver = WordReceiver(chosen)
            self.arrivals = Arrivals(slots=chosen.receive_slots, heartbeat_cycles=10_000)
            super().__init__({})

        def elaborate(self, platform):
            m = Module()
            m.submodules += self.receiver, self.arrivals
            return m

    both = Both()

    async def started(ctx):
        await bench(Pair(ctx, both.arrivals, both.receiver))

    simulate(both, started, deadline=60_000)


@pytest.mark.parametrize("slots", [4, pytest.param(2, marks=pytest.mark.long)])
def test_words_leave_once_and_in_order_whatever_order_frames_come_in(slots):
    chosen = settings(receive_slots=slots)
    rng = random.Random(slots)
    size = chosen.input_bytes
    payloads = [rng.randbytes(size * rng.randrange(4)) for _ in range(150)]
    model = Receiver(slots=slots)
    model.word_bytes = size

    async def bench(pair):
        ctx, arrivals = pair.ctx, pair.arrivals
        early_seen = dropped = 0
        while (base := model._expected) < len(payloads):
            ctx.set(pair.receiver.o.ready, rng.random() < 0.8)
            number = min(base + rng.choice((0, 0, 1, 2, -1)), len(payloads) - 1)
            good = rng.random() < 0.8
            if number < 0:
                continue
            if not good:  # of any number, and any bytes
                await pair.frame(rng.randrange(256), rng.randbytes(12), good=False)
                continue
            taken = await pair.frame(number & 0xFF, payloads[number])
            if taken:
                model.accept(number & 0xFF, payloads[number])
                model.take(1000)
            dropped += not taken
            await pair.tick(rng.randrange(slots, 30))
            assert ctx.get(arrivals.expected) == model.expected
            assert ctx.get(arrivals.early) == model.early & (1 << slots - 1) - 1
            early_seen += model.early != 0
        ctx.set(pair.receiver.o.ready, 1)
        await pair.tick(400)
        assert early_seen > 10
        assert dropped > 10

        want = b"".join(payloads)
        values = [want[at : at + size] for at in range(0, len(want), size)]
        bits = (1 << chosen.input_bits) - 1
        assert pair.words == [int.from_bytes(value, "little") & bits for value in values]

    run(chosen, bench)


def test_the_first_word_comes_when_the_component_says():
    chosen = settings()

    async def bench(pair):
        ctx = pair.ctx
        await pair.frame(0, bytes(range(2 * chosen.input_bytes)))
        cycles = 0
        while ctx.get(pair.arrivals.expected) == 0:
            await pair.tick()
        ctx.set(pair.receiver.expected, 1)
        while not ctx.get(pair.receiver.o.valid):
            await pair.tick()
            cycles += 1
        assert cycles == pair.receiver.latency

    run(chosen, bench)

# SPDX-License-Identifier: Apache-2.0
"""The sender's numbers in the circuit are those of the sender in Python."""

import random

import pytest

from hdl.link.sending import ReplayWindow
from host.devices.link import FrameDecoder
from host.devices.link.endpoint import Sender
from sim.link.simulation import simulate

NEVER = 1 << 20


@pytest.mark.parametrize("slots", [2, 8])
def test_the_same_frames_are_sent_again_as_by_the_sender_in_python(slots):
    rng = random.Random(slots)
    dut = ReplayWindow(slots=slots, timeout_cycles=NEVER, payload_bytes=64)
    model = Sender(slots=slots, timeout=float(NEVER))
    model.payload_bytes = 64
    decoder = FrameDecoder()
    here, expected, sent, again = set(), 0, 0, 0  # the other side's frames

    async def send(ctx):
        """Send a frame on both sides, or none; return its number."""
        model.offer(bytes(model.room))
        data = model.next_frame(0.0)
        assert ctx.get(dut.sendable) == (data is not None)
        if data is None:
            await ctx.tick()
            return None
        (frame,) = decoder.feed(data)
        assert ctx.get(dut.number) == frame.sequence
        ctx.set(dut.started, 1)
        await ctx.tick()
        ctx.set(dut.started, 0)
        return frame.sequence

    async def acknowledge(ctx):
        nonlocal expected
        limit = (expected + rng.choice((slots, slots, rng.randrange(slots + 1)))) & 0xFF
        early = sum((expected + 1 + n) in here and 1 << n for n in range(slots - 1))
        garbled = rng.random() < 0.2
        model.acknowledge(expected & 0xFF, limit, early, garbled=garbled, now=0.0)
        for name, value in [
            ("acknowledged", 1), ("expected", expected & 0xFF), ("limit", limit),
            ("early", early), ("garbled", garbled),
        ]:  # fmt: skip
            ctx.set(getattr(dut, name), value)
        await ctx.tick()
        ctx.set(dut.acknowledged, 0)

    async def bench(ctx):
        nonlocal expected, sent, again
        newest = -1
        for _ in range(900):
            if not ctx.get(dut.full):  # a frame waits as long as there is room for it
                ctx.set(dut.sealed, 1)
                await ctx.tick()
                ctx.set(dut.sealed, 0)
                continue
            if rng.random() < 0.4:
                await acknowledge(ctx)
                assert ctx.get(dut.allowed) == model._allowed
            elif rng.random() < 0.01:
                model.repeat_all(0.0)
                ctx.set(dut.repeat, 1)
                await ctx.tick()
                ctx.set(dut.repeat, 0)
            elif (low := await send(ctx)) is not None:
                number = expected + ((low - expected + 128) & 0xFF) - 128
                sent, again = sent + 1, again + (number <= newest)
                newest = max(newest, number)
                if rng.random() < 0.7:
                    here.add(number)
                    while expected in here:
                        expected += 1
        assert sent - again > 100

    simulate(dut, bench, deadline=10_000)
    assert again > 30

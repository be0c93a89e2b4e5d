# SPDX-License-Identifier: Apache-2.0
import random

import pytest

from hdl.link.frames import FrameWriter
from sim.link.simulation import simulate
from tests.hdl.link.frame_bytes import SESSION, random_frames


@pytest.mark.few(1)
@pytest.mark.parametrize("stalls", [0.0, 0.4])
def test_a_slot_holds_what_the_codec_makes(stalls):
    rng = random.Random(1)
    dut = FrameWriter()
    frames, parts = random_frames(20, seed=3)
    made = []
    slot = bytearray(256)

    def note(ctx):
        if ctx.get(dut.write):
            slot[ctx.get(dut.place)] = ctx.get(dut.data)

    async def bench(ctx):
        for frame in frames:
            ctx.set(dut.seed, 0 if frame.kind <= 2 else SESSION)
            for byte in bytes((frame.kind, frame.sequence)) + frame.payload:
                while rng.random() < stalls:
                    ctx.set(dut.i.valid, 0)
                    note(ctx)
                    await ctx.tick()
                ctx.set(dut.i.valid, 1)
                ctx.set(dut.i.payload, byte)
                assert ctx.get(dut.i.ready)
                note(ctx)
                await ctx.tick()
            ctx.set(dut.i.valid, 0)
            ctx.set(dut.finish, 1)
            cycles = 0
            while not ctx.get(dut.done):
                note(ctx)
                await ctx.tick()
                cycles += 1
            assert cycles == 6
            note(ctx)
            await ctx.tick()
            ctx.set(dut.finish, 0)
            made.append(bytes(slot[: slot.index(0) + 1]))
            slot[:] = bytes(256)

    simulate(dut, bench, deadline=20_000)
    assert made == parts

# SPDX-License-Identifier: Apache-2.0
import random

import pytest

from hdl.ethernet.receiving import PacketBuffer
from sim.link.simulation import simulate


@pytest.mark.few(2)
@pytest.mark.parametrize(("depth", "stalls"), [(2, 0.0), (4, 0.5), (32, 0.3), (32, 0.9)])
def test_bytes_of_committed_packets_with_room_come_out_in_order(depth, stalls):
    rng = random.Random(depth)
    dut = PacketBuffer(depth=depth)
    want, got = bytearray(), bytearray()
    lost = []
    held = None

    async def step(ctx, **values):
        nonlocal held
        for name in ("begin", "write", "byte", "commit"):
            ctx.set(getattr(dut, name), values.get(name, 0))
        ready = rng.random() >= stalls
        ctx.set(dut.o.ready, ready)
        room = ctx.get(dut.room)
        if ctx.get(dut.o.valid):
            assert held in (None, ctx.get(dut.o.payload))
            held = ctx.get(dut.o.payload)
            if ready:
                got.append(held)
                held = None
        else:
            assert held is None
        await ctx.tick()
        return room

    async def bench(ctx):
        for _ in range(120):
            await step(ctx, begin=1)
            packet = rng.randbytes(rng.choice([0, 1, 2, 3, depth // 2, depth, depth + 1]))
            rooms = [await step(ctx, write=1, byte=byte) for byte in packet]
            if rng.random() < 0.7:
                await step(ctx, commit=1)
                lost.append(not all(rooms))
                want.extend(packet if all(rooms) else b"")
        for _ in range(40 * depth):
            await step(ctx, begin=1)

    simulate(dut, bench, deadline=20_000)
    assert got == want
    assert any(lost)
    assert not all(lost)


def test_a_byte_is_there_as_late_as_stated():
    dut = PacketBuffer(depth=4)

    async def bench(ctx):
        ctx.set(dut.write, 1)
        ctx.set(dut.byte, 7)
        await ctx.tick()
        ctx.set(dut.write, 0)
        ctx.set(dut.commit, 1)
        await ctx.tick()
        ctx.set(dut.commit, 0)
        for _ in range(dut.latency - 1):
            assert not ctx.get(dut.o.valid)
            await ctx.tick()
        assert ctx.get(dut.o.valid)
        assert ctx.get(dut.o.payload) == 7

    simulate(dut, bench, deadline=20)


def test_a_depth_that_is_no_power_of_two_is_refused():
    with pytest.raises(ValueError, match="must be a power of two, not 3"):
        PacketBuffer(depth=3)

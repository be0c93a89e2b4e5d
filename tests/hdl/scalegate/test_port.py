# SPDX-License-Identifier: Apache-2.0
from amaranth.hdl import Value
from amaranth.sim import Simulator
import pytest

from hdl.scalegate.port import MergePort
from hdl.scalegate.words import GateKind, gate_word

LAYOUT = gate_word(6, 4, sources=2)
TUPLE, WATERMARK, LEAVE, BARRIER = GateKind


def drive(dut, process):
    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(process)
    simulator.run()


async def put(ctx, dut, kind, time=0):
    """Offer a word until it is taken; return how many cycles that took."""
    ctx.set(dut.i.payload, LAYOUT.const({"kind": kind, "time": time}))
    ctx.set(dut.i.valid, 1)
    cycles = 0
    while True:
        cycles += 1
        *_, ready = await ctx.tick().sample(dut.i.ready)
        if ready:
            ctx.set(dut.i.valid, 0)
            return cycles
        assert cycles < 20


async def take(ctx, dut):
    """Take the head; return it as kind, time and whether it is late."""
    assert ctx.get(dut.filled)
    head = LAYOUT.from_bits(ctx.get(Value.cast(dut.head)))
    ctx.set(dut.take, 1)
    await ctx.tick()
    ctx.set(dut.take, 0)
    return GateKind(head.kind), head.time, head.late


def test_the_watermark_is_the_latest_time_and_never_falls():
    dut = MergePort(LAYOUT)

    async def process(ctx):
        for kind, time in [(TUPLE, 3), (WATERMARK, 7), (TUPLE, 5)]:
            await put(ctx, dut, kind, time)
        assert await take(ctx, dut) == (TUPLE, 3, 0)
        assert await take(ctx, dut) == (TUPLE, 7, 1)
        assert not ctx.get(dut.filled)
        assert ctx.get(dut.head.time) == 7
        for time, mark in [(8, 8), (6, 8), (9, 9)]:
            await put(ctx, dut, WATERMARK, time)
            assert ctx.get(dut.head.time) == mark

    drive(dut, process)


@pytest.mark.parametrize("held", [0, 1])
def test_a_port_that_was_left_begins_at_the_floor_or_behind_what_it_holds(held):
    dut = MergePort(LAYOUT)

    async def process(ctx):
        ctx.set(dut.floor, 4)
        for _ in range(held):
            await put(ctx, dut, TUPLE, 9)
        await put(ctx, dut, LEAVE)
        assert not ctx.get(dut.present)
        assert await put(ctx, dut, TUPLE, 6) == 3
        assert ctx.get(dut.present)
        for _ in range(held):
            assert await take(ctx, dut) == (TUPLE, 9, 0)
        assert await take(ctx, dut) == ((TUPLE, 9, 1) if held else (TUPLE, 6, 0))

    drive(dut, process)


def test_a_port_that_settles_takes_over_the_floor_and_then_a_word():
    dut = MergePort(LAYOUT, present=False)

    async def process(ctx):
        ctx.set(dut.i.valid, 1)
        ctx.set(dut.i.payload, LAYOUT.const({"kind": TUPLE, "time": 2}))
        seen = []
        for floor in (3, 4, 5, 6):
            ctx.set(dut.floor, floor)
            seen.append((ctx.get(dut.present), ctx.get(dut.settles), ctx.get(dut.i.ready)))
            await ctx.tick()
        assert seen == [(0, 0, 0), (1, 1, 0), (1, 0, 1), (1, 0, 1)]
        assert await take(ctx, dut) == (TUPLE, 4, 1)

    drive(dut, process)


def test_times_begin_again_behind_a_barrier_that_waits():
    dut = MergePort(LAYOUT)

    async def process(ctx):
        await put(ctx, dut, WATERMARK, 9)
        assert await put(ctx, dut, BARRIER) == 1
        assert await put(ctx, dut, TUPLE, 2) == 1
        assert (await take(ctx, dut))[0] == BARRIER
        assert await take(ctx, dut) == (TUPLE, 2, 0)
        assert ctx.get(dut.head.time) == 2
        assert await put(ctx, dut, BARRIER) == 1
        assert (await take(ctx, dut))[0] == BARRIER
        assert ctx.get(dut.head.time) == 0

    drive(dut, process)

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


async def tick(ctx, dut):
    """Pass a cycle as a merge does: a head that is no tuple is replaced, if there is one cycle."""
    ctx.set(dut.move, not ctx.get(dut.filled))
    await ctx.tick()


async def put(ctx, dut, kind, time=0, late=0):
    """Offer a word until it is taken; return how many cycles that took."""
    ctx.set(dut.i.payload, LAYOUT.const({"kind": kind, "time": time, "late": late}))
    ctx.set(dut.i.valid, 1)
    cycles = 0
    while True:
        cycles += 1
        taken = ctx.get(dut.i.ready)
        await tick(ctx, dut)
        if taken:
            ctx.set(dut.i.valid, 0)
            return cycles
        assert cycles < 20


def shown(ctx, dut):
    """Return what the head shows: kind, time and whether it is late."""
    head = LAYOUT.from_bits(ctx.get(Value.cast(dut.head)))
    return GateKind(head.kind), head.time, head.late


async def take(ctx, dut):
    """Take the head, which is a tuple or a barrier; return what it showed."""
    for _ in range(dut.latency):
        if not ctx.get(dut.filled):
            await tick(ctx, dut)
    assert ctx.get(dut.filled)
    head = shown(ctx, dut)
    ctx.set(dut.move, 1)
    ctx.set(dut.told, 1)
    await ctx.tick()
    ctx.set(dut.told, 0)
    return head


async def settle(ctx, dut):
    """Wait until the head shows the latest word."""
    for _ in range(dut.latency):
        await tick(ctx, dut)


def test_the_watermark_is_the_latest_time_and_stands_behind_the_tuples():
    dut = MergePort(LAYOUT)

    async def process(ctx):
        for kind, time in [(TUPLE, 3), (WATERMARK, 7), (TUPLE, 8)]:
            await put(ctx, dut, kind, time)
        assert await take(ctx, dut) == (TUPLE, 3, 0)
        assert await take(ctx, dut) == (TUPLE, 8, 0)
        await settle(ctx, dut)
        assert not ctx.get(dut.filled)
        assert not ctx.get(dut.offers)  # the output knows it from the tuple
        assert shown(ctx, dut) == (WATERMARK, 8, 0)
        await put(ctx, dut, WATERMARK, 9)
        await settle(ctx, dut)
        assert ctx.get(dut.offers)
        assert shown(ctx, dut) == (WATERMARK, 9, 0)

    drive(dut, process)


def test_a_watermark_is_offered_until_it_is_told_and_not_again():
    dut = MergePort(LAYOUT)

    async def process(ctx):
        await put(ctx, dut, WATERMARK, 4)
        await settle(ctx, dut)
        for _ in range(3):
            assert ctx.get(dut.offers)
            await tick(ctx, dut)
        ctx.set(dut.told, 1)
        await tick(ctx, dut)
        ctx.set(dut.told, 0)
        assert not ctx.get(dut.offers)
        await put(ctx, dut, WATERMARK, 4, late=1)  # says nothing new
        await settle(ctx, dut)
        assert not ctx.get(dut.offers)
        ctx.set(dut.silent, 1)
        await tick(ctx, dut)
        assert ctx.get(dut.offers)  # what follows does not know yet that this input is there

    drive(dut, process)


def test_what_is_next_is_known_a_cycle_before_it_is_the_head():
    dut = MergePort(LAYOUT)

    async def process(ctx):
        await put(ctx, dut, TUPLE, 5)
        assert ctx.get(dut.next_filled)
        assert ctx.get(dut.next_place.time) == 5
        assert not ctx.get(dut.filled)
        ctx.set(dut.move, 1)
        await ctx.tick()
        assert ctx.get(dut.filled)
        assert ctx.get(dut.place.time) == 5

    drive(dut, process)


def test_an_input_that_comes_back_begins_at_the_floor_when_its_tuples_have_left():
    dut = MergePort(LAYOUT)

    async def process(ctx):
        ctx.set(dut.floor, 4)
        await put(ctx, dut, TUPLE, 9)
        await put(ctx, dut, LEAVE)
        ctx.set(dut.i.payload, LAYOUT.const({"kind": TUPLE, "time": 6}))
        ctx.set(dut.i.valid, 1)
        for _ in range(8):
            assert not ctx.get(dut.i.ready)  # the tuple of the time 9 has not left
            assert not ctx.get(dut.settles)
            await tick(ctx, dut)
        assert await take(ctx, dut) == (TUPLE, 9, 0)
        await settle(ctx, dut)
        assert await put(ctx, dut, TUPLE, 6) <= 6
        assert await take(ctx, dut) == (TUPLE, 6, 0)

    drive(dut, process)


def test_a_watermark_that_was_never_shown_is_forgotten_when_the_input_leaves():
    dut = MergePort(LAYOUT)

    async def process(ctx):
        ctx.set(dut.floor, 9)
        for kind, time in [(TUPLE, 3), (WATERMARK, 7), (LEAVE, 0)]:
            await put(ctx, dut, kind, time)
        assert await take(ctx, dut) == (TUPLE, 3, 0)
        await settle(ctx, dut)
        assert ctx.get(dut.place.gone)
        await put(ctx, dut, WATERMARK, 9)
        await settle(ctx, dut)
        assert shown(ctx, dut) == (WATERMARK, 9, 0)
        assert not ctx.get(dut.offers)  # the floor is what the output has told

    drive(dut, process)


def test_an_input_that_is_gone_is_told_once():
    dut = MergePort(LAYOUT, present=False)

    async def process(ctx):
        await settle(ctx, dut)
        assert shown(ctx, dut)[0] == LEAVE
        assert ctx.get(dut.offers)
        ctx.set(dut.silent, 1)
        await tick(ctx, dut)
        assert not ctx.get(dut.offers)

    drive(dut, process)


@pytest.mark.parametrize("blocked", [0, 2])
def test_a_port_settles_for_two_cycles_and_takes_over_the_floor(blocked):
    dut = MergePort(LAYOUT, present=False)

    async def process(ctx):
        await settle(ctx, dut)
        ctx.set(dut.i.valid, 1)
        ctx.set(dut.i.payload, LAYOUT.const({"kind": TUPLE, "time": 2}))
        ctx.set(dut.blocked, 1)
        for _ in range(blocked):
            assert not ctx.get(dut.settles)
            await tick(ctx, dut)
        ctx.set(dut.blocked, 0)
        seen, gone = [], []
        for floor in (3, 4, 4, 5):
            ctx.set(dut.floor, floor)
            seen.append(ctx.get(dut.settles))
            gone.append(ctx.get(dut.place.gone))
            await tick(ctx, dut)
        # Nothing leaves in the two cycles after `settles`, so the floor stays.
        assert seen == [1, 1, 0, 0]
        assert gone == [1, 1, 1, 0]
        assert shown(ctx, dut)[1] == 4
        await put(ctx, dut, TUPLE, 2)
        assert await take(ctx, dut) == (TUPLE, 4, 1)

    drive(dut, process)


def test_late_words_take_three_cycles_and_words_after_the_first_one_in_time_take_one():
    dut = MergePort(LAYOUT, present=False)

    async def process(ctx):
        ctx.set(dut.floor, 20)
        await settle(ctx, dut)
        sent = [(TUPLE, 5), (TUPLE, 6), (WATERMARK, 7), (WATERMARK, 20), (TUPLE, 20), (TUPLE, 21)]
        cycles, heads = [], []
        for kind, time in sent:
            cycles.append(await put(ctx, dut, kind, time))
            if kind is TUPLE:
                heads.append(await take(ctx, dut))
        assert cycles[1:] == [3, 3, 3, 3, 1]
        assert heads == [(TUPLE, 20, 1), (TUPLE, 20, 1), (TUPLE, 20, 0), (TUPLE, 21, 0)]

    drive(dut, process)


def test_times_begin_again_behind_a_barrier_that_waits():
    dut = MergePort(LAYOUT)

    async def process(ctx):
        await put(ctx, dut, WATERMARK, 9)
        assert await put(ctx, dut, BARRIER) == 1
        assert await put(ctx, dut, TUPLE, 2) == 1
        assert (await take(ctx, dut))[0] == BARRIER
        assert await take(ctx, dut) == (TUPLE, 2, 0)
        assert await put(ctx, dut, BARRIER) == 1
        assert (await take(ctx, dut))[0] == BARRIER
        await settle(ctx, dut)
        assert shown(ctx, dut) == (WATERMARK, 0, 0)

    drive(dut, process)

# SPDX-License-Identifier: Apache-2.0
"""Sources that leave and come back."""

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st
import pytest

from hdl.scalegate.gate import ScaleGate
from sim.model.scale_gate import GateWordKind
from tests.halves import half
from tests.hdl.scalegate.gate_bench import KEPT, is_kept, run_timed
from tests.hdl.scalegate.gate_words import (
    barrier,
    leave,
    random_source,
    send,
    tuple_at,
    watermark,
    words,
)
from tests.hdl.stream_bench import StreamBench

TIME, BODY = 8, 6


def test_a_source_that_returns_goes_on_from_what_has_been_reached():
    dut = ScaleGate(TIME, BODY, sources=2, present=0b01)
    bench = StreamBench(dut, deadline=500)
    layout = dut.i[0].payload.shape()
    bench.source(dut.i[0], [send(layout, tuple_at(time)) for time in (10, 20)])
    received = bench.sink(dut.o, 6, weight=is_kept(dut))
    state = {}

    async def second(ctx):
        await ctx.tick().repeat(20)
        state["before"] = len(received)
        for word in (tuple_at(15, 1), tuple_at(25, 2), tuple_at(30, 3), leave()):
            ctx.set(dut.i[1].payload, send(layout, word))
            ctx.set(dut.i[1].valid, 1)
            await ctx.tick().until(dut.i[1].ready)
        ctx.set(dut.i[1].valid, 0)
        await ctx.tick().repeat(20)
        # Source 0 has shown 20 only. A tuple below 20 would be late.
        ctx.set(dut.i[0].payload, send(layout, tuple_at(26)))
        ctx.set(dut.i[0].valid, 1)
        await ctx.tick().until(dut.i[0].ready)
        ctx.set(dut.i[0].payload, send(layout, leave()))
        await ctx.tick().until(dut.i[0].ready)
        ctx.set(dut.i[0].valid, 0)
        await ctx.tick().repeat(20)
        state["late"] = ctx.get(dut.late)
        bench.done()

    bench.spawn(second)
    bench.run()
    assert state["before"] == 2  # an absent source holds nobody back
    found = [word for word in words(dut.o.payload.shape(), received) if word.kind in KEPT]
    assert [(word.time, word.source, word.late) for word in found] == [
        (10, 0, False), (20, 0, False), (20, 1, True), (25, 1, False), (26, 0, False),
        (30, 1, False),
    ]  # fmt: skip
    assert state["late"] == 2


@settings(max_examples=4, deadline=None)
@given(st.integers(2, 4), st.integers(0, 2**32), st.sampled_from([1, 2]))
def test_nothing_is_lost_while_sources_come_and_go(sources, seed, epochs):
    random = Random(seed)
    given_words = [
        [
            word
            for _ in range(3)
            for word in random_source(random, length=5, time_bits=3, body_bits=2, epochs=epochs)
        ]
        for _ in range(sources)
    ]
    dut = ScaleGate(3, 2, sources=sources, depth=2, present=random.getrandbits(sources))
    bench = StreamBench(dut, deadline=2_000, stalls=0.4, seed=seed)
    for i, source in zip(dut.i, given_words, strict=True):
        bench.source(i, [send(dut.i[0].payload.shape(), word) for word in source])
    received = bench.sink(dut.o, 0)
    bench.run(extra_cycles=300)
    found = words(dut.o.payload.shape(), received)
    reached = 0
    for word in found:
        if word.kind is GateWordKind.BARRIER:
            reached = 0
        elif word.kind is GateWordKind.TUPLE:
            assert word.time >= reached
            reached = word.time
    for number, source in enumerate(given_words):
        sent, left = (
            [word for word in some if word.kind is GateWordKind.TUPLE]
            for some in (source, (word for word in found if word.source == number))
        )
        assert [word.body for word in left] == [word.body for word in sent]
        assert all(word.late or word.time == own.time for word, own in zip(left, sent, strict=True))


def returning(sources, offsets, *, barrier_at):
    """Let all sources but the last leave, and come back with an old tuple and a barrier.

    ``offsets`` say for each when it comes back; the last one's barrier comes at ``barrier_at``.
    """
    timetables = [
        [
            (leave(), 0),
            *((word, 30 + offset) for word in (tuple_at(2, number), barrier(9), leave())),
        ]
        for number, offset in enumerate(offsets)
    ]
    stays = [(tuple_at(7, 9), 0), (barrier(9), 30 + barrier_at), (leave(), 0)]
    dut = ScaleGate(TIME, BODY, sources=sources)
    return run_timed(dut, [*timetables, stays], cycles=100)[0]


@pytest.mark.parametrize("sources", [2, 3, 5])
def test_others_wait_for_a_source_that_came_back_the_stated_time_ago(sources):
    random = Random(sources)
    gate = ScaleGate(TIME, BODY, sources=sources)
    assert gate.return_latency == 3 + 6 * gate.levels
    for _ in range(2):
        offsets = [0, *(random.randrange(-3, 9) for _ in range(sources - 2))]
        found = returning(sources, offsets, barrier_at=gate.return_latency)
        epoch = found[: [word.kind for word in found].index(GateWordKind.BARRIER)]
        assert [(word.time, word.late) for word in epoch if word.source == 0] == [(7, True)]


def test_a_tuple_that_comes_back_beside_a_barrier_is_late_or_behind_it():
    epochs = []
    for gap in range(2, 6):
        # A neighbour comes back too, and delays source 0.
        found = returning(3, [0, 2], barrier_at=gap)
        own = [word for word in found if word.kind is GateWordKind.TUPLE and word.source == 0]
        before = found[: [word.kind for word in found].index(GateWordKind.BARRIER)]
        epochs.append(int(own[0] not in before))
        assert [(word.time, word.late) for word in own] == [[(7, True)], [(2, False)]][epochs[-1]]
    assert epochs == sorted(epochs, reverse=True)
    assert set(epochs) == {0, 1}


def resumed(sources, number, *, waits, stalls=0.0, seed=0):
    """Let a source return by the recipe of docs/scalegate.md while the others go on.

    Times are cycles. What the others offer by the end of the wait is known to the source, which
    then goes on from there, slowly. Returns the tuples that leave, and (time, source) of those
    that were sent.
    """
    random = Random(seed)
    dut = ScaleGate(12, BODY, sources=sources)
    layout = dut.i[0].payload.shape()
    bench = StreamBench(dut, deadline=3_000, stalls=stalls, seed=seed)
    received = bench.sink(dut.o, 0)
    sent = []

    async def offer(ctx, n, word):
        ctx.set(dut.i[n].payload, send(layout, word))
        ctx.set(dut.i[n].valid, 1)
        if word.kind is GateWordKind.TUPLE:
            sent.append((word.time, n))
        await ctx.tick().until(dut.i[n].ready)
        ctx.set(dut.i[n].valid, 0)

    async def end(ctx, n):
        await offer(ctx, n, leave())
        bench.done()

    def goes_on(n):
        async def process(ctx):
            while bench.cycle < 120:
                await offer(ctx, n, tuple_at(bench.cycle, n))
                await ctx.tick().repeat(random.choice((1, 1, 2)))
            await end(ctx, n)

        return process

    async def returns(ctx):
        await offer(ctx, number, tuple_at(1))
        await offer(ctx, number, leave())
        await ctx.tick().repeat(random.randrange(20, 60))
        await offer(ctx, number, watermark(random.choice((0, bench.cycle))))
        left = dut.return_latency
        while waits and left:
            *_, ready = await ctx.tick().sample(dut.o.ready)
            left -= ready
        time = max(time for time, _ in sent)
        for _ in range(6):
            await ctx.tick().repeat(random.randrange(8, 14))
            await offer(ctx, number, tuple_at(time))
            time += random.randrange(3)
        await end(ctx, number)

    for n in range(sources):
        bench.spawn(returns if n == number else goes_on(n))
    bench.run(extra_cycles=300)
    found = [word for word in words(dut.o.payload.shape(), received) if word.kind in KEPT]
    return found, sorted(sent)


@pytest.mark.few(1)
@pytest.mark.parametrize(("sources", "stalls"), half([2, 3, 5], [0.0, 0.5]))
def test_a_source_that_says_a_watermark_and_waits_brings_no_late_tuple(sources, stalls):
    for number in (0, sources - 1):
        found, sent = resumed(sources, number, waits=True, stalls=stalls, seed=number)
        assert [(word.time, word.source) for word in found] == sent
        assert not any(word.late for word in found)


def test_a_source_that_does_not_wait_may_be_late():
    found, sent = resumed(3, 0, waits=False, seed=2)
    assert len(found) == len(sent)
    assert any(word.late for word in found)

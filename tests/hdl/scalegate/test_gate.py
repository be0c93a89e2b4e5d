# SPDX-License-Identifier: Apache-2.0
from itertools import pairwise
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st
import pytest

from hdl.scalegate.gate import ScaleGate
from host.reference.scale_gate import GateWordKind
from tests.halves import half
from tests.hdl.scalegate.gate_words import (
    barrier,
    expected,
    leave,
    random_source,
    send,
    tuple_at,
    words,
)
from tests.hdl.stream_bench import StreamBench

TIME, BODY = 8, 6
KEPT = (GateWordKind.TUPLE, GateWordKind.BARRIER)


def run(dut, sources, *, stalls=0.0, seed=0, deadline=20_000):
    """Run until all that the reference expects has left; return every word that leaves."""
    bench = StreamBench(dut, deadline=deadline, stalls=stalls, seed=seed)
    layout, out = dut.i[0].payload.shape(), dut.o.payload.shape()
    for i, source in zip(dut.i, sources, strict=True):
        bench.source(i, [send(layout, word) for word in source])
    received = bench.sink(
        dut.o, len(expected(sources)), weight=lambda bits: words(out, [bits])[0].kind in KEPT
    )
    bench.run(extra_cycles=4 * dut.latency)
    return words(out, received)


def check_watermarks(found):
    """A watermark is above all times before it, and no time after it is below it."""
    floor, is_new = 0, True
    for word in found:
        if word.kind is GateWordKind.BARRIER:
            floor, is_new = 0, True
        elif word.kind is GateWordKind.LEAVE:
            is_new = True
        else:
            assert word.time >= floor
            if word.kind is GateWordKind.WATERMARK and not is_new:
                assert word.time > floor
            floor, is_new = word.time, False


@pytest.mark.parametrize(
    ("sources", "stalls", "epochs"), half([1, 2, 3, 7], [0.0, 0.4], [1, 2], of=3)
)
def test_tuples_leave_once_in_the_order_of_time_and_source(sources, stalls, epochs):
    random = Random(sources)
    given_words = [
        random_source(random, length=12, time_bits=TIME, body_bits=BODY, epochs=epochs)
        for _ in range(sources)
    ]
    dut = ScaleGate(TIME, BODY, sources=sources, depth=4)
    found = run(dut, given_words, stalls=stalls, seed=sources)
    assert [word for word in found if word.kind in KEPT] == expected(given_words)
    check_watermarks(found)


@pytest.mark.long
@pytest.mark.parametrize("sources", [33, 64])
def test_many_sources(sources):
    test_tuples_leave_once_in_the_order_of_time_and_source(sources, 0.3, 2)


@settings(max_examples=3, deadline=None)
@given(st.integers(1, 4), st.integers(0, 2**32), st.sampled_from([0.0, 0.4]))
def test_the_gate_agrees_with_the_reference(sources, seed, stalls):
    random = Random(seed)
    given_words = [
        random_source(random, length=8, time_bits=3, body_bits=2, backward=0.2, epochs=2)
        for _ in range(sources)
    ]
    dut = ScaleGate(3, 2, sources=sources, depth=2)
    found = run(dut, given_words, stalls=stalls, seed=seed)
    assert [word for word in found if word.kind in KEPT] == expected(given_words)
    check_watermarks(found)


@pytest.mark.parametrize("sources", [1, 2, 5])
def test_a_tuple_leaves_its_latency_after_the_word_that_makes_it_ready(sources):
    dut = ScaleGate(TIME, BODY, sources=sources)
    layout = dut.i[0].payload.shape()
    bench = StreamBench(dut, deadline=200)
    sent, taken = [], []
    for number, i in enumerate(dut.i):
        bench.source(i, [send(layout, tuple_at(9 if number else 5))], stamps=sent)
    bench.sink(dut.o, 1, stamps=taken, weight=lambda bits: layout_kind(dut, bits) in KEPT)
    bench.run()
    assert len(taken) == 1 + (sources == 0)
    assert taken[-1] - max(sent) == dut.latency == 2 + 2 * dut.levels


def layout_kind(dut, bits):
    return GateWordKind(dut.o.payload.shape().from_bits(bits).kind.value)


@pytest.mark.parametrize("sources", [1, 2, 3])
def test_a_tuple_leaves_in_every_cycle(sources):
    dut = ScaleGate(10, BODY, sources=sources)
    layout = dut.i[0].payload.shape()
    bench = StreamBench(dut, deadline=2_000)
    count, taken = 40, []
    for number, i in enumerate(dut.i):
        times = range(number, count * sources, sources)
        bench.source(i, [send(layout, tuple_at(time)) for time in times])
    bench.sink(dut.o, (count - 1) * sources, stamps=taken)
    bench.run()
    span = taken[: (count - 1) * sources]
    assert span[-1] - span[0] == len(span) - 1


def test_a_barrier_leaves_in_every_cycle():
    dut = ScaleGate(TIME, BODY, sources=4)
    layout = dut.i[0].payload.shape()
    bench = StreamBench(dut, deadline=200)
    taken = []
    for i in dut.i:
        bench.source(i, [send(layout, barrier(n)) for n in range(10)])
    received = bench.sink(dut.o, 10, stamps=taken)
    bench.run()
    assert words(dut.o.payload.shape(), received) == [barrier(n) for n in range(10)]
    assert {b - a for a, b in pairwise(taken)} == {1}


@pytest.mark.parametrize("sources", [1, 2, 3])
def test_late_tuples_are_passed_and_remembered_by_their_source(sources):
    dut = ScaleGate(TIME, BODY, sources=sources)
    given_words = [[tuple_at(5, number), leave()] for number in range(sources)]
    given_words[-1] = [tuple_at(9, 1), tuple_at(4, 2), tuple_at(9, 3), leave()]
    states = {}

    async def look(ctx):
        async for _ in ctx.tick():
            states["late"] = ctx.get(dut.late)

    found = run_watched(dut, given_words, look)
    kept = [word for word in found if word.kind in KEPT]
    assert kept == expected(given_words)
    assert [word.body for word in kept if word.late] == [2]
    assert states["late"] == 1 << (sources - 1)


def run_watched(dut, sources, *processes):
    """Run with more testbenches beside; return every word that leaves."""
    bench = StreamBench(dut, deadline=2_000)
    layout, out = dut.i[0].payload.shape(), dut.o.payload.shape()
    for i, source in zip(dut.i, sources, strict=True):
        bench.source(i, [send(layout, word) for word in source])
    for process in processes:
        bench.simulator.add_testbench(process, background=True)
    received = bench.sink(
        dut.o, len(expected(sources)), weight=lambda bits: layout_kind(dut, bits) in KEPT
    )
    bench.run(extra_cycles=4 * dut.latency)
    return words(out, received)


def test_what_was_late_is_forgotten_on_demand():
    dut = ScaleGate(TIME, BODY, sources=2)
    states = []

    async def forget(ctx):
        while not ctx.get(dut.late):
            await ctx.tick()
        states.append(ctx.get(dut.late))
        ctx.set(dut.forget, 1)
        await ctx.tick()
        ctx.set(dut.forget, 0)
        states.append(ctx.get(dut.late))

    run_watched(dut, [[tuple_at(9), tuple_at(3), leave()], [leave()]], forget)
    assert states == [1, 0]


def test_barriers_with_different_bodies_are_told():
    dut = ScaleGate(TIME, BODY, sources=3)
    seen = []

    async def look(ctx):
        async for _, _, differ in ctx.tick().sample(dut.differ):
            seen.append(differ)

    run_watched(dut, [[barrier(4), leave()]] * 3, look)
    assert not any(seen)
    seen.clear()
    dut = ScaleGate(TIME, BODY, sources=3)
    found = run_watched(dut, [[barrier(4), leave()]] * 2 + [[barrier(5), leave()]], look)
    assert seen[-1]
    assert barrier(4) in found
    assert barrier(5) not in found


def stalling(dut, *, deadline=0, exclude_at=None, tuples=6):
    """Let source 1 fall silent after its first tuple; return what leaves, stamps and records."""
    bench = StreamBench(dut, deadline=1_000)
    layout = dut.i[0].payload.shape()
    times = range(10, 10 + 2 * tuples, 2)
    others = [n for n in range(dut.sources) if n != 1]
    for n in others:
        bench.source(dut.i[n], [send(layout, w) for w in [*map(tuple_at, times), leave()]])
    bench.source(dut.i[1], [send(layout, tuple_at(10, 1))])
    stamps, records = [], {}

    async def control(ctx):
        ctx.set(dut.deadline, deadline)
        while True:
            ctx.set(dut.exclude, 2 if bench.cycle == exclude_at else 0)
            await ctx.tick()
            records["stalls"] = [ctx.get(stalls) for stalls in dut.stalls]
            records["excluded"] = ctx.get(dut.excluded)

    bench.simulator.add_testbench(control, background=True)
    received = bench.sink(dut.o, 0, stamps=stamps)

    async def end(ctx):
        await ctx.tick().repeat(200)
        bench.done()

    bench.spawn(end)
    bench.run()
    found = words(dut.o.payload.shape(), received)
    kept = [(word, at) for word, at in zip(found, stamps, strict=True) if word.kind in KEPT]
    return [word for word, _ in kept], [at for _, at in kept], records


@pytest.mark.parametrize("sources", [2, 3])
def test_a_source_that_stalls_holds_the_others_and_is_counted(sources):
    found, _, records = stalling(ScaleGate(TIME, BODY, sources=sources))
    # Source 1 has shown 10, so source 0 may send 10, and nobody may send 12.
    assert [(word.time, word.source) for word in found] == [(10, 0), (10, 1)]
    assert records["excluded"] == 0
    assert records["stalls"][1] > 150
    assert sum(records["stalls"]) == records["stalls"][1]


@pytest.mark.parametrize("sources", [2, 3])
@pytest.mark.parametrize("how", [{"deadline": 20}, {"exclude_at": 40}])
def test_a_source_that_stalls_is_excluded_by_a_deadline_or_on_demand(sources, how):
    dut = ScaleGate(TIME, BODY, sources=sources)
    found, stamps, records = stalling(dut, **how)
    others = [n for n in range(sources) if n != 1]
    assert [(word.time, word.source) for word in found] == sorted(
        [(10, 1), *((time, n) for time in range(10, 22, 2) for n in others)]
    )
    assert records["excluded"] == 2
    gap = max(b - a for a, b in pairwise(stamps))
    if "deadline" in how:
        assert 20 < gap <= 20 + 2 * (sources + 4)
        assert 20 <= records["stalls"][1] <= 20 + dut.levels


def test_a_source_that_returns_goes_on_from_what_has_been_reached():
    dut = ScaleGate(TIME, BODY, sources=2, present=0b01)
    bench = StreamBench(dut, deadline=500)
    layout = dut.i[0].payload.shape()
    bench.source(dut.i[0], [send(layout, tuple_at(time)) for time in (10, 20)])
    received = bench.sink(dut.o, 6, weight=lambda bits: layout_kind(dut, bits) in KEPT)
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


@settings(max_examples=3, deadline=None)
@given(st.integers(2, 4), st.integers(0, 2**32))
def test_nothing_is_lost_while_sources_come_and_go(sources, seed):
    random = Random(seed)
    given_words = [
        [
            word
            for _ in range(3)
            for word in random_source(random, length=5, time_bits=3, body_bits=2)
        ]
        for _ in range(sources)
    ]
    dut = ScaleGate(3, 2, sources=sources, depth=2, present=random.getrandbits(sources))
    found = [
        word
        for word in run(dut, given_words, stalls=0.4, seed=seed)
        if word.kind is GateWordKind.TUPLE
    ]
    assert [word.time for word in found] == sorted(word.time for word in found)
    for number, source in enumerate(given_words):
        sent = [word for word in source if word.kind is GateWordKind.TUPLE]
        left = [word for word in found if word.source == number]
        assert [word.body for word in left] == [word.body for word in sent]
        assert all(word.late or word.time == own.time for word, own in zip(left, sent, strict=True))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sources": 0}, "A ScaleGate has 1 to 64 sources, not 0"),
        ({"sources": 65}, "A ScaleGate has 1 to 64 sources, not 65"),
        ({"sources": 2, "time_bits": 0}, "A ScaleGate needs at least one bit of time, not 0"),
        ({"sources": 2, "present": 4}, "Sources 0b100 are present, but there are only 2"),
    ],
)
def test_wrong_parameters_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        ScaleGate(**{"time_bits": 4, "shape": 4, **options})

# SPDX-License-Identifier: Apache-2.0
from itertools import pairwise
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st
import pytest

from hdl.scalegate.gate import ScaleGate
from sim.model.scale_gate import GateWordKind
from tests.halves import half
from tests.hdl.scalegate.gate_bench import KEPT, is_kept, run
from tests.hdl.scalegate.gate_words import (
    barrier,
    expected,
    leave,
    random_source,
    send,
    tuple_at,
    watermark,
    words,
)
from tests.hdl.stream_bench import StreamBench

TIME, BODY = 8, 6


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
    bench.sink(dut.o, 1, stamps=taken, weight=is_kept(dut))
    bench.run()
    assert len(taken) == 1 + (sources == 0)
    assert taken[-1] - max(sent) == dut.latency == 3 + 3 * dut.levels


@pytest.mark.parametrize("sources", [2, 4])
def test_a_watermark_takes_no_longer_than_a_tuple(sources):
    dut = ScaleGate(TIME, BODY, sources=sources)
    layout = dut.i[0].payload.shape()
    bench = StreamBench(dut, deadline=200)
    sent, taken = [], []
    bench.source(dut.i[0], [send(layout, tuple_at(5))], stamps=sent)
    for i in list(dut.i)[1:]:
        bench.source(i, [send(layout, watermark(9))], stamps=sent)
    bench.sink(dut.o, 1, stamps=taken, weight=is_kept(dut))
    bench.run()
    assert taken[-1] - max(sent) == dut.latency


def test_a_late_tuple_leaves_in_every_cycle():
    dut = ScaleGate(TIME, BODY, sources=1)
    layout = dut.i[0].payload.shape()
    bench = StreamBench(dut, deadline=200)
    stamps = []
    bench.source(dut.i[0], [send(layout, tuple_at(time)) for time in range(20, 0, -1)])
    received = bench.sink(dut.o, 20, stamps=stamps)
    bench.run()
    found = words(dut.o.payload.shape(), received)
    assert [(word.time, word.late) for word in found] == [(20, False)] + [(20, True)] * 19
    assert {b - a for a, b in pairwise(stamps)} == {1}


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

    found = run(dut, given_words, beside=[look])
    kept = [word for word in found if word.kind in KEPT]
    assert kept == expected(given_words)
    assert [word.body for word in kept if word.late] == [2]
    assert states["late"] == 1 << (sources - 1)


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

    run(dut, [[tuple_at(9), tuple_at(3), leave()], [leave()]], beside=[forget])
    assert states == [1, 0]


def test_barriers_with_different_bodies_are_told():
    dut = ScaleGate(TIME, BODY, sources=3)
    seen = []

    async def look(ctx):
        async for _, _, differ in ctx.tick().sample(dut.differ):
            seen.append(differ)

    run(dut, [[barrier(4), leave()]] * 3, beside=[look])
    assert not any(seen)
    seen.clear()
    dut = ScaleGate(TIME, BODY, sources=3)
    found = run(dut, [[barrier(4), leave()]] * 2 + [[barrier(5), leave()]], beside=[look])
    assert seen[-1]
    assert barrier(4) in found
    assert barrier(5) not in found


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

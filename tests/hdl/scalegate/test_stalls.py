# SPDX-License-Identifier: Apache-2.0
"""Who is waited for, is counted and is excluded."""

from itertools import pairwise
from random import Random

import pytest

from hdl.scalegate.gate import ScaleGate
from tests.hdl.scalegate.gate_bench import KEPT, run_timed
from tests.hdl.scalegate.gate_words import leave, send, tuple_at, watermark, words
from tests.hdl.stream_bench import StreamBench

TIME, BODY = 8, 6


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
        assert 20 < gap <= 20 + 2 * dut.latency
        assert 20 <= records["stalls"][1] <= 20 + dut.levels + 3


def counted(dut, timetables, *, cycles):
    """Run; return for each source the cycles of its words, and those that ``stalls`` counts."""
    found = [[] for _ in timetables]

    def look(bench):
        async def process(ctx):
            before = [0] * dut.sources
            async for _, _, *now in ctx.tick().sample(*dut.stalls):
                for number, (old, new) in enumerate(zip(before, now, strict=True)):
                    # The counter shows a cycle of the entry two cycles later.
                    found[number] += [bench.cycle - 3] * (new - old)
                before = now

        return process

    return run_timed(dut, timetables, cycles=cycles, beside=[look])[1], found


def random_words(random, count, *, marks):
    """Return tuples with rising times, of which a part is watermarks."""
    times = sorted(random.randrange(60) for _ in range(count))
    return [(watermark if random.random() < marks else tuple_at)(time) for time in times]


@pytest.mark.parametrize("sources", [2, 3, 5])
def test_sources_that_always_have_words_never_stall(sources):
    random = Random(sources)
    timetables = [
        [(word, 0) for word in random_words(random, 40, marks=0.3)] for _ in range(sources)
    ]
    sent, found = counted(ScaleGate(TIME, BODY, sources=sources), timetables, cycles=400)
    done = min(stamps[-1] for stamps in sent)
    assert done > 30
    assert [[cycle for cycle in cycles if cycle <= done] for cycles in found] == [[]] * sources


@pytest.mark.parametrize("later", [0, 1, 3])
@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0)])
def test_of_three_sources_only_the_silent_one_stalls(order, later):
    first, silent, second = order
    timetables = {first: [(tuple_at(3), 9)], silent: [], second: [(tuple_at(7), 9 + later)]}
    dut = ScaleGate(TIME, BODY, sources=3)
    _, found = counted(dut, [timetables[n] for n in range(3)], cycles=60)
    assert [len(cycles) > 30 for cycles in found] == [n == silent for n in range(3)]
    assert sum(len(cycles) for cycles in found) == len(found[silent])


@pytest.mark.parametrize("word", [tuple_at(3), watermark(3)])
def test_nobody_stalls_while_no_tuple_waits(word):
    timetables = [[(word, 9)], [(watermark(4), 9), (watermark(5), 30)]]
    _, found = counted(ScaleGate(TIME, BODY, sources=2), timetables, cycles=60)
    assert found == [[], []]


@pytest.mark.few(1)
@pytest.mark.parametrize("sources", [2, 3, 6])
def test_no_source_stalls_while_its_word_is_on_the_way_to_its_merge(sources):
    random = Random(sources)
    timetables = []
    for _ in range(sources):
        at, timetable = 0, []
        for word in random_words(random, 25, marks=0.4):
            at += random.choice((1, 2, 5, 20))
            timetable.append((word, at))
        timetables.append(timetable)
    sent, found = counted(ScaleGate(TIME, BODY, sources=sources), timetables, cycles=600)
    assert any(found)
    for stamps, cycles in zip(sent, found, strict=True):
        # Three cycles through the entry, two until the merge shows it, and one for the answer.
        early = [at for at in cycles if any(stamp < at < stamp + 6 for stamp in stamps)]
        assert not early

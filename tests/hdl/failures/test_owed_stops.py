# SPDX-License-Identifier: Apache-2.0
"""A region that stops at any place: every stop comes once, from the region or in its place."""

import random

from amaranth.hdl import Value
import pytest

from hdl.failures.core_gate import OwedStops
from hdl.parameters import JoinParameters
from hdl.words.results import ResultKind, node_result
from tests.hdl.gathering import punctuation, region_pair
from tests.hdl.stream_bench import StreamBench

PARAMETERS = JoinParameters.of(cores=3, sub_window=100, probe_bits=4)
PARAMETERS = PARAMETERS.with_(failure_cycles=PARAMETERS.longest_silence)
STAR, MARK = ResultKind.STAR, ResultKind.MARK


def script(seed, groups):
    """Return entries, and the results of each, of a working region."""
    generator = random.Random(seed)
    entries, results = [], []
    for _ in range(groups):
        star, mark = generator.choice([(1, 0), (1, 0), (0, 1), (1, 1)])
        flags = {name: generator.getrandbits(1) for name in ("disorder", "illegal", "free")}
        own = [region_pair(generator.randrange(99)) for _ in range(star * generator.randrange(4))]
        own += [
            punctuation(kind, **flags)
            for kind, is_there in ((STAR, star), (MARK, mark))
            if is_there
        ]
        entries.append({"star": star, "mark": mark, **flags})
        results.append(own)
    return entries, results


def number(result):
    return node_result(PARAMETERS, 0).const(result).as_value().value


def stops_of(results):
    return [result for result in results if result["kind"] != ResultKind.PAIR]


def run(entries, shown, count, *, fail_after=None, stalls=0.0, seed=0):
    """Run the component; the region shows ``shown`` and fails after so many results.

    The core is masked before the first entry that is excused.
    """
    dut = OwedStops(PARAMETERS)
    bench = StreamBench(dut, deadline=5_000, stalls=stalls, seed=seed)
    sent = []

    async def owe(ctx):
        for entry in entries:
            while not ctx.get(dut.room) or bench.pauses():
                await ctx.tick()
            ctx.set(dut.masked, entry.get("excused", 0))
            ctx.set(dut.stop, entry)
            ctx.set(dut.add, 1)
            await ctx.tick()
            ctx.set(dut.add, 0)
        bench.done()

    async def fail(ctx):
        while len(sent) < len(shown):
            await ctx.tick()
        ctx.set(dut.failed, 1)
        bench.done()

    async def show(ctx):
        await ctx.tick().repeat(2)  # a region needs some cycles after a word
        for result in shown:
            while bench.pauses():
                await ctx.tick()
            ctx.set(Value.cast(dut.i.payload), number(result))
            ctx.set(dut.i.valid, 1)
            await ctx.tick().until(dut.i.ready)
            ctx.set(dut.i.valid, 0)
            sent.append(result)
        bench.done()

    bench.spawn(owe)
    bench.spawn(show)
    if fail_after is not None:
        bench.spawn(fail)
    received = bench.sink(dut.o, count)
    bench.run(extra_cycles=30)
    return received


@pytest.mark.few(3)
@pytest.mark.parametrize("stalls", [0.0, 0.5])
@pytest.mark.parametrize("seed", range(3))
def test_the_results_of_a_working_region_pass_unchanged(stalls, seed):
    entries, results = script(seed, 50)
    shown = [result for own in results for result in own]
    received = run(entries, shown, len(shown), stalls=stalls, seed=seed)
    assert received == [number(result) for result in shown]


@pytest.mark.parametrize("stalls", [0.0, 0.5])
@pytest.mark.parametrize("place", range(12))
def test_after_a_failure_the_stops_that_are_owed_come_with_the_fault(stalls, place):
    entries, results = script(place, 8)
    every = [result for own in results for result in own]
    shown = every[:place]
    missing = stops_of(every[place:])
    for stop in missing:
        stop["body"]["punctuation"]["failed"] = 1
    expected = [number(result) for result in [*shown, *missing]]
    received = run(entries, shown, len(expected), fail_after=place, stalls=stalls, seed=place)
    assert received == expected


def test_an_excused_stop_is_sent_without_the_fault_though_the_region_works():
    entries, results = script(5, 10)
    shown = [result for own in results[:5] for result in own]
    rest = stops_of([result for own in results[5:] for result in own])
    entries = [{**entry, "excused": n >= 5} for n, entry in enumerate(entries)]
    expected = [number(result) for result in [*shown, *rest]]
    assert run(entries, shown, len(expected), stalls=0.3) == expected


@pytest.mark.parametrize(
    ("entries", "shown", "wrong"),
    [
        ([], STAR, 1),
        ([{"star": 1}], STAR, 0),
        ([{"star": 1}], MARK, 1),
        ([{"mark": 1}], STAR, 1),
        ([{"star": 1, "mark": 1}], MARK, 1),
    ],
)
def test_a_stop_that_is_not_owed_is_held_and_told(entries, shown, wrong):
    dut = OwedStops(PARAMETERS)
    bench = StreamBench(dut, deadline=100)

    async def look(ctx):
        for entry in entries:
            ctx.set(dut.stop, entry)
            ctx.set(dut.add, 1)
            await ctx.tick()
            ctx.set(dut.add, 0)
        assert ctx.get(dut.late) == ctx.get(dut.owes) == bool(entries)
        ctx.set(Value.cast(dut.i.payload), number(punctuation(shown)))
        ctx.set(dut.i.valid, 1)
        assert ctx.get(dut.wrong) == wrong
        assert ctx.get(dut.o.valid) == 1 - wrong
        assert ctx.get(dut.blocked) == 1 - wrong
        assert not ctx.get(dut.late)
        bench.done()

    bench.spawn(look)
    bench.run()


def test_results_pass_in_the_same_cycle_and_one_in_every_cycle():
    entries = [{"star": 1}] * 30
    dut = OwedStops(PARAMETERS)
    bench = StreamBench(dut, deadline=200)

    async def owe(ctx):
        ctx.set(dut.stop, {"star": 1})
        ctx.set(dut.add, 1)
        await ctx.tick().repeat(len(entries))
        ctx.set(dut.add, 0)
        bench.done()

    sent, taken = [], []

    async def later(ctx):
        await ctx.tick().repeat(2)

    bench.spawn(owe)
    bench.source(dut.i, [number(punctuation(STAR))] * 29, stamps=sent)
    bench.sink(dut.o, 29, stamps=taken)
    bench.run()
    assert dut.latency == 0
    assert taken == sent
    assert taken[-1] - taken[0] == 28


def word(parameters, kind, **flags):
    """Return a star or mark of a region as a number."""
    body = {"punctuation": flags}
    return node_result(parameters, 0).const({"kind": kind, "body": body}).as_value().value


def test_stars_of_rounds_pass_and_are_not_owed():
    """The star of a round is neither the star that is owed nor wrong; the mark has its own flag."""
    parameters = PARAMETERS.with_(rounds=True)
    dut = OwedStops(parameters)
    bench = StreamBench(dut, deadline=200)
    shown = [
        word(parameters, STAR, inner=1),
        word(parameters, STAR, inner=1),
        word(parameters, STAR, inner=0),
        word(parameters, MARK, inner=1),
    ]

    async def work(ctx):
        for entry in ({"star": 1}, {"mark": 1, "inner": 1}, {"star": 1, "mark": 1, "inner": 1}):
            ctx.set(dut.stop, entry)
            ctx.set(dut.add, 1)
            await ctx.tick()
        ctx.set(dut.add, 0)
        for result in [*shown, shown[0]]:
            ctx.set(Value.cast(dut.i.payload), result)
            ctx.set(dut.i.valid, 1)
            assert not ctx.get(dut.wrong)
            await ctx.tick().until(dut.i.ready)
            ctx.set(dut.i.valid, 0)
        ctx.set(dut.failed, 1)
        bench.done()

    bench.spawn(work)
    received = bench.sink(dut.o, 7)
    bench.run(extra_cycles=10)
    own = [word(parameters, STAR, failed=1), word(parameters, MARK, failed=1, inner=1)]
    assert received == [*shown, shown[0], *own]

# SPDX-License-Identifier: Apache-2.0
import random

from amaranth.hdl import Value
import pytest

from hdl.scan.layouts import match_layout
from hdl.scan.serializers import MatchQueue
from hdl.words.results import node_result
from tests.halves import half
from tests.hdl.input_words import integer
from tests.hdl.scan_rows import as_tuple, by_probe, queue_parameters, random_rows
from tests.hdl.stream_bench import StreamBench


@pytest.mark.parametrize(
    ("lanes", "probes", "stalls"), half([(1, 1), (2, 1), (1, 3), (3, 2), (2, 4)], [0.0, 0.5])
)
def test_rows_become_words_in_order_and_none_is_lost_when_rows_cannot_be_refused(
    lanes, probes, stalls
):
    parameters = queue_parameters(lanes, probes)
    dut = MatchQueue(parameters, in_flight=4, bits=parameters.engine.probes)
    rows, words = random_rows(parameters, random.Random(lanes * 10 + probes), 60)
    bench = StreamBench(dut, deadline=20_000, stalls=stalls, seed=probes)

    async def scanner(ctx):
        # Like the scanner: rows keep coming for some cycles after `room` fell.
        seen = [True] * 3
        waiting = iter(rows)
        row = next(waiting)
        while row is not None:
            seen = [bool(ctx.get(dut.room)), *seen[:-1]]
            ctx.set(dut.matches_valid, seen[-1])
            ctx.set(dut.matches, by_probe(parameters, row))
            await ctx.tick()
            if seen[-1]:
                row = next(waiting, None)
        ctx.set(dut.matches_valid, 0)
        bench.done()

    bench.spawn(scanner)
    received = bench.sink(dut.results, len(words))
    bench.run(extra_cycles=30)
    layout = node_result(parameters, 0)
    assert [as_tuple(layout.from_bits(word)) for word in received] == words


@pytest.mark.parametrize("lanes", [1, 2])
def test_latency_and_one_word_per_cycle(lanes):
    parameters = queue_parameters(lanes, 4)
    dut = MatchQueue(parameters, in_flight=4, bits=parameters.engine.probes)
    assert dut.latency == 3 + (3 if lanes > 1 else 0)
    bench = StreamBench(dut, deadline=200)
    start = []

    async def scanner(ctx):
        row = {"matches": [0xF] * lanes, "row": 1, "last": 0, "ending": {"count": 4}}
        ctx.set(
            Value.cast(dut.matches),
            integer(match_layout(parameters, parameters.engine.probes), by_probe(parameters, row)),
        )
        ctx.set(dut.matches_valid, 1)
        await ctx.tick()
        start.append(bench.cycle - 1)
        await ctx.tick().repeat(2)
        ctx.set(dut.matches_valid, 0)
        bench.done()

    stamps = []
    bench.spawn(scanner)
    bench.sink(dut.results, 12 * lanes, stamps=stamps)
    bench.run()
    first = start[0] + dut.latency
    assert stamps == list(range(first, first + 12 * lanes))


def test_without_room_there_is_place_for_the_rows_in_flight():
    parameters = queue_parameters(2, 1)
    dut = MatchQueue(parameters, in_flight=5, bits=1, depth=8)
    bench = StreamBench(dut, deadline=200)
    row = {"matches": [1], "row": 1, "last": 0, "ending": {"count": 1}}
    sent = []

    async def scanner(ctx):
        ctx.set(dut.matches, row)
        ctx.set(dut.matches_valid, 1)
        while ctx.get(dut.room):
            await ctx.tick()
            sent.append(1)
        for _ in range(dut.in_flight - 1):  # one more was sent while `room` was on its way
            await ctx.tick()
            sent.append(1)
        ctx.set(dut.matches_valid, 0)
        await ctx.tick().repeat(5)
        assert not ctx.get(dut.room)
        ctx.set(dut.results.ready, 1)
        bench.done()

    bench.spawn(scanner)
    taken = []

    async def count(ctx):
        async for *_, valid, ready in ctx.tick().sample(dut.results.valid, dut.results.ready):
            taken.extend([1] * (valid & ready))

    bench.simulator.add_testbench(count, background=True)
    bench.run(extra_cycles=40)
    assert len(taken) == len(sent)


def test_a_queue_smaller_than_the_rows_in_flight_is_refused():
    with pytest.raises(ValueError, match="A queue of 4 rows cannot hold 4 rows in flight"):
        MatchQueue(queue_parameters(1, 1), in_flight=4, bits=1, depth=4)

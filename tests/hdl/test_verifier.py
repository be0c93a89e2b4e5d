# SPDX-License-Identifier: Apache-2.0
"""The verifier and its table of passes against plain lists."""

import random

from amaranth.sim import Simulator
import pytest

from hdl.parameters import JoinParameters, KeyField
from hdl.scan.layouts import lane_matches_layout
from hdl.scan.pass_table import PassTable
from hdl.scan.verifier import Verifier
from tests.hdl.input_words import integer
from tests.hdl.stream_bench import StreamBench


def digest_parameters(*, lanes, probes=3):
    """Parameters whose keys have a rest of six bits."""
    return JoinParameters(
        lanes=lanes, probes=probes, sub_window=9 * lanes, comparator="equality",
        keys=(KeyField(name="x", bits=8),), digest_bits=2,
    )  # fmt: skip


class Passes:
    """Rests of stored keys and of probes, lanes with matches, and what is left of them."""

    def __init__(self, parameters, generator, number):
        self.parameters = parameters
        rows, lanes, probes = parameters.ring_rows, parameters.lanes, parameters.probes
        few = [generator.randrange(64) for _ in range(4)]
        self.stored = [[generator.choice(few) for _ in range(lanes)] for _ in range(rows)]
        self.probes = [[generator.choice(few) for _ in range(probes)] for _ in range(number)]
        self.firsts = [generator.randrange(2 * rows) for _ in range(number)]
        self.lanes, self.left = [], []
        for rests in self.probes:
            length = generator.randrange(1, 6)
            for n in range(length):
                lane, row = generator.randrange(lanes), generator.randrange(rows)
                word = {
                    "matches": generator.randrange(1 << probes),
                    "lane": lane,
                    "row": row,
                    "last": n == length - 1,
                    "ending": {"count": probes, "star": generator.randrange(2)},
                }
                same = sum((rest == self.stored[row][lane]) << p for p, rest in enumerate(rests))
                self.lanes.append(word)
                if word["last"] or word["matches"] & same:
                    self.left.append({**word, "matches": word["matches"] & same})


def verify(passes, *, stalls=0.0, stamps=None):
    """Store the keys, then begin passes when there is room, and verify their lanes."""
    parameters = passes.parameters
    dut = Verifier(parameters)
    layout = lane_matches_layout(parameters)
    bench = StreamBench(dut, deadline=20_000, stalls=stalls, seed=7)
    began = []

    async def fill(ctx):
        for row, keys in enumerate(passes.stored):
            for lane, key in enumerate(keys):
                ctx.set(dut.store, 1)
                ctx.set(dut.place, {"row": row, "lane": lane})
                ctx.set(dut.key, key)
                await ctx.tick()
        ctx.set(dut.store, 0)
        for rests, first in zip(passes.probes, passes.firsts, strict=True):
            for n, rest in enumerate(rests):
                ctx.set(dut.add_to, 1 << n)
                ctx.set(dut.rest, rest)
                await ctx.tick()
            ctx.set(dut.add_to, 0)
            while not ctx.get(dut.room):
                await ctx.tick()
            ctx.set(dut.first, first)
            ctx.set(dut.began, 1)
            await ctx.tick()
            ctx.set(dut.began, 0)
            began.append(first)
        bench.done()

    async def send(ctx):
        ended = 0
        for word in passes.lanes:
            while len(began) <= ended or bench.pauses():
                ctx.set(dut.i.valid, 0)
                await ctx.tick()
            assert ctx.get(dut.pending)
            ctx.set(dut.i.payload, word)
            ctx.set(dut.i.valid, 1)
            _, _, ready = await ctx.tick().sample(dut.i.ready)
            while not ready:
                _, _, ready = await ctx.tick().sample(dut.i.ready)
            if stamps:
                stamps[0].append(bench.cycle - 1)
            ended += word["last"]
        ctx.set(dut.i.valid, 0)
        bench.done()

    async def watch(ctx):
        oldest = []
        while True:
            _, _, pending, first = await ctx.tick().sample(dut.pending, dut.oldest)
            if pending:
                oldest.append(first)
            assert set(oldest) <= set(passes.firsts)

    bench.simulator.add_testbench(watch, background=True)
    bench.spawn(fill)
    bench.spawn(send)
    received = bench.sink(dut.o, len(passes.left), stamps=stamps and stamps[1])
    bench.run(extra_cycles=20)
    return [integer(layout, word) for word in passes.left], received


@pytest.mark.parametrize(("lanes", "probes"), [(1, 1), (2, 3), (5, 2), (9, 4)])
@pytest.mark.parametrize("stalls", [0.0, 0.5, 0.95])
def test_what_is_left_of_a_lane_are_the_probes_with_the_same_rest(lanes, probes, stalls):
    parameters = digest_parameters(lanes=lanes, probes=probes)
    expected, received = verify(Passes(parameters, random.Random(lanes), 40), stalls=stalls)
    assert received == expected


@pytest.mark.parametrize("lanes", [1, 6])
def test_latency_and_a_lane_per_cycle(lanes):
    parameters = digest_parameters(lanes=lanes)
    passes = Passes(parameters, random.Random(2), 1)
    lane = {"matches": 7, "lane": lanes - 1, "row": 3, "ending": {"count": 3}}
    passes.stored[3][lanes - 1] = passes.probes[0][1]
    passes.lanes = [{**lane, "last": n == 39} for n in range(40)]
    same = sum((rest == passes.probes[0][1]) << n for n, rest in enumerate(passes.probes[0]))
    passes.left = [{**lane, "matches": same} for lane in passes.lanes]
    sent, taken = [], []
    expected, received = verify(passes, stamps=(sent, taken))
    assert received == expected
    assert sent == list(range(sent[0], sent[0] + 40))
    assert taken == [cycle + Verifier(parameters).latency for cycle in sent]


def test_a_queue_smaller_than_the_lanes_in_flight_is_refused():
    with pytest.raises(ValueError, match="A queue of 7 lanes cannot hold 7 in flight"):
        Verifier(digest_parameters(lanes=2), depth=7)


def test_a_table_has_room_until_all_places_but_one_are_those_of_passes_under_way():
    dut = PassTable(digest_parameters(lanes=1, probes=2))
    generator = random.Random(5)
    under_way, seen = [], []

    async def bench(ctx):
        for _ in range(2_000):
            full = generator.random() < 0.02  # now and then, nothing ends for long
            for _ in range(40 if full else 1):
                rests = [generator.randrange(64) for _ in range(2)]
                for n, rest in enumerate(rests):
                    ctx.set(dut.add_to, 1 << n)
                    ctx.set(dut.rest, rest)
                    await ctx.tick()
                ctx.set(dut.add_to, 0)
                began = bool(ctx.get(dut.room))
                ended = bool(under_way) and not full and generator.random() < 0.6
                first = generator.randrange(16)
                ctx.set(dut.first, first)
                ctx.set(dut.began, began)
                ctx.set(dut.ended, ended)
                await ctx.tick()
                ctx.set(dut.began, 0)
                ctx.set(dut.ended, 0)
                if ended:
                    under_way.pop(0)
                if began:
                    under_way.append((first, rests))
                seen.append(len(under_way))
                assert ctx.get(dut.pending) == bool(under_way)
                if under_way:
                    assert ctx.get(dut.oldest) == under_way[0][0]
                    assert [ctx.get(rest) for rest in dut.rests] == under_way[0][1]

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    assert max(seen) == PassTable.PASSES - 1

# SPDX-License-Identifier: Apache-2.0
"""What both kinds of cores are to their chain: flags of words, registers of lanes, results."""

import random
from types import SimpleNamespace

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
import pytest

from bench.handshake import HANDSHAKE, LOW_LATENCY
from bench.handshake.layouts import (
    LaneKind,
    chain_result,
    connect_lanes,
    connect_results,
    core_members,
    lane_flags,
    lane_word,
    match_layout,
)
from hdl.parameters import JoinParameters
from hdl.words.prepared import activity_layout
from tests.hdl.input_words import integer
from tests.hdl.stream_bench import StreamBench

CHAINS = (HANDSHAKE, LOW_LATENCY)
#: The flags of a word of each kind; of a fence, without and with ``restart``.
FLAGS = {
    (LaneKind.TUPLE, 0): {"tuple"},
    (LaneKind.TUPLE, 1): {"tuple"},
    (LaneKind.EXPIRE, 1): {"expire"},
    (LaneKind.FENCE, 0): {"fence"},
    (LaneKind.FENCE, 1): {"fence", "restart"},
    (LaneKind.ACK, 1): {"ack"},
    (LaneKind.BOUND, 1): set(),
}
NAMES = ("tuple", "expire", "fence", "ack", "restart")


def parameters_of(architecture, cores=3):
    return JoinParameters.of(cores=cores, sub_window=4, architecture=architecture)


class Relay(wiring.Component):
    """A core that sends every word on and shows the flags of R's word."""

    def __init__(self, parameters):
        self.parameters = parameters
        lane = stream.Signature(lane_word(parameters))
        super().__init__(
            {
                "r_i": In(lane), "s_i": In(lane), "r_o": Out(lane), "s_o": Out(lane),
                "flags": Out(len(NAMES)), "moved": Out(1),
            }
        )  # fmt: skip

    def elaborate(self, platform):
        m = Module()
        lanes, outputs = connect_lanes(m, self, flags=lane_flags)
        for lane, output in zip(lanes, outputs, strict=True):
            m.d.comb += [
                output.valid.eq(lane.valid),
                output.payload.eq(lane.payload.word),
                lane.ready.eq(output.ready),
            ]
        for n, name in enumerate(NAMES):
            m.d.comb += self.flags[n].eq(lanes[0].payload[name])
        m.d.comb += self.moved.eq(lanes[0].valid & lanes[0].ready)
        return m


def random_words(parameters, generator, count):
    """Random words of a lane, with their kinds and ``restart``."""
    layout = lane_word(parameters)
    chosen = [generator.choice(list(FLAGS)) for _ in range(count)]
    words = []
    for kind, restart in chosen:
        key = {field.name: generator.getrandbits(field.bits) for field in parameters.keys}
        body = {"tuple": {"key": key}}
        words.append(integer(layout, {"kind": kind, "restart": restart, "body": body}))
    return chosen, words


@pytest.mark.parametrize("architecture", CHAINS)
@pytest.mark.parametrize(("stalls", "seed"), [(0.0, 0), (0.3, 1), (0.7, 2)])
def test_lanes_pass_every_word_in_order_with_its_flags(architecture, stalls, seed):
    parameters, generator = parameters_of(architecture), random.Random(seed)
    dut = Relay(parameters)
    bench = StreamBench(dut, deadline=2_000, stalls=stalls, seed=seed)
    kinds, of_r = random_words(parameters, generator, 60)
    _, of_s = random_words(parameters, generator, 50)
    bench.source(dut.r_i, of_r)
    bench.source(dut.s_i, of_s)
    to_left, to_right = bench.sink(dut.r_o, len(of_r)), bench.sink(dut.s_o, len(of_s))
    flags = []

    async def watch(ctx):
        while True:
            *_, moved, value = await ctx.tick().sample(dut.moved, dut.flags)
            if moved:
                flags.append({name for n, name in enumerate(NAMES) if value >> n & 1})

    bench.simulator.add_testbench(watch, background=True)
    bench.run()
    assert (to_left, to_right) == (of_r, of_s)
    assert flags == [FLAGS[kind] for kind in kinds]


def test_a_word_takes_two_cycles_from_core_to_core_and_one_moves_per_cycle():
    parameters = parameters_of(CHAINS[0])
    dut = Relay(parameters)
    bench = StreamBench(dut, deadline=200)
    entered, left = [], []
    _, words = random_words(parameters, random.Random(0), 20)
    bench.source(dut.s_i, words, stamps=entered)
    bench.sink(dut.s_o, len(words), stamps=left)
    bench.run()
    assert [out - into for into, out in zip(entered, left, strict=True)] == [2] * 20
    assert left == list(range(left[0], left[0] + 20))


class Finding(wiring.Component):
    """A core of which only the results of a segment are there, at the port ``matches``."""

    def __init__(self, parameters, side):
        self.parameters = parameters
        self.side = side
        super().__init__(
            {
                "matches": In(stream.Signature(match_layout(parameters))),
                "busy": In(activity_layout(parameters)),
                "results": Out(stream.Signature(chain_result(parameters))).array(2),
                "activity": Out(activity_layout(parameters)).array(2),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.d.sync += Signal().eq(1)
        segment = SimpleNamespace(results=self.matches, activity=self.busy)
        connect_results(m, self, self.side, segment)
        return m


@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize("stalls", [0.0, 0.5])
def test_a_match_names_the_tuple_that_passed_and_the_one_that_was_kept(side, stalls):
    parameters = parameters_of(CHAINS[1])
    dut = Finding(parameters, side)
    bench = StreamBench(dut, deadline=300, stalls=stalls, seed=side)
    matches = [{"mark": n % 5 == 4, "stored": 100 + n, "passing": 3 * n} for n in range(20)]
    bench.source(dut.matches, [integer(match_layout(parameters), match) for match in matches])
    received = bench.sink(dut.results[side], len(matches))
    nothing = bench.sink(dut.results[1 - side], 0)
    bench.run()
    expected = []
    for match in matches:
        own, other = "rs"[side], "sr"[side]
        pair = {own: match["passing"], other: match["stored"]}
        expected.append({"mark": match["mark"], "side": side, "pair": pair})
    assert received == [integer(chain_result(parameters), result) for result in expected]
    assert nothing == []


@pytest.mark.parametrize("side", [0, 1])
def test_what_a_segment_does_is_counted_for_the_side_that_passes(side):
    dut = Finding(parameters_of(CHAINS[1]), side)
    bench = StreamBench(dut, deadline=20)

    async def look(ctx):
        ctx.set(dut.busy, {"comparisons": 1, "busy": 1, "stalled": 0})
        await ctx.tick()
        shown = [ctx.get(activity).as_value().value for activity in dut.activity]
        layout = activity_layout(dut.parameters)
        expected = [0, 0]
        expected[side] = integer(layout, {"comparisons": 1, "busy": 1})
        assert shown == expected
        bench.done()

    bench.spawn(look)
    bench.run()


@pytest.mark.parametrize("cores", [1, 2, 3, 5])
def test_only_cores_of_the_handshake_join_tell_each_other_what_they_hold(cores):
    members = {name: core_members(parameters_of(name, cores)) for name in CHAINS}
    only = set(members[HANDSHAKE]) - set(members[LOW_LATENCY])
    assert only == {"held_i", "held_o"}
    for some in members.values():
        assert some["position"].shape == range(max(2, cores))
        assert some["results"].dimensions == some["activity"].dimensions == (2,)
        assert {some[name].flow for name in ("r_i", "s_i")} == {In}
        assert {some[name].flow for name in ("r_o", "s_o")} == {Out}

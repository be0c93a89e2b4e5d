# SPDX-License-Identifier: Apache-2.0
import random

import pytest

from hdl.memory.columns import KeyColumn
from hdl.reducing import MatchReducer
from hdl.scan.layouts import lane_matches_layout
from hdl.words.results import node_result
from hdl.words.values import MatchKind
from tests.hdl.input_words import integer
from tests.hdl.matches.match_words import match_parameters, punctuation, reduced
from tests.hdl.stream_bench import StreamBench


def random_groups(parameters, generator, count, memory):
    """Lanes of groups with the values in ``memory``, and what the words of each group say."""
    lanes, expected = [], []
    number = 0
    most = parameters.window.sub_window
    for _ in range(count):
        probes = generator.randrange(parameters.engine.probes + 1)
        star, mark = generator.random() < 0.5, generator.random() < 0.2
        matched = [[] for _ in range(probes)]
        length = generator.randrange(1, min(9, most))
        for n in range(length):
            place = generator.choice(list(memory))
            bits = generator.choice([0, 1, (1 << probes) - 1, generator.getrandbits(8)])
            bits &= (1 << probes) - 1
            flags = {"overflow": generator.getrandbits(1), "disorder": generator.getrandbits(1)}
            ending = {"count": probes, "star": star, "mark": mark, "punctuation": flags}
            lanes.append(
                {"matches": bits, "lane": place[0], "row": place[1], "last": n == length - 1,
                 "ending": ending}
            )  # fmt: skip
            for probe in range(probes):
                if bits >> probe & 1:
                    matched[probe].append(memory[place])
        for values in matched:
            expected.append((number % 8, reduced(parameters, values)))
            number += 1
        faults = (flags["overflow"], flags["disorder"], 0)
        if star:
            expected.append((MatchKind.STAR, *faults))
            number = 0
        expected += [(MatchKind.MARK, *faults)] * mark
    return lanes, expected


def as_tuple(word):
    """What a word says."""
    if word.kind != MatchKind.VALUE:
        return punctuation(word)
    value = word.body.value
    return value.probe, {name: value[name] for name in ("count", "total", "least", "most")}


def reduce(parameters, lanes, count, memory, *, stalls=0.0, seed=0, stamps=None):
    """Send lanes to a reducer beside a memory of values; return its words, and reads of ends."""
    dut = MatchReducer(parameters)
    bench = StreamBench(dut, deadline=20_000, stalls=stalls, seed=seed)
    layout = lane_matches_layout(parameters, parameters.engine.probes)
    finished = []

    async def column(ctx):
        waiting = [0] * (KeyColumn.LATENCY - 1)
        while True:
            *_, lane, row, ends = await ctx.tick().sample(
                dut.place.lane, dut.place.row, dut.finished
            )
            if ends:
                finished.append(bench.cycle - 1)
            waiting.append(memory.get((lane, row), 0))
            ctx.set(dut.value, waiting.pop(0))

    bench.simulator.add_testbench(column, background=True)
    bench.source(dut.i, [integer(layout, lane) for lane in lanes], stamps=stamps and stamps[0])
    received = bench.sink(dut.o, count, stamps=stamps and stamps[1])
    bench.run(extra_cycles=20)
    return [as_tuple(node_result(parameters, 0).from_bits(word)) for word in received], finished


@pytest.mark.few(4)
@pytest.mark.parametrize("probes", [1, 2, 3, 8])
@pytest.mark.parametrize("stalls", [0.0, 0.4])
def test_each_probe_gets_one_value_of_all_its_lanes_then_star_and_mark(probes, stalls):
    parameters = match_parameters(probes=probes, lanes=3)
    generator = random.Random(probes)
    places = [(lane, row) for lane in range(3) for row in range(8)]
    memory = {place: generator.randrange(-32, 32) for place in places}
    lanes, expected = random_groups(parameters, generator, 60, memory)
    received, finished = reduce(
        parameters, lanes, len(expected), memory, stalls=stalls, seed=probes
    )
    assert received == expected
    assert len(finished) == 60


def test_the_widths_hold_the_extremes_of_a_full_sub_window():
    parameters = match_parameters(probes=2, value_bits=3, sub_window=16)
    for value in (-4, 3):
        ending = {"count": 2, "star": 0, "mark": 0}
        lanes = [
            {"matches": 3, "lane": 0, "row": n, "last": n == 15, "ending": ending}
            for n in range(16)
        ]
        received, _ = reduce(parameters, lanes, 2, {(0, n): value for n in range(16)})
        wanted = {"count": 16, "total": 16 * value, "least": value, "most": value}
        assert received == [(0, wanted), (1, wanted)]


def test_a_lane_takes_one_cycle_whoever_matches_it_and_a_group_as_many_as_it_has_words():
    parameters = match_parameters(probes=4)
    dut = MatchReducer(parameters)
    ending = {"count": 4, "star": 0, "mark": 0}
    lanes = [
        {"matches": 0xF, "lane": 0, "row": n % 8, "last": n % 8 == 7, "ending": ending}
        for n in range(80)
    ]
    sent, taken = [], []
    reduce(parameters, lanes, 40, {}, stamps=(sent, taken))
    assert sent == list(range(sent[0], sent[0] + 80))
    assert taken[0] == sent[7] + dut.latency
    assert taken == [taken[0] + 8 * (n // 4) + n % 4 for n in range(40)]
    sent, taken = [], []
    short = [{**lane, "last": True} for lane in lanes[:20]]  # fewer lanes than words
    reduce(parameters, short, 80, {}, stamps=(sent, taken))
    assert taken == list(range(sent[0] + dut.latency, sent[0] + dut.latency + 80))

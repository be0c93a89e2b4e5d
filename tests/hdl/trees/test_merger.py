# SPDX-License-Identifier: Apache-2.0
from collections import Counter

from amaranth.hdl import Value
import pytest

from hdl.trees.merger import Merger, MergerTree
from hdl.words.results import ResultKind, node_result
from tests.halves import half
from tests.hdl.gathering import (
    gathering_parameters,
    punctuation,
    random_groups,
    region_pair,
    region_words,
)
from tests.hdl.stream_bench import StreamBench

STAR, MARK = ResultKind.STAR, ResultKind.MARK


def core_digits(core, fan_in, levels):
    """A core number as the mergers compose it."""
    bits = (fan_in - 1).bit_length()
    return sum((core // fan_in**level % fan_in) << (bits * level) for level in range(levels))


def gather(dut, parameters, port_words, count, *, stalls=0.0, seed=0, stamps=None):
    """Run a merger or tree; return its words as layout constants."""
    bench = StreamBench(dut, deadline=20_000, stalls=stalls, seed=seed)
    for i, words in zip(dut.i, port_words, strict=True):
        bench.source(i, region_words(parameters, words), stamps=stamps and stamps[0])
    received = bench.sink(dut.o, count, stamps=stamps and stamps[1])
    bench.run()
    layout = dut.o.payload.shape()
    return [layout.from_bits(word) for word in received]


@pytest.mark.few(4)
@pytest.mark.parametrize(
    ("cores", "fan_in", "stalls"),
    half([1, 2, 3, 4, 7, 16], [2, 3, 4], [0.0, 0.4], of=4),
)
def test_between_stars_pairs_come_in_the_order_of_cores(cores, fan_in, stalls):
    parameters = gathering_parameters(cores, fan_in)
    dut = MergerTree(parameters)
    groups = random_groups(cores, ports=cores, groups=10)
    port_words = [
        [w for rows in port for w in [*(region_pair(r) for r in rows), punctuation(STAR)]]
        for port in groups
    ]
    expected = []
    for n in range(10):
        for core in range(cores):
            expected += [(core_digits(core, fan_in, dut.levels), row) for row in groups[core][n]]
        expected.append("star")
    received = gather(dut, parameters, port_words, len(expected), stalls=stalls, seed=cores)
    assert [
        "star" if word.kind == STAR else (word.body.pair.core, word.body.pair.row)
        for word in received
    ] == expected


@pytest.mark.few(2)
@pytest.mark.parametrize("ports", [1, 2, 3, 4])
def test_an_error_of_any_port_is_in_the_merged_star(ports):
    parameters = gathering_parameters(4, 4)
    for faulty in range(ports):
        dut = Merger(parameters, level=0, ports=ports)
        words = [
            [punctuation(STAR, overflow=n == faulty, disorder=1, illegal=1)] for n in range(ports)
        ]
        (star,) = gather(dut, parameters, words, 1)
        assert star.body.punctuation.overflow == 1
        assert star.body.punctuation.disorder == 1
        assert star.body.punctuation.illegal == 1


@pytest.mark.parametrize(
    ("cores", "fan_in"),
    [(1, 2), (2, 2), (3, 2), *(pytest.param(*s, marks=pytest.mark.long) for s in [(7, 3), (5, 4)])],
)
def test_a_star_names_the_first_core_that_has_failed(cores, fan_in):
    parameters = gathering_parameters(cores, fan_in, gates=True)
    for failed in [set(), {0}, {cores - 1}, {cores // 2, cores - 1}, set(range(cores))]:
        dut = MergerTree(parameters)
        words = [[punctuation(kind, failed=core in failed) for kind in (STAR, MARK)]
                 for core in range(cores)]  # fmt: skip
        for stop in gather(dut, parameters, words, 2, stalls=0.2):
            told = stop.body.punctuation
            assert told.failed == bool(failed)
            if failed:
                assert told.failed_core == core_digits(min(failed), fan_in, dut.levels)


@pytest.mark.parametrize(
    ("cores", "fan_in"), [(1, 2), (3, 2), pytest.param(5, 4, marks=pytest.mark.long)]
)
def test_a_star_says_why_the_first_core_has_failed(cores, fan_in):
    parameters = gathering_parameters(cores, fan_in, parity=True)
    for failed in [set(), {0}, {cores // 2, cores - 1}, set(range(cores))]:
        dut = MergerTree(parameters)
        causes = [(core + 1) % 4 * (core in failed) for core in range(cores)]
        words = [[punctuation(kind, failed=core in failed, failed_parity=causes[core])
                  for kind in (STAR, MARK)] for core in range(cores)]  # fmt: skip
        for stop in gather(dut, parameters, words, 2, stalls=0.2):
            told = stop.body.punctuation
            assert told.failed == bool(failed)
            if failed:
                assert told.failed_core == core_digits(min(failed), fan_in, dut.levels)
            assert told.failed_parity == ((min(failed) + 1) % 4 if failed else 0)


def test_free_order_serves_whoever_has_a_pair_until_the_next_mark():
    parameters = gathering_parameters(2, 2)
    dut = MergerTree(parameters)
    # Port 1 sends 20 pairs before port 0 sends its first word: in order this would never end,
    # because the test lets port 0 wait for the pairs of port 1.
    rows = list(range(20))
    free_mark = punctuation(MARK, free=1)
    layout = node_result(parameters, 0)
    bench = StreamBench(dut, deadline=2_000)
    late = [region_pair(99), punctuation(STAR), punctuation(MARK)]
    early = [region_pair(row) for row in rows] + [punctuation(STAR), punctuation(MARK)]

    async def port_0(ctx):
        for word in [free_mark, *late]:
            while word is late[0] and len(received) < 21:
                await ctx.tick()
            ctx.set(Value.cast(dut.i[0].payload), layout.const(word).as_value().value)
            ctx.set(dut.i[0].valid, 1)
            await ctx.tick().until(dut.i[0].ready)
            ctx.set(dut.i[0].valid, 0)
        bench.done()

    bench.spawn(port_0)
    bench.source(dut.i[1], region_words(parameters, [free_mark, *early]))
    received = bench.sink(dut.o, 24)
    bench.run()
    words = [node_result(parameters, 1).from_bits(word) for word in received]
    kinds = Counter(word.kind for word in words)
    assert kinds == {ResultKind.PAIR: 21, STAR: 1, MARK: 2}
    assert words[0].kind == MARK
    assert words[0].body.punctuation.free == 1
    assert words[-2].kind == STAR
    assert words[-1].body.punctuation.free == 0


@pytest.mark.few(3)
@pytest.mark.parametrize(("cores", "fan_in"), [(1, 2), (2, 2), (3, 2), (7, 2), (7, 4), (16, 4)])
def test_latency_is_twice_the_depth_and_a_star_of_all_ports_costs_one_cycle(cores, fan_in):
    parameters = gathering_parameters(cores, fan_in)
    dut = MergerTree(parameters)
    assert dut.latency == (2 * dut.levels if cores > 1 else 0)
    sent, taken = [], []
    gather(dut, parameters, [[punctuation(STAR)] * 30] * cores, 30, stamps=(sent, taken))
    assert taken == sorted({s + dut.latency for s in sent})
    assert taken[-1] - taken[0] == 29


def test_a_merger_refuses_too_many_ports():
    with pytest.raises(ValueError, match="A merger has 1 to 4 ports, not 5"):
        Merger(gathering_parameters(4, 4), level=0, ports=5)

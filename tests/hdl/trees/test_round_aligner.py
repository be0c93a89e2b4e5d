# SPDX-License-Identifier: Apache-2.0
"""Ports with rounds at different places, and what the merger behind them sees."""

import random

import pytest

from hdl.trees.merger import MergerTree, RoundAligner
from hdl.words.results import ResultKind
from tests.halves import half
from tests.hdl.gathering import punctuation, random_groups, region_pair, region_words
from tests.hdl.rounds_model import Probe, inner_star, probes_in_rounds, rounds_parameters
from tests.hdl.stream_bench import StreamBench
from tests.hdl.trees.test_merger import core_digits

STAR, MARK = ResultKind.STAR, ResultKind.MARK


def rounds_mark(rounds):
    """A mark after which results come in rounds, or do not."""
    word = punctuation(MARK)
    word["body"]["punctuation"]["inner"] = rounds
    return word


def run(dut, inputs, counts, outputs, *, stalls=0.0, seed=0, stamps=None):
    """Send words to the inputs of a component; return what comes out, output by output."""
    bench = StreamBench(dut, deadline=40_000, stalls=stalls, seed=seed)
    for i, words in zip(dut.i, inputs, strict=True):
        bench.source(i, region_words(dut.parameters, words), stamps=stamps and stamps[0])
    received = [
        bench.sink(o, count, stamps=stamps and stamps[1])
        for o, count in zip(outputs, counts, strict=True)
    ]
    bench.run(extra_cycles=20)
    return received


@pytest.mark.parametrize(
    ("ports", "size", "stalls"),
    half([1, 2, 3, 4], [1, 2, 4], [0.0, 0.4], of=4),
)
def test_every_port_gets_a_star_for_each_round_of_any_port(ports, size, stalls):
    generator = random.Random(10 * ports + size)
    probes = list(probes_in_rounds(generator, ports, size, 40))
    inputs, expected = [], []
    for port in range(ports):
        begin = [punctuation(STAR), rounds_mark(1)]
        plain = [rounds_mark(0), region_pair(port), punctuation(STAR), rounds_mark(0)]
        inputs.append([*begin, *(w for probe in probes for w in probe.sent(port)), *plain])
        expected.append([*begin, *(w for probe in probes for w in probe.aligned(port)), *plain])
    parameters = rounds_parameters(ports, 4)
    dut = RoundAligner(parameters, level=0, ports=ports)
    received = run(dut, inputs, map(len, expected), dut.o, stalls=stalls, seed=size)
    assert received == [region_words(parameters, words) for words in expected]
    if ports > 1:
        assert any(
            probe.sent(port) != probe.aligned(port) for probe in probes for port in range(ports)
        )


@pytest.mark.parametrize(
    ("cores", "fan_in", "size", "share"),
    half([1, 2, 3, 5, 7], [2, 3], [(1, 0.3), (2, 0.7), (8, 1.0)], of=4),
)
def test_behind_the_tree_results_come_by_rounds_then_by_cores(cores, fan_in, size, share):
    """With rounds of one tuple, that is the order in which the tuples were stored."""
    generator = random.Random(cores * fan_in)
    probes = list(probes_in_rounds(generator, cores, size, 25 if size < 8 else 9, share=share))
    inputs = [
        [rounds_mark(1), *(w for probe in probes for w in probe.sent(core))]
        for core in range(cores)
    ]
    expected = ["mark", *(what for probe in probes for what in probe.gathered())]
    if size == 1:
        tuples = [[n for n in probe.gathered() if isinstance(n, int)] for probe in probes]
        assert all(found == sorted(found) for found in tuples)
    dut = MergerTree(rounds_parameters(cores, fan_in))
    (received,) = run(dut, inputs, [len(expected)], [dut.o], stalls=0.3, seed=cores)
    layout, found = dut.o.payload.shape(), []
    for word in map(layout.from_bits, received):
        if word.kind == ResultKind.PAIR:
            found.append((word.body.pair.core, word.body.pair.row))
        elif word.kind == MARK:
            found.append("mark")
        else:
            found.append("star" if word.body.punctuation.inner else "end")
    places = [
        what if isinstance(what, str)
        else (core_digits(what % cores, fan_in, dut.levels), what // cores % 64)
        for what in expected
    ]  # fmt: skip
    assert found == places


def test_without_rounds_no_port_waits_for_another():
    """Port 1 sends its groups while port 0 has nothing to send, up to the mark."""
    parameters = rounds_parameters(2, 2)
    dut = RoundAligner(parameters, level=0, ports=2)
    ((rows,),) = random_groups(1, ports=1, groups=1, most=9)
    words = [*(region_pair(row) for row in rows), punctuation(STAR), rounds_mark(1)]
    bench = StreamBench(dut, deadline=500)
    bench.source(dut.i[1], region_words(parameters, words))
    received = bench.sink(dut.o[1], len(words) - 1)
    bench.run(extra_cycles=20)
    assert received == region_words(parameters, words[:-1])


@pytest.mark.parametrize("ports", [1, 2, 3, 4])
def test_latency_and_a_star_of_a_round_in_every_cycle(ports):
    dut = RoundAligner(rounds_parameters(ports, 4), level=0, ports=ports)
    assert dut.latency == 2
    words = [rounds_mark(1), *(inner_star(n) for n in range(30)), punctuation(STAR)]
    sent, taken = [], []
    run(dut, [words] * ports, [32] * ports, dut.o, stamps=(sent, taken))
    assert sorted(set(taken)) == [cycle + dut.latency for cycle in sorted(set(sent))]
    assert max(taken) - min(taken) == 31


def test_ports_in_rounds_that_are_no_neighbours_lose_nothing_and_go_on():
    parameters = rounds_parameters(4, 4)
    dut = RoundAligner(parameters, level=0, ports=4)
    inputs = []
    for port in range(4):
        far = Probe(1, 1, port, port + 9, frozenset(range(port, port + 9, 2)))
        inputs.append([rounds_mark(1), *far.sent(0), punctuation(STAR), rounds_mark(0)])
    bench = StreamBench(dut, deadline=2_000)
    received = []
    for i, o, words in zip(dut.i, dut.o, inputs, strict=True):
        bench.source(i, region_words(parameters, words))
        received.append(bench.sink(o, len(words)))
    bench.run(extra_cycles=60)
    stars = {region_words(parameters, [inner_star(n)])[0] for n in range(4)}
    for port, words in zip(received, inputs, strict=True):
        own = [word for word in region_words(parameters, words) if word not in stars]
        assert [word for word in port if word not in stars] == own

# SPDX-License-Identifier: Apache-2.0
import random

import pytest

from hdl.reducing import ReducingMerger, ReducingTree
from hdl.words.results import node_result
from hdl.words.values import MatchKind
from tests.hdl.input_words import integer
from tests.hdl.matches.match_words import (
    match_parameters,
    merged,
    punctuation,
    reduced,
)
from tests.hdl.stream_bench import StreamBench


def random_words(parameters, generator, count):
    """Words of all cores, a list for each, and what their combinations say."""
    cores = parameters.cores
    streams, expected = [[] for _ in range(cores)], []
    half = 1 << parameters.engine.value_bits - 1
    for number in range(count):
        kind = generator.choice([MatchKind.VALUE] * 4 + [MatchKind.STAR, MatchKind.MARK])
        if kind == MatchKind.VALUE:
            parts = []
            for _ in range(cores):
                length = generator.choice([0, 1, 3, parameters.window.sub_window])
                same = generator.choice([None, -half, half - 1])
                values = [generator.randrange(-half, half) for _ in range(length)]
                parts.append(reduced(parameters, values if same is None else [same] * length))
            for stream, part in zip(streams, parts, strict=True):
                stream.append({"kind": kind, "body": {"value": {"probe": number % 8, **part}}})
            expected.append((number % 8, merged(parameters, parts)))
            continue
        flags = {"disorder": generator.getrandbits(1), "illegal": generator.getrandbits(1)}
        full = [generator.random() < 0.2 for _ in range(cores)]
        for stream, overflow in zip(streams, full, strict=True):
            stream.append({"kind": kind, "body": {"punctuation": {"overflow": overflow, **flags}}})
        expected.append((kind, any(full), flags["disorder"], flags["illegal"]))
    return streams, expected


def gather(dut, parameters, streams, count, *, stalls=0.0, seed=0, stamps=(None, None)):
    """Run a merger or tree; return what its words say."""
    bench = StreamBench(dut, deadline=20_000, stalls=stalls, seed=seed)
    layout = node_result(parameters, 0)
    for n, (i, words) in enumerate(zip(dut.i, streams, strict=True)):
        stamped = stamps[0] if n == 0 else None
        bench.source(i, [integer(layout, word) for word in words], stamps=stamped)
    received = bench.sink(dut.o, count, stamps=stamps[1])
    bench.run(extra_cycles=20)
    words = [dut.o.payload.shape().from_bits(word) for word in received]
    names = ("count", "total", "least", "most")
    return [
        (word.body.value.probe, {name: word.body.value[name] for name in names})
        if word.kind == MatchKind.VALUE
        else punctuation(word)
        for word in words
    ]


@pytest.mark.few(6)
@pytest.mark.parametrize("stalls", [0.0, 0.4])
@pytest.mark.parametrize(("cores", "fan_in"), [(1, 2), (2, 2), (3, 4), (4, 4), (5, 2), (7, 3)])
def test_a_word_of_every_core_becomes_one(cores, fan_in, stalls):
    parameters = match_parameters(cores=cores, fan_in=fan_in, sub_window=5)
    streams, expected = random_words(parameters, random.Random(cores), 60)
    dut = ReducingTree(parameters)
    assert gather(dut, parameters, streams, 60, stalls=stalls, seed=cores) == expected


@pytest.mark.parametrize("ports", [1, 2, 3, 4])
def test_latency_and_one_word_per_cycle(ports):
    parameters = match_parameters(cores=ports)
    streams, expected = random_words(parameters, random.Random(ports), 30)
    dut = ReducingMerger(parameters, level=0, ports=ports)
    sent, taken = [], []
    assert gather(dut, parameters, streams, 30, stamps=(sent, taken)) == expected
    assert taken == list(range(sent[0] + dut.latency, sent[0] + dut.latency + 30))


def test_a_merger_has_as_many_ports_as_the_tree_allows():
    with pytest.raises(ValueError, match="A merger has 1 to 4 ports, not 5"):
        ReducingMerger(match_parameters(), level=0, ports=5)

# SPDX-License-Identifier: Apache-2.0
import pytest

from hdl.tree import tree_levels
from hdl.trees.distribution import DistributionNode, DistributionTree
from tests.halves import half
from tests.hdl.stream_bench import StreamBench

PAYLOADS = list(range(100))


@pytest.mark.few(4)
@pytest.mark.parametrize(("leaves", "fan_out"), half([1, 2, 3, 4, 7, 16], [2, 3, 4]))
def test_every_leaf_gets_every_word_in_order(leaves, fan_out):
    dut = DistributionTree(8, leaves=leaves, fan_out=fan_out)
    bench = StreamBench(dut, deadline=5_000, stalls=0.3, seed=leaves)
    bench.source(dut.i, PAYLOADS)
    received = [bench.sink(o, len(PAYLOADS)) for o in dut.o]
    bench.run()
    assert received == [PAYLOADS] * leaves


@pytest.mark.few(3)
@pytest.mark.parametrize(("leaves", "fan_out"), [(1, 2), (2, 2), (3, 2), (7, 2), (7, 3), (16, 4)])
def test_latency_is_the_depth_and_throughput_one_word_per_cycle(leaves, fan_out):
    dut = DistributionTree(8, leaves=leaves, fan_out=fan_out)
    assert dut.latency == (2 * len(tree_levels(leaves, fan_out)) if leaves > 1 else 1)
    bench = StreamBench(dut, deadline=1_000)
    sent = []
    bench.source(dut.i, PAYLOADS, stamps=sent)
    taken = [[] for _ in range(leaves)]
    for o, stamps in zip(dut.o, taken, strict=True):
        bench.sink(o, len(PAYLOADS), stamps=stamps)
    bench.run()
    for stamps in taken:
        assert [t - s for s, t in zip(sent, stamps, strict=True)] == [dut.latency] * len(PAYLOADS)
    assert sent[-1] - sent[0] == len(PAYLOADS) - 1


def test_a_node_takes_two_cycles():
    dut = DistributionNode(8, fan_out=3)
    bench = StreamBench(dut, deadline=1_000)
    sent, taken = [], []
    bench.source(dut.i, PAYLOADS, stamps=sent)
    for o in dut.o:
        bench.sink(o, len(PAYLOADS), stamps=taken)
    bench.run()
    assert dut.latency == 2
    assert sorted(taken) == sorted(3 * [s + dut.latency for s in sent])
    assert sent[-1] - sent[0] == len(PAYLOADS) - 1


@pytest.mark.few(3)
@pytest.mark.parametrize("fan_out", [1, 2, 3])
@pytest.mark.parametrize("stalls", [0.0, 0.6])
def test_a_node_serves_every_child_once(fan_out, stalls):
    dut = DistributionNode(8, fan_out=fan_out)
    bench = StreamBench(dut, deadline=2_000, stalls=stalls, seed=fan_out)
    bench.source(dut.i, PAYLOADS)
    received = [bench.sink(o, len(PAYLOADS)) for o in dut.o]
    bench.run()
    assert received == [PAYLOADS] * fan_out


def test_a_child_may_be_two_words_ahead_of_one_that_takes_none():
    dut = DistributionNode(8, fan_out=2)
    bench = StreamBench(dut, deadline=200)
    sent, taken = [], []
    # The register for all of them holds two more.
    bench.source(dut.i, PAYLOADS[:5], stamps=sent)
    bench.sink(dut.o[0], 5, stamps=taken)
    bench.sink(dut.o[1], 5, begin=20)
    bench.run()
    assert sent[1] - sent[0] == 1
    assert [t - s for s, t in zip(sent[:2], taken[:2], strict=True)] == [dut.latency] * 2
    assert taken[2] - sent[0] >= 20
    assert sent[3] - sent[0] == 3
    assert sent[4] - sent[0] >= 20


def test_bad_trees_are_refused():
    with pytest.raises(ValueError, match="A tree needs at least one leaf, not 0"):
        DistributionTree(8, leaves=0, fan_out=2)
    with pytest.raises(ValueError, match="Fan-out must be at least two, not 1"):
        DistributionTree(8, leaves=4, fan_out=1)
    with pytest.raises(ValueError, match="Fan-out must be at least one, not 0"):
        DistributionNode(8, fan_out=0)

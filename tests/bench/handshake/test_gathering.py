# SPDX-License-Identifier: Apache-2.0
from itertools import chain
import random

import pytest

from bench.handshake import HANDSHAKE
from bench.handshake.exits import FreeMerger, FreeMergerTree
from bench.handshake.layouts import chain_result
from hdl.parameters import JoinParameters
from tests.hdl.stream_bench import StreamBench

PARAMETERS = JoinParameters.of(cores=3, sub_window=4, fan_in=2, architecture=HANDSHAKE)


def words(port, generator, marks):
    """Random pairs of a port, with some marks among them, and the pairs before each mark."""
    layout, result, blocks = chain_result(PARAMETERS), [], []
    for mark in range(marks):
        block = []
        for n in range(generator.randrange(5)):
            pair = {"mark": 0, "side": port % 2, "pair": {"r": mark, "s": 10 * port + n}}
            block.append(layout.const(pair).as_value().value)
        blocks.append(block)
        result += [*block, layout.const({"mark": 1}).as_value().value]
    return result, blocks


def check(dut, ports, seed):
    generator = random.Random(seed)
    sent = [words(n, generator, 4) for n in range(len(ports))]
    bench = StreamBench(dut, deadline=2_000, stalls=0.3 * (seed % 2), seed=seed)
    for port, (result, _) in zip(ports, sent, strict=True):
        bench.source(port, result)
    total = sum(len(block) for _, blocks in sent for block in blocks) + 4
    received, block = bench.sink(dut.o, total), []
    bench.run()
    assert len(received) == total
    blocks = []
    for word in received:
        if chain_result(PARAMETERS).from_bits(word).mark:
            blocks.append(sorted(block))
            block = []
        else:
            block.append(word)
    by_mark = zip(*(of_port for _, of_port in sent), strict=True)
    assert blocks == [sorted(chain.from_iterable(of_ports)) for of_ports in by_mark]


@pytest.mark.parametrize(("ports", "seed"), [(1, 0), (2, 1), (3, 2), (4, 3)])
def test_marks_are_merged_behind_all_pairs_before_them(ports, seed):
    dut = FreeMerger(PARAMETERS, ports=ports)
    check(dut, list(dut.i), seed)


def test_a_merger_needs_a_port():
    with pytest.raises(ValueError, match="at least one port, not 0"):
        FreeMerger(PARAMETERS, ports=0)


def test_a_tree_gathers_both_sides_of_all_cores():
    dut = FreeMergerTree(PARAMETERS)
    assert dut.latency == 6
    check(dut, list(dut.i), 1)

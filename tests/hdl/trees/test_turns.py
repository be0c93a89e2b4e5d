# SPDX-License-Identifier: Apache-2.0
import random

import pytest

from hdl.trees.order_queue import Turns
from tests.hdl.stream_bench import StreamBench

ORDER = [random.Random(1).choice([1, 2, 3]) for _ in range(100)]
TURNS = [1 << side for sides in ORDER for side in range(2) if sides >> side & 1]


def turns_of(dut, order, count, *, stalls=0.0, sent=None, taken=None):
    """Run the component; check that nobody has a turn while there is none."""
    bench = StreamBench(dut, deadline=5_000, stalls=stalls, seed=1)
    bench.source(dut.i, order, stamps=sent)
    received = bench.sink(dut.o, count, stamps=taken)

    async def nobody(ctx):
        async for *_, valid, turn in ctx.tick().sample(dut.o.valid, dut.o.payload):
            assert bool(turn) == bool(valid)

    bench.simulator.add_testbench(nobody, background=True)
    bench.run()
    return received


@pytest.mark.parametrize("stalls", [0.0, 0.3, 0.8])
def test_sides_come_one_after_the_other_r_first(stalls):
    assert turns_of(Turns(), ORDER, len(TURNS), stalls=stalls) == TURNS


@pytest.mark.parametrize("order", [[1, 2] * 20, [3] * 20, ORDER])
def test_latency_and_a_turn_per_cycle(order):
    dut = Turns()
    assert dut.latency == 1
    sent, taken = [], []
    count = sum(sides.bit_count() for sides in order)
    turns_of(dut, order, count, sent=sent, taken=taken)
    # An entry is taken with its last turn; the first one is there before.
    first = sent[0] + 1 - order[0].bit_count() + dut.latency
    assert taken == list(range(first, first + count))

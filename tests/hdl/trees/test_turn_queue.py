# SPDX-License-Identifier: Apache-2.0
import random

from hypothesis import given, settings
from hypothesis import strategies as st
import pytest

from hdl.trees.order_queue import TurnQueue
from tests.hdl.stream_bench import StreamBench

ENTRIES = (1, 2, 3, 5, 6, 7)


def turns_of(order):
    """The sides of an order's turns, one after the other."""
    turns = []
    for entry in order:
        sides = [side for side in range(2) if entry >> side & 1]
        turns += reversed(sides) if entry >> 2 and len(sides) == 2 else sides
    return turns


def run(order, pace, *, stalls=0.0, seed=0):
    """End up to ``pace`` turns per cycle; return them, how many in each cycle, and the latency."""
    dut = TurnQueue()
    bench = StreamBench(dut, deadline=2_000, stalls=stalls, seed=seed)
    sent, found, counts = [], [], []
    bench.source(dut.i, order, stamps=sent)
    wanted = len(turns_of(order))
    generator = random.Random(seed)
    first_seen = []

    async def take(ctx):
        while len(found) < wanted:
            shown = [side for side in (ctx.get(dut.first), ctx.get(dut.second)) if side]
            if shown and not first_seen:
                first_seen.append(bench.cycle)
            count = min(len(shown), pace if not stalls else generator.randrange(pace + 1))
            found.extend(side - 1 for side in shown[:count])
            counts.append(count)
            ctx.set(dut.ended, (1 << count) - 1)
            await ctx.tick()
        ctx.set(dut.ended, 0)
        bench.done()

    bench.spawn(take)
    bench.run()
    return found, counts, first_seen[0] - sent[0] if sent else None


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.sampled_from(ENTRIES), max_size=40),
    st.integers(1, 2),
    st.sampled_from([0.0, 0.3, 0.7]),
    st.integers(0, 99),
)
def test_turns_come_one_after_the_other(order, pace, stalls, seed):
    assert run(order, pace, stalls=stalls, seed=seed)[0] == turns_of(order)


@pytest.mark.parametrize("order", [[3] * 30, [7, 3] * 15, [6, 5] * 15])
def test_two_turns_per_cycle_and_latency(order):
    found, counts, latency = run(order, 2)
    assert found == turns_of(order)
    assert latency == TurnQueue().latency
    begun = next(n for n, count in enumerate(counts) if count)
    assert set(counts[begun:]) == {2 if order[0] & 3 == 3 else 1}

# SPDX-License-Identifier: Apache-2.0
"""The queue of walks against a list: one or two come at a time, one sets out."""

import random

import pytest

from hdl.index.chain_walker import WalkQueue
from hdl.index.layouts import bank_count, walks_layout
from hdl.parameters import JoinParameters
from tests.halves import half
from tests.hdl.ecp5 import simulate
from tests.hdl.input_words import integer

CYCLES = 600
DEPTH, IN_FLIGHT = 8, 3


def queue_of(comparator, depth=DEPTH):
    """A queue of an index with this comparator."""
    parameters = JoinParameters.of(engine="index", comparator=comparator, sub_window=20)
    return WalkQueue(parameters, depth=depth, in_flight=IN_FLIGHT)


def walks_of(dut, number):
    """The walks of the visit with this number, and what they look like when they set out."""
    entries = [
        {"place": number % 32, "age": bank, "bucket": number // 32 % 8}
        for bank in range(bank_count(dut.parameters))
    ]
    common = {"probe": number % 16, "group": number % 4}
    payload = integer(walks_layout(dut.parameters), {"entries": entries, **common})
    return payload, [{**entry, **common} for entry in entries]


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("comparator", "rates", "depth"),
    half(["equality", "band"], [((0.9, 0.5),), ((0.3, 0.9),)], [DEPTH, 32]),
)
def test_walks_set_out_in_the_order_of_their_visits(comparator, rates, depth):
    """While ``ready`` is low, so many more may come as are in flight."""
    dut = queue_of(comparator, depth)
    generator = random.Random(5)
    expected, first = [], []
    begins, takes = rates

    async def bench(ctx):
        in_flight = 0
        for number in range(CYCLES):
            filled = ctx.get(dut.filled)
            take = filled and generator.random() < takes
            if filled:
                walk = ctx.get(dut.first)
                first.append({name: walk[name] for name in expected[0]})
                assert first[-1] == expected[0]
            else:
                assert len(expected) <= len(dut.begin) * (dut.latency - 1)
            in_flight = 0 if ctx.get(dut.ready) else in_flight + 1
            begin = 0
            if in_flight < IN_FLIGHT and generator.random() < begins:
                begin = generator.randrange(1, 1 << len(dut.begin))
            payload, walks = walks_of(dut, number)
            ctx.set(dut.begin, begin)
            ctx.set(dut.walks.as_value(), payload)
            ctx.set(dut.take, take)
            if take:
                expected.pop(0)
            expected.extend(walk for bank, walk in enumerate(walks) if begin >> bank & 1)
            await ctx.tick()

    simulate(dut, None, bench)
    assert len(first) > CYCLES // 4


@pytest.mark.parametrize("depth", [DEPTH, 32])
def test_two_walks_of_a_visit_set_out_one_after_the_other(depth):
    """The latency, and a walk in every cycle from then on."""
    dut = queue_of("band", depth)

    async def bench(ctx):
        for cycle in range(9):
            payload, _ = walks_of(dut, cycle // 2)
            ctx.set(dut.begin, 0b11 if cycle % 2 == 0 else 0)
            ctx.set(dut.walks.as_value(), payload)
            ctx.set(dut.take, cycle >= dut.latency)
            assert ctx.get(dut.filled) == (cycle >= dut.latency)
            if cycle >= dut.latency:
                _, walks = walks_of(dut, (cycle - dut.latency) // 2)
                assert ctx.get(dut.first.age) == (cycle - dut.latency) % 2
                assert ctx.get(dut.first.place) == walks[0]["place"]
            await ctx.tick()

    simulate(dut, None, bench)

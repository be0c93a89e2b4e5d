# SPDX-License-Identifier: Apache-2.0
"""Which heads begin a walk, and where it begins, from plain integers."""

import random

import pytest

from hdl.index.heads import HeadLookup, HeadTable
from hdl.index.layouts import bank_count, group_count, head_shape, slot_shape, visit_layout
from hdl.parameters import JoinParameters
from hdl.words.prepared import pointer_layout
from tests.hdl.ecp5 import simulate
from tests.hdl.input_words import integer

CYCLES = 400


@pytest.mark.parametrize("comparator", ["equality", "band"])
def test_a_walk_begins_where_a_head_lies_in_the_ring(comparator):
    """At the head's entry, with its age; heads that are older, or of long ago, begin none."""
    parameters = JoinParameters.of(engine="index", comparator=comparator, sub_window=20)
    dut = HeadLookup(parameters)
    banks, groups = bank_count(parameters), group_count(parameters)
    ring, span = 1 << slot_shape(parameters).width, 1 << head_shape(parameters).width
    rows = 1 << pointer_layout(parameters)["row"].shape.width
    generator = random.Random(9)
    heads, expected = [], []
    latency = HeadTable.LATENCY
    assert dut.latency == latency + 2

    def visit_of(head):
        """A visit when the next entry goes to ``head``: its inputs, and the walks it begins."""
        seen = generator.randrange(ring + 1)  # entries since the oldest one that the probe sees
        begun, final = generator.randrange(1 << banks), generator.randrange(2)
        addresses = [generator.randrange(1 << len(dut.visited[0])) for _ in range(banks)]
        probe, group = generator.randrange(64), generator.randrange(groups)
        visit = {
            "addresses": addresses, "tail": (head - seen) % rows, "probe": probe, "group": group,
        }  # fmt: skip
        newest, entries = [], []
        for bank in range(banks):
            back = generator.choice([1, seen, seen + 1, generator.randrange(1, span)])
            back = back or 1
            newest.append((head - back) % span)
            walks = begun >> bank & 1 and back <= seen
            entry = ((head - back) % ring, (seen - back) % ring, banks * addresses[bank] + bank)
            entries.append(entry if walks else None)
        answer = (entries, probe, group, final)
        return (begun, final, integer(visit_layout(parameters), visit)), addresses, newest, answer

    async def bench(ctx):
        head = 5
        for cycle in range(CYCLES):
            inputs, addresses, newest, answer = visit_of((head + latency) % span)
            for port, value in zip(
                (dut.begun, dut.final, dut.visit.as_value()), inputs, strict=True
            ):
                ctx.set(port, value)
            assert [ctx.get(visited) for visited in dut.visited] == addresses
            heads.append(newest)
            expected.append(answer)
            ctx.set(dut.head, head)
            if cycle >= latency:
                for port, value in zip(dut.newest, heads[cycle - latency], strict=True):
                    ctx.set(port, value)
            await ctx.tick()
            head = (head + 1) % span
            if cycle + 1 >= dut.latency:
                check(ctx, *expected[cycle + 1 - dut.latency])

    def check(ctx, entries, probe, group, final):
        walks = ctx.get(dut.walks)
        assert ctx.get(dut.begin) == sum(
            (entry is not None) << n for n, entry in enumerate(entries)
        )
        assert ctx.get(dut.final_of) == final << group
        for n, entry in enumerate(entries):
            assert ctx.get(dut.started[n]) == (entry is not None) << group
            if entry is not None:
                found = walks.entries[n]
                assert (found.place, found.age, found.bucket) == entry
                assert (walks.probe, walks.group) == (probe, group)

    simulate(dut, None, bench)
    assert 0 < sum(entry is not None for entries, *_ in expected for entry in entries) < CYCLES

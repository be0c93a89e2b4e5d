# SPDX-License-Identifier: Apache-2.0
"""Groups of probes, and the buckets that they visit, one after the other."""

import random

from hypothesis import given, settings
from hypothesis import strategies as st
import pytest

from hdl.index.cell_counter import CellSequencer
from hdl.index.layouts import bank_count, group_count, visiting_layout
from hdl.parameters import JoinParameters, KeyField
from tests.hdl.cells_model import Part, visited_buckets
from tests.hdl.ecp5 import simulate
from tests.hdl.input_words import control_word, integer

DEADLINE = 4_000
PROBES = 3
PART = Part(width=4)


def sequencer_parameters(comparator):
    """Parameters of an index with one key field."""
    return JoinParameters.of(
        engine="index", comparator=comparator, sub_window=20, probes=PROBES, bucket_bits=4,
        keys=(KeyField(name="x", bits=6),),
    )  # fmt: skip


class Groups:
    """Groups of probes as a table would offer them, and what the sequencer makes of them."""

    def __init__(self, parameters, cells):
        self.parameters = parameters
        self.groups = cells  # of every group: of every probe, its first cell and how many more
        self.probes = [probe for group in cells for probe in group]
        self.dut = CellSequencer(parameters)
        self.free = (1 << group_count(parameters)) - 1
        self.taken = self.visited = 0
        self.visits = []  # number, probe, tail, buckets of every one
        self.finals = []  # number of the group, visits until then

    def probe(self, n):
        """The ``n``-th probe as an integer."""
        start, extent = self.probes[n]
        cells = {"start": start, "hash": 0, "none": extent < 0, "extent_0": max(extent, 0)}
        band = {"cells": cells} if self.parameters.predicate.kind == "band" else {"bucket": start}
        return integer(visiting_layout(self.parameters), {**band, "tail": n % 32})

    async def configure(self, ctx):
        """Set the part of the field."""
        word = control_word("COORDINATE", 0, PART.value(self.parameters))
        ctx.set(self.dut.control, word["body"]["control"])
        ctx.set(self.dut.configure, 1)
        await ctx.tick()
        ctx.set(self.dut.configure, 0)
        await ctx.tick()

    async def cycle(self, ctx, *, closed=True, arrived=True, room=True):
        """One cycle: offer the next group and the next probe, take what comes."""
        dut = self.dut
        closed = closed and self.taken < len(self.groups)
        arrived = arrived and self.visited < len(self.probes)
        ctx.set(dut.closed, closed)
        ctx.set(dut.count, len(self.groups[self.taken]) if closed else 0)
        ctx.set(dut.arrived, arrived)
        ctx.set(dut.probe.as_value(), self.probe(self.visited) if arrived else 0)
        ctx.set(dut.room, room)
        ctx.set(dut.free, self.free)
        begun, final = ctx.get(dut.begun), ctx.get(dut.final)
        visit = ctx.get(dut.visit)
        if begun:
            banks = bank_count(self.parameters)
            buckets = {banks * visit.addresses[n] + n for n in range(banks) if begun >> n & 1}
            self.visits.append((visit.group, visit.probe, visit.tail, buckets))
        if final:
            self.finals.append((visit.group, len(self.visits)))
            self.free |= 1 << visit.group
        take = ctx.get(dut.take)
        if take:
            assert closed or self.taken < len(self.groups)
            assert take & self.free
            self.free &= ~take
            self.taken += 1
        self.visited += ctx.get(dut.visited)
        await ctx.tick()


@settings(max_examples=25)
@given(
    comparator=st.sampled_from(["band", "equality"]),
    groups=st.lists(
        st.lists(st.tuples(st.integers(0, 15), st.integers(-1, 5)), max_size=PROBES), max_size=20
    ),
    pauses=st.sampled_from([0.0, 0.4]),
    seed=st.integers(0, 1 << 16),
)
def test_every_probe_visits_its_buckets_for_its_group(comparator, groups, pauses, seed):
    """Groups end in order, also those without probes, and with the last visit of each."""
    parameters = sequencer_parameters(comparator)
    bench, generator = Groups(parameters, groups), random.Random(seed)

    def goes():
        return generator.random() >= pauses

    async def run(ctx):
        await bench.configure(ctx)
        for _ in range(DEADLINE):
            await bench.cycle(ctx, closed=True, arrived=goes(), room=goes())
            if len(bench.finals) == len(groups):
                return
        raise AssertionError(f"{len(bench.finals)} of {len(groups)} groups after {DEADLINE} cycles")

    simulate(bench.dut, None, run)
    numbers = group_count(parameters)
    found = iter(bench.visits)
    visits = probe = 0
    for n, group in enumerate(groups):
        for start, extent in group:
            cells = {"start": start, "hash": 0, "none": extent < 0, "extent_0": extent}
            band = comparator == "band"
            left = visited_buckets(parameters, (PART,), cells) if band else [start]
            while left:
                number, place, tail, buckets = next(found)
                assert (number, place, tail) == (n % numbers, probe, probe % 32)
                assert buckets <= set(left)
                left = [bucket for bucket in left if bucket not in buckets]
                visits += 1
            probe += 1
        assert bench.finals[n] == (n % numbers, visits)


@pytest.mark.parametrize(("comparator", "visits"), [("equality", PROBES), ("band", 2 * PROBES)])
def test_groups_follow_each_other_without_a_gap(comparator, visits):
    """The latency from a group to its first visit, and a visit in every cycle from then on."""
    groups = [[(2, 3)] * PROBES] * 6  # a band's probe has four cells: two visits
    bench = Groups(sequencer_parameters(comparator), groups)
    dut = bench.dut

    async def run(ctx):
        await bench.configure(ctx)
        for _ in range(4):  # until a probe is there
            await bench.cycle(ctx, closed=False)
        for cycle in range(dut.latency + visits * len(groups)):
            assert bool(bench.visits) == (cycle > dut.latency)
            await bench.cycle(ctx)

    simulate(dut, None, run)
    assert len(bench.visits) == visits * len(groups)


def test_a_group_waits_until_its_number_is_free():
    bench = Groups(sequencer_parameters("equality"), [[(1, 0)]])
    bench.free = 0

    async def run(ctx):
        for _ in range(10):
            await bench.cycle(ctx)
        assert (bench.taken, bench.visits) == (0, [])
        bench.free = 1
        for _ in range(bench.dut.latency + 1):
            await bench.cycle(ctx)

    simulate(bench.dut, None, run)
    assert [visit[0] for visit in bench.visits] == [0]

# SPDX-License-Identifier: Apache-2.0
"""The cells of a band's probe, in pairs of neighbours, against a product of ranges."""

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from hdl.index.cell_counter import CellCounter
from hdl.index.layouts import bank_count, visiting_layout
from hdl.parameters import JoinParameters, KeyField
from tests.hdl.cells_model import Part, visited_buckets
from tests.hdl.ecp5 import simulate
from tests.hdl.input_words import control_word, integer

DEADLINE = 4_000


def counter_parameters(fields, bucket_bits):
    """Parameters of an index with so many key fields."""
    keys = tuple(KeyField(name=name, bits=8) for name in "xyz"[:fields])
    return JoinParameters.of(engine="index", sub_window=20, keys=keys, bucket_bits=bucket_bits)


async def configure(ctx, dut, parameters, parts):
    """Set the part of every field."""
    for n, part in enumerate(parts):
        word = control_word("COORDINATE", n, part.value(parameters))
        ctx.set(dut.control, word["body"]["control"])
        ctx.set(dut.configure, 1)
        await ctx.tick()
    ctx.set(dut.configure, 0)
    await ctx.tick()


def random_parts(generator, parameters):
    """Parts that share no bit, in any order, of which some are empty."""
    bits = parameters.engine.bucket_bits
    order = list(range(len(parameters.keys)))
    generator.shuffle(order)
    parts, place = [Part()] * len(order), generator.choice([0, 0, 1])
    for n in order:
        width = generator.randrange(bits - place + 1)
        parts[n] = Part(width=width, place=place if width else 0)
        place += width
    return parts


def random_cells(generator, parameters, parts):
    """What a probe visits; no more values of a field than it has."""
    start = 0
    cells = {"hash": generator.randrange(1 << parameters.engine.bucket_bits)}
    for n, part in enumerate(parts):
        start |= generator.randrange(1 << part.width) << part.place
        cells[f"extent_{n}"] = min(generator.randrange(5), (1 << part.width) - 1)
    return {"start": start, "none": int(generator.random() < 0.1), **cells}


def steps_of(parameters, parts, cells):
    """Steps for these cells: two at a time along the field that has the lowest bit."""
    steps = 1
    for n, part in enumerate(parts):
        paired = part.width and part.place == 0 and bank_count(parameters) > 1
        count = cells[f"extent_{n}"] + 1
        steps *= -(-count // 2) if paired else count
    return 1 if cells["none"] else steps


@settings(max_examples=25)
@given(
    fields=st.integers(1, 3),
    bucket_bits=st.sampled_from([1, 2, 5]),
    pauses=st.sampled_from([0.0, 0.4]),
    seed=st.integers(0, 1 << 16),
)
def test_every_bucket_is_visited_once_and_neighbours_at_once(fields, bucket_bits, pauses, seed):
    parameters = counter_parameters(fields, bucket_bits)
    generator = random.Random(seed)
    parts = random_parts(generator, parameters)
    probes = [random_cells(generator, parameters, parts) for _ in range(12)]
    dut = CellCounter(parameters)
    banks = bank_count(parameters)
    visits = []  # of every probe: those of every step

    async def bench(ctx):
        await configure(ctx, dut, parameters, parts)
        sent = 0
        for _ in range(DEADLINE):
            arrived = sent < len(probes) and generator.random() >= pauses
            if arrived:
                probe = {"cells": probes[sent], "tail": sent}
                ctx.set(dut.probe.as_value(), integer(visiting_layout(parameters), probe))
            ctx.set(dut.arrived, arrived)
            ctx.set(dut.step, 0)
            step = ctx.get(dut.filled) and generator.random() >= pauses
            ctx.set(dut.step, step)
            if step:
                assert ctx.get(dut.tail) == len(visits) % (1 << len(dut.tail))
                wanted, last = ctx.get(dut.wanted), ctx.get(dut.last)
                addresses = [ctx.get(address) for address in dut.addresses]
                steps.append([banks * addresses[n] + n for n in range(banks) if wanted >> n & 1])
                if last:
                    visits.append(list(steps))
                    steps.clear()
            sent += ctx.get(dut.take)
            await ctx.tick()
            if len(visits) == len(probes):
                return
        raise AssertionError(f"{len(visits)} of {len(probes)} probes after {DEADLINE} cycles")

    steps = []
    simulate(dut, None, bench)
    for cells, steps in zip(probes, visits, strict=True):
        buckets = [bucket for step in steps for bucket in step]
        assert sorted(buckets) == sorted(visited_buckets(parameters, parts, cells))
        assert len(set(buckets)) == len(buckets)
        assert len(steps) == steps_of(parameters, parts, cells)


def test_probes_follow_each_other_without_a_gap():
    """The latency, and a step in every cycle from then on."""
    parameters = counter_parameters(2, 6)
    parts = [Part(width=3), Part(width=3, place=3)]
    extents = [(0, 0), (1, 0), (1, 1), (2, 0), (3, 1), (0, 1)]
    probes = [{"start": 0, "hash": 0, "none": 0, "extent_0": x, "extent_1": y} for x, y in extents]
    dut = CellCounter(parameters)

    async def bench(ctx):
        await configure(ctx, dut, parameters, parts)
        sent, steps = 0, []
        for cycle in range(1 + sum(steps_of(parameters, parts, cells) for cells in probes)):
            ctx.set(dut.arrived, sent < len(probes))
            if sent < len(probes):
                probe = {"cells": probes[sent], "tail": 0}
                ctx.set(dut.probe.as_value(), integer(visiting_layout(parameters), probe))
            filled = ctx.get(dut.filled)
            assert filled == (cycle >= dut.latency)
            ctx.set(dut.step, filled)
            steps.append(filled and ctx.get(dut.last))
            sent += ctx.get(dut.take)
            await ctx.tick()
        assert sum(steps) == len(probes)
        assert not ctx.get(dut.filled)

    simulate(dut, None, bench)

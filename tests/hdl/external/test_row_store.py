# SPDX-License-Identifier: Apache-2.0
"""The rows of passes, as they were stored, whatever is written by then."""

import random

from amaranth import *
import pytest

from hdl.external.reads import RowQueue, pass_layout
from hdl.external.rows import RowStore
from tests.halves import half
from tests.hdl.axi_memory import AxiMemory
from tests.hdl.external.shapes import external_parameters
from tests.hdl.stream_bench import StreamBench


def converse(
    parameters, steps, *, latency, stalls=0.0, rests=False, seed=0, fails=lambda address: False
):
    """Store rows and read passes: ``steps`` are numbers of rows and (first, stop) of passes.

    Return the component, the memory, the rows that were read, as lists of keys, and the cycles in
    which a pass was taken, in which a row was, and in which an error was told. A pass comes as soon
    as there is nothing left to be written, if ``rests``.
    """
    dut = RowStore(parameters)
    bench = StreamBench(dut, deadline=6_000, seed=seed)
    memory = AxiMemory(dut.axi, latency=latency, stalls=stalls, seed=seed, fails=fails)
    memory.attach(bench.simulator)
    total = sum(step[1] - step[0] for step in steps if isinstance(step, tuple))
    read, begun, taken, wrong = [], [], [], []
    cycle = 0
    ring = 2 * parameters.ring_rows

    async def store(ctx):
        row = 0
        for step in steps:
            if isinstance(step, tuple):
                while rests and ctx.get(dut.busy):
                    await ctx.tick()
                first, stop = step
                ctx.set(
                    dut.passes.payload,
                    pass_layout(parameters).const({"first": first % ring, "stop": stop % ring}),
                )
                ctx.set(dut.passes.valid, 1)
                while True:
                    *_, ready = await ctx.tick().sample(dut.passes.ready)
                    if ready:
                        begun.append(cycle)
                        break
                ctx.set(dut.passes.valid, 0)
                continue
            for _ in range(step):
                for lane in range(parameters.engine.lanes):
                    while ctx.get(dut.crowded):
                        await ctx.tick()
                    ctx.set(dut.store, 1)
                    ctx.set(dut.place, {"lane": lane, "row": row % ring})
                    ctx.set(dut.key.x, key(row, lane))
                    await ctx.tick()
                    ctx.set(dut.store, 0)
                row += 1
        bench.done()

    async def take(ctx):
        nonlocal cycle
        due = [False] * (RowQueue.LATENCY - 1)
        while len(read) < total:
            filled = ctx.get(dut.o.filled)
            ctx.set(dut.o.take, filled)
            due.append(filled)
            taken.extend([cycle] * filled)
            wrong.extend([cycle] * ctx.get(dut.wrong))
            await ctx.tick()
            cycle += 1
            if due.pop(0):
                row, bits = ctx.get(dut.o.row), Shape.cast(dut.key.shape()).width
                read.append(
                    [row >> bits * n & (1 << bits) - 1 for n in range(parameters.engine.lanes)]
                )
        bench.done()

    bench.spawn(store)
    bench.spawn(take)
    bench.run()
    return dut, memory, read, begun, taken, wrong


def key(row, lane):
    """The key that is stored in a lane of a row."""
    return (row * 7 + lane * 3) % 64


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("lanes", "burst", "latency", "stalls"), half([(1, 1), (1, 8), (3, 2)], [(1, 0.0), (30, 0.3)])
)
def test_a_pass_has_every_row_that_was_stored_before(lanes, burst, latency, stalls):
    parameters = external_parameters(lanes=lanes, memory_burst=burst, sub_window=150 * lanes)
    generator = random.Random(latency)
    steps, stored = [20], 20
    for _ in range(12):
        count = generator.choice([0, 1, 2, 25])
        steps += [count, (max(0, stored + count - generator.randrange(1, 60)), stored + count)]
        stored += count
    _, memory, read, *_, wrong = converse(parameters, steps, latency=latency, stalls=stalls)
    passes = [step for step in steps if isinstance(step, tuple)]
    wanted = [[key(row, n) for n in range(lanes)] for a, b in passes for row in range(a, b)]
    assert read == wanted
    assert memory.reads
    assert not wrong


@pytest.mark.parametrize("latency", [1, 9])
def test_latency_of_a_pass_and_a_row_per_cycle(latency):
    parameters = external_parameters(memory_burst=4, sub_window=100, memory_latency=16)
    dut, memory, _, begun, taken, _ = converse(
        parameters, [64, (0, 64)], latency=latency, rests=True
    )
    assert sum(beats for _, beats in memory.reads) == 64
    assert taken[0] - begun[0] == dut.latency + latency
    assert taken == list(range(taken[0], taken[0] + 64))


def test_an_error_of_the_memory_is_told():
    """A burst that failed to be written fails to be read as well."""
    parameters = external_parameters(memory_burst=2, sub_window=100)
    *_, begun, _, wrong = converse(
        parameters, [40, (0, 40)], latency=2, rests=True, fails=lambda address: address == 8
    )
    assert [cycle > begun[0] for cycle in wrong] == [False, True, True]

# SPDX-License-Identifier: Apache-2.0
"""Reads ahead of a consumer that pauses, from a memory that is late."""

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from hdl.external.reads import ReadMaster, RowQueue, burst_layout
from tests.hdl.axi_memory import AxiMemory
from tests.hdl.external.shapes import external_parameters
from tests.hdl.stream_bench import StreamBench


def read(parameters, bursts, *, latency, stalls, pauses, seed=0, fails=lambda address: False):
    """Read bursts; return the memory, the rows, the cycles they were taken in, errors that came."""
    dut = ReadMaster(parameters)
    bench = StreamBench(dut, deadline=5_000, stalls=stalls, seed=seed)
    memory = AxiMemory(dut.axi, latency=latency, stalls=stalls, seed=seed, fails=fails)
    memory.attach(bench.simulator)
    requested, rows, taken, wrong = [], [], [], []
    bench.source(
        dut.bursts,
        [burst_layout(parameters).const({"row": row, "more": n - 1}) for row, n in bursts],
        stamps=requested,
    )
    generator = random.Random(seed)
    total = sum(n for _, n in bursts)

    async def consume(ctx):
        due = [False] * (RowQueue.LATENCY - 1)
        cycle = 0
        while len(rows) < total:
            take = ctx.get(dut.filled) and generator.random() >= pauses
            ctx.set(dut.take, take)
            if take:
                taken.append(cycle)
            if ctx.get(dut.wrong):
                wrong.append(cycle)
            due.append(take)
            await ctx.tick()
            cycle += 1
            if due.pop(0):
                rows.append(ctx.get(dut.row))
        bench.done()

    bench.spawn(consume)
    bench.run()
    return dut, memory, rows, requested, taken, wrong  # requests are stamped a cycle early


@settings(max_examples=8)
@given(
    burst=st.sampled_from([1, 2, 4, 8]),
    lanes=st.sampled_from([1, 3]),
    latency=st.sampled_from([1, 5, 40]),
    stalls=st.sampled_from([0.0, 0.4]),
    pauses=st.sampled_from([0.0, 0.5, 0.95]),
    seed=st.integers(0, 1 << 16),
)
def test_rows_come_in_the_order_in_which_they_are_requested(
    burst, lanes, latency, stalls, pauses, seed
):
    parameters = external_parameters(lanes=lanes, memory_burst=burst)
    generator = random.Random(seed)
    bursts = []
    for _ in range(60 // burst):
        place = generator.randrange(burst)
        row = generator.randrange(parameters.ring_rows // burst) * burst + place
        bursts.append((row, generator.randint(1, burst - place)))
    dut, memory, rows, *_ = read(
        parameters, bursts, latency=latency, stalls=stalls, pauses=pauses, seed=seed
    )
    size = parameters.engine.memory_width // 8
    assert memory.reads == [(row * size, beats) for row, beats in bursts]
    mask = (1 << len(dut.row)) - 1
    wanted = [memory.word((row + n) * size) & mask for row, beats in bursts for n in range(beats)]
    assert rows == wanted
    assert memory.outstanding <= dut.depth


def test_a_row_per_cycle_while_the_latency_is_hidden():
    parameters = external_parameters(memory_burst=4, memory_latency=30, sub_window=500)
    bursts = [(4 * n, 4) for n in range(40)]
    dut, memory, _, requested, taken, _ = read(
        parameters, bursts, latency=30, stalls=0.0, pauses=0.0
    )
    assert memory.beats[0] - (requested[0] + 1) == dut.latency + 30
    assert taken[0] - memory.beats[0] == 1
    assert taken == list(range(taken[0], taken[0] + 160))


def test_without_a_consumer_no_more_is_requested_than_the_queue_holds():
    """Here the latency is not hidden: the queue is as deep as it is."""
    parameters = external_parameters(memory_burst=4, memory_latency=0, sub_window=500)
    bursts = [(4 * n, 4) for n in range(40)]
    dut, memory, _, _, taken, _ = read(parameters, bursts, latency=100, stalls=0.0, pauses=0.0)
    assert memory.outstanding == dut.depth
    assert taken[-1] - taken[0] > 100


def test_an_error_of_the_memory_is_told():
    parameters = external_parameters(memory_burst=4)
    bursts = [(0, 4), (4, 3), (8, 1)]
    size = parameters.engine.memory_width // 8
    *_, wrong = read(
        parameters, bursts, latency=3, stalls=0.0, pauses=0.0, fails=lambda a: a == 4 * size
    )
    assert len(wrong) == 3

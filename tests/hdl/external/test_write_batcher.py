# SPDX-License-Identifier: Apache-2.0
"""Rows that are written behind the stores, into a memory that is late."""

import random

from amaranth import *
from hypothesis import given, settings
from hypothesis import strategies as st

from hdl.external.rows import WriteBatcher
from hdl.memory.columns import KeyColumn
from tests.hdl.axi_memory import AxiMemory
from tests.hdl.external.shapes import external_parameters
from tests.hdl.stream_bench import StreamBench


class Fed(Elaboratable):
    """The batcher, and the memory of recent rows that it reads."""

    def __init__(self, parameters):
        self.dut = WriteBatcher(parameters)
        self.rows = KeyColumn(width=len(self.dut.row), depth=parameters.engine.recent_rows)

    def elaborate(self, platform):
        m = Module()
        m.submodules.dut, m.submodules.rows = self.dut, self.rows
        m.d.comb += [self.rows.address.eq(self.dut.address), self.dut.row.eq(self.rows.data)]
        return m


def write(parameters, count, *, latency, stalls, pauses, seed=0, fails=lambda address: False):
    """Complete so many rows, no more than there is room for; watch ``written`` all the time.

    Return the component, the memory, the rows, the cycles in which a row was complete and in which
    a beat was taken, and the number of errors that were told.
    """
    fed = Fed(parameters)
    dut, column = fed.dut, fed.rows
    bench = StreamBench(fed, deadline=4_000, stalls=stalls, seed=seed)
    memory = AxiMemory(dut.axi, latency=latency, stalls=stalls, seed=seed, fails=fails)
    memory.attach(bench.simulator)
    generator = random.Random(seed)
    depth, burst = parameters.engine.recent_rows, parameters.engine.memory_burst
    rows = [generator.getrandbits(len(dut.row)) for _ in range(count)]
    complete, beats, errors = [], [], []

    async def feed(ctx):
        head = cycle = 0
        while head < count or ctx.get(dut.busy) or ctx.get(dut.written) + burst <= count:
            written = ctx.get(dut.written)
            assert written <= head
            assert written % burst == 0
            ctx.set(dut.head, head)
            comes = head < count and head - written < depth and generator.random() >= pauses
            ctx.set(column.write, comes)
            ctx.set(column.place, head % depth)
            ctx.set(column.row, rows[head] if comes else 0)
            if comes:
                head += 1
                complete.append(cycle + 1)
            if ctx.get(dut.axi.wvalid) and ctx.get(dut.axi.wready):
                beats.append(cycle)
            errors.append(ctx.get(dut.wrong))
            await ctx.tick()
            cycle += 1
        bench.done()

    bench.spawn(feed)
    bench.run()
    return dut, memory, rows, complete, beats, sum(errors)


@settings(max_examples=8)
@given(
    burst=st.sampled_from([1, 2, 4, 16]),
    lanes=st.sampled_from([1, 3]),
    count=st.integers(0, 120),
    latency=st.sampled_from([1, 30]),
    stalls=st.sampled_from([0.0, 0.4]),
    pauses=st.sampled_from([0.0, 0.7]),
    seed=st.integers(0, 1 << 16),
)
def test_complete_bursts_are_written_and_nothing_else(
    burst, lanes, count, latency, stalls, pauses, seed
):
    parameters = external_parameters(lanes=lanes, memory_burst=burst, sub_window=200)
    _, memory, rows, *_ = write(
        parameters, count, latency=latency, stalls=stalls, pauses=pauses, seed=seed
    )
    size = parameters.engine.memory_width // 8
    whole = count // burst
    assert memory.writes == [(n * burst * size, burst) for n in range(whole)]
    assert [memory.word(n * size) for n in range(whole * burst)] == rows[: whole * burst]


def test_latency_and_a_row_per_cycle():
    parameters = external_parameters(memory_burst=4, memory_latency=40, sub_window=200)
    dut, _, _, complete, beats, _ = write(parameters, 40, latency=20, stalls=0.0, pauses=0.0)
    assert complete == list(range(complete[0], complete[0] + 40))
    assert beats[0] - complete[3] == dut.latency
    assert beats == list(range(beats[0], beats[0] + 40))


def test_an_error_of_the_memory_is_told():
    parameters = external_parameters(memory_burst=2)
    size = parameters.engine.memory_width // 8
    *_, errors = write(
        parameters, 20, latency=3, stalls=0.0, pauses=0.0, fails=lambda a: a == 4 * size
    )
    assert errors == 1

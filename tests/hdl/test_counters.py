# SPDX-License-Identifier: Apache-2.0
from amaranth.hdl import Value
import pytest

from hdl.accelerator import Accelerator
from hdl.counters import COUNTERS, ActivityTree
from hdl.layouts import input_word
from hdl.parameters import JoinParameters, KeyField
from tests.hdl.input_words import control_word, integer, tuple_word
from tests.hdl.stream_bench import StreamBench


def test_addresses_are_the_order_of_the_map():
    assert [counter.address for counter in COUNTERS] == list(range(len(COUNTERS)))
    assert len({counter.name for counter in COUNTERS}) == len(COUNTERS) <= 16


@pytest.mark.parametrize("cores", [1, 2, 3, 4, 7])
def test_activity_of_all_regions_is_summed(cores):
    parameters = JoinParameters(cores=cores, lanes=2, probes=3)
    dut = ActivityTree(parameters)
    bench = StreamBench(dut, deadline=100)

    async def process(ctx):
        for n, i in enumerate(dut.i):
            ctx.set(i, {"comparisons": n % 7, "busy": n % 2, "stalled": 1})
        await ctx.tick().repeat(dut.latency)
        assert ctx.get(dut.o.comparisons) == sum(n % 7 for n in range(2 * cores))
        assert ctx.get(dut.o.busy) == cores
        assert ctx.get(dut.o.stalled) == 2 * cores
        bench.done()

    bench.spawn(process)
    bench.run()


@pytest.mark.parametrize("probes", [1, 2])
def test_the_counters_count_what_happened(probes):
    parameters = JoinParameters(
        cores=2, sub_window=4, keys=(KeyField(name="x", bits=4),), probes=probes, lanes=2
    )
    # Eight of S, then eight of R: each R meets the last eight of S; one pair each.
    words = [
        control_word("PRECISION", 0, probes),
        control_word("BOUND_LOW", 0, 0),
        control_word("BOUND_HIGH", 0, 0),
        *(tuple_word(1, {"x": n}) for n in range(8)),
        *(tuple_word(0, {"x": n}) for n in range(8)),
        control_word("FLUSH"),
    ]
    dut = Accelerator(parameters)
    bench = StreamBench(dut, deadline=2_000, stalls=0.3, seed=2)
    bench.source(dut.i, [integer(input_word(parameters), word) for word in words])
    received = bench.sink(dut.o, 8 + 16 // probes + 2)
    found = {}

    async def read(ctx):
        while bench._pending > 1:
            await ctx.tick()
        await ctx.tick().repeat(10)
        for counter in COUNTERS:
            ctx.set(dut.counter_addr, counter.address)
            await ctx.tick()
            found[counter.name] = ctx.get(Value.cast(dut.counter_data))
        bench.done()

    bench.spawn(read)
    bench.run()
    assert found["tuples_r"] == found["tuples_s"] == found["results"] == 8
    assert found["comparisons"] == 8 * 8  # S never meets anything
    assert found["stars"] == 16 // probes
    assert found["marks"] == 2
    assert found["ingress_busy"] == len(words)
    assert found["output_busy"] == len(received)
    assert found["ingress_stalled"] + found["output_stalled"] > 0
    assert found["cycles"] > found["region_busy"] / 4 > 0
    assert found["disorder"] == 0

# SPDX-License-Identifier: Apache-2.0
import pytest

from hdl.accelerator import Accelerator
from hdl.counters import (
    COUNTERS,
    ActivityNode,
    ActivityTree,
    CounterBank,
    address_bits,
    counters_of,
)
from hdl.parameters import JoinParameters, KeyField
from hdl.tree import tree_levels
from hdl.words.inputs import input_word
from tests.hdl.counter_reader import counters_at_the_end
from tests.hdl.input_words import control_word, integer, tuple_word
from tests.hdl.stream_bench import StreamBench


def test_addresses_are_the_order_of_the_map():
    assert [counter.address for counter in COUNTERS] == list(range(len(COUNTERS)))
    assert len({counter.name for counter in COUNTERS}) == len(COUNTERS) <= 16


def test_parity_adds_counters_behind_the_address_of_none():
    parameters = JoinParameters.of()
    assert (counters_of(parameters), address_bits(parameters)) == (COUNTERS, 4)
    parameters = parameters.with_(failure_cycles=parameters.longest_silence, parity=True)
    added = counters_of(parameters)[len(COUNTERS) :]
    assert [(counter.name, counter.address) for counter in added] == [
        ("failures", 16),
        ("parity_errors", 17),
    ]
    assert address_bits(parameters) == 5


@pytest.mark.few(3)
@pytest.mark.parametrize("cores", [1, 2, 3, 4, 7])
def test_activity_of_all_regions_is_summed(cores):
    parameters = JoinParameters.of(cores=cores, lanes=2, probes=3)
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


@pytest.mark.parametrize("cores", [1, 4, 7])
def test_a_sum_per_cycle_after_the_latency(cores):
    dut = ActivityTree(JoinParameters.of(cores=cores, lanes=2, probes=3))
    assert dut.latency == len(tree_levels(2 * cores, ActivityNode.ARITY)) + 1
    bench = StreamBench(dut, deadline=100)
    sums = [n * n % 7 for n in range(30)]

    async def process(ctx):
        for n in range(len(sums)):
            if n >= dut.latency:
                assert ctx.get(dut.o.comparisons) == 2 * cores * sums[n - dut.latency]
            for i in dut.i:
                ctx.set(i.comparisons, sums[n])
            await ctx.tick()
        bench.done()

    bench.spawn(process)
    bench.run()


def test_a_node_sums_in_one_cycle():
    dut = ActivityNode(JoinParameters.of(lanes=2, probes=3), children=2, regions=1)
    assert dut.latency == 1
    bench = StreamBench(dut, deadline=100)

    async def process(ctx):
        for n in range(7):
            for i in dut.i:
                ctx.set(i, {"comparisons": n, "busy": n % 2, "stalled": 1 - n % 2})
            await ctx.tick()
            assert ctx.get(dut.o.comparisons) == 2 * n
            assert ctx.get(dut.o.busy) == 2 * (n % 2)
            assert ctx.get(dut.o.stalled) == 2 * (1 - n % 2)
        bench.done()

    bench.spawn(process)
    bench.run()


def test_a_counter_is_read_after_the_latency_and_counts_every_cycle():
    dut = CounterBank(JoinParameters.of())
    bench = StreamBench(dut, deadline=200)
    addresses = {counter.name: counter.address for counter in COUNTERS}

    async def process(ctx):
        ctx.set(dut.address, addresses["cycles"])
        await ctx.tick().repeat(dut.latency)
        first = ctx.get(dut.data)
        for n in range(1, 20):  # a new address in every cycle
            await ctx.tick()
            assert ctx.get(dut.data) == first + n
        ctx.set(dut.accepted, 0b10)
        ctx.set(dut.disorder, 1)
        await ctx.tick().repeat(10)
        ctx.set(dut.accepted, 0)
        await ctx.tick().repeat(2)  # what happens may be counted one cycle late
        names = ["tuples_s", "tuples_r", "disorder", "cycles"]
        found = []
        for n in range(len(names) + dut.latency):
            if n >= dut.latency:
                found.append(ctx.get(dut.data))
            ctx.set(dut.address, addresses[names[n]] if n < len(names) else 15)
            await ctx.tick()
        assert found[:3] == [10, 0, 1]
        await ctx.tick().repeat(dut.latency)
        assert ctx.get(dut.data) == 0  # no such counter
        bench.done()

    bench.spawn(process)
    bench.run()


def test_both_results_of_a_word_are_counted():
    dut = CounterBank(JoinParameters.of(engine="index", tuples_per_word=2))
    bench = StreamBench(dut, deadline=100)
    addresses = {counter.name: counter.address for counter in COUNTERS}

    async def process(ctx):
        ctx.set(dut.kinds, 2 | 1 << 2)  # two pairs and a star in every cycle
        await ctx.tick().repeat(5)
        ctx.set(dut.kinds, 1 << 4)  # a mark
        await ctx.tick()
        ctx.set(dut.kinds, 0)
        found = []
        for name in ("results", "stars", "marks"):
            ctx.set(dut.address, addresses[name])
            await ctx.tick().repeat(dut.latency)
            found.append(ctx.get(dut.data))
        assert found == [10, 5, 1]
        bench.done()

    bench.spawn(process)
    bench.run()


@pytest.mark.parametrize("probes", [2, pytest.param(1, marks=pytest.mark.long)])
def test_the_counters_count_what_happened(probes):
    parameters = JoinParameters.of(
        cores=2, sub_window=4, keys=(KeyField(name="x", bits=4),), probes=probes, lanes=2,
    )  # fmt: skip
    # Eight of S, then eight of R: each R meets the last eight of S; one pair each.
    words = [
        control_word("WINDOW", 2, 1),  # of no side
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
    found = counters_at_the_end(bench, dut)
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
    assert found["illegal"] == 1

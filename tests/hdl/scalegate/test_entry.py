# SPDX-License-Identifier: Apache-2.0
from amaranth.sim import Simulator

from hdl.scalegate.gate import SourceEntry
from hdl.scalegate.words import GateKind, gate_word, source_word
from tests.hdl.stream_bench import StreamBench

I_LAYOUT, O_LAYOUT = source_word(6, 4), gate_word(6, 4, sources=4)


def entry():
    return SourceEntry(I_LAYOUT, O_LAYOUT, number=3, depth=4)


def test_words_pass_in_order_with_the_number_of_the_source():
    dut = entry()
    bench = StreamBench(dut, deadline=1_000, stalls=0.3, seed=1)
    words = [{"kind": GateKind.TUPLE, "time": n, "body": n % 16} for n in range(40)]
    bench.source(dut.i, [I_LAYOUT.const(word) for word in words])
    received = bench.sink(dut.o, len(words))
    bench.run()
    found = [O_LAYOUT.from_bits(bits) for bits in received]
    assert [(one.time, one.body, one.source) for one in found] == [
        (word["time"], word["body"], 3) for word in words
    ]


def test_an_entry_has_its_latency_and_one_word_per_cycle():
    dut = entry()
    bench = StreamBench(dut, deadline=100)
    sent, taken = [], []
    bench.source(dut.i, [I_LAYOUT.const({"time": n}) for n in range(20)], stamps=sent)
    bench.sink(dut.o, 20, stamps=taken)
    bench.run()
    assert {b - a for a, b in zip(sent, taken, strict=True)} == {dut.latency}
    assert sent[-1] - sent[0] == 19


def run(process):
    dut = entry()
    simulator = Simulator(dut)
    simulator.add_clock(1e-6)

    async def testbench(ctx):
        await process(ctx, dut)

    simulator.add_testbench(testbench)
    simulator.run()


def test_a_stalled_source_leaves_when_its_deadline_has_passed():
    async def process(ctx, dut):
        ctx.set(dut.deadline, 5)
        await ctx.tick().repeat(3)
        ctx.set(dut.blamed, 1)
        cycles = 0
        while not ctx.get(dut.o.valid):
            cycles += 1
            assert cycles < 20
            await ctx.tick()
        # The source is excluded in the second cycle after its deadline.
        assert ctx.get(dut.stalls) == 5 + 2
        assert cycles == 5 + 1 + dut.latency
        assert ctx.get(dut.o.payload.kind) == GateKind.LEAVE
        assert ctx.get(dut.excluded)
        ctx.set(dut.o.ready, 1)
        ctx.set(dut.blamed, 0)
        ctx.set(dut.forget, 1)
        await ctx.tick()
        assert not ctx.get(dut.o.valid)
        assert not ctx.get(dut.excluded)

    run(process)


def test_a_deadline_that_is_set_while_a_source_stalls_counts_from_then_on():
    async def process(ctx, dut):
        ctx.set(dut.blamed, 1)
        await ctx.tick().repeat(30)
        assert not ctx.get(dut.excluded)
        ctx.set(dut.deadline, 5)
        await ctx.tick().repeat(5)
        assert not ctx.get(dut.excluded)
        await ctx.tick().repeat(3)
        assert ctx.get(dut.excluded)

    run(process)


def test_a_pause_begins_the_deadline_anew():
    async def process(ctx, dut):
        ctx.set(dut.deadline, 5)
        await ctx.tick()
        for _ in range(4):
            ctx.set(dut.blamed, 1)
            await ctx.tick().repeat(4)
            ctx.set(dut.blamed, 0)
            await ctx.tick()
            assert not ctx.get(dut.o.valid)
        assert ctx.get(dut.stalls) == 16

    run(process)


def test_a_source_without_a_deadline_is_waited_for():
    async def process(ctx, dut):
        ctx.set(dut.blamed, 1)
        await ctx.tick().repeat(50)
        ctx.set(dut.blamed, 0)
        await ctx.tick()
        assert not ctx.get(dut.o.valid)
        assert ctx.get(dut.stalls) == 50

    run(process)


def test_a_source_whose_word_is_there_is_not_excluded():
    async def process(ctx, dut):
        ctx.set(dut.i.payload, I_LAYOUT.const({"time": 7}))
        ctx.set(dut.i.valid, 1)
        await ctx.tick()
        ctx.set(dut.i.valid, 0)
        ctx.set(dut.exclude, 1)
        await ctx.tick()
        ctx.set(dut.exclude, 0)
        await ctx.tick()
        assert not ctx.get(dut.excluded)
        assert ctx.get(dut.o.valid)
        assert ctx.get(dut.o.payload.kind) == GateKind.TUPLE
        # Nor is it while its word is all that has left the queue.
        ctx.set(dut.exclude, 1)
        await ctx.tick()
        assert not ctx.get(dut.excluded)

    run(process)


def test_a_word_that_comes_with_the_exclusion_follows_it():
    async def process(ctx, dut):
        ctx.set(dut.i.payload, I_LAYOUT.const({"time": 7}))
        ctx.set(dut.i.valid, 1)
        ctx.set(dut.exclude, 1)
        await ctx.tick()
        ctx.set(dut.i.valid, 0)
        ctx.set(dut.exclude, 0)
        await ctx.tick().repeat(dut.latency - 1)
        assert ctx.get(dut.o.payload.kind) == GateKind.LEAVE
        ctx.set(dut.o.ready, 1)
        await ctx.tick()
        assert ctx.get(dut.o.valid)
        assert ctx.get(dut.o.payload.kind) == GateKind.TUPLE
        assert ctx.get(dut.o.payload.time) == 7

    run(process)

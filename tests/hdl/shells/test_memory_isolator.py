# SPDX-License-Identifier: Apache-2.0
"""A master that stops in the middle of its transactions, and what the memory sees of that."""

import pytest

from hdl.parameters import JoinParameters
from hdl.shells.bus_crossing import MemoryIsolator
from tests.hdl.axi_memory import AxiMemory
from tests.hdl.stream_bench import StreamBench

#: Four beats of four bytes in a burst.
PARAMETERS = JoinParameters.of(
    cores=1, sub_window=9, store="external", memory_width=32, memory_burst=4, memory_latency=9
)
#: Content of a beat.
WORDS = [0x11111111 * n for n in range(1, 9)]


async def request(ctx, axi, channel, row, beats=4):
    """Request a burst, and wait until it is taken."""
    ctx.set(getattr(axi, f"{channel}addr"), 4 * row)
    ctx.set(getattr(axi, f"{channel}len"), beats - 1)
    ctx.set(getattr(axi, f"{channel}size"), 2)
    ctx.set(getattr(axi, f"{channel}burst"), 1)
    await offered(ctx, getattr(axi, f"{channel}valid"), getattr(axi, f"{channel}ready"))


async def offered(ctx, valid, ready):
    """Offer what is set until it is taken."""
    ctx.set(valid, 1)
    while True:
        *_, taken = await ctx.tick().sample(ready)
        if taken:
            break
    ctx.set(valid, 0)


async def write(ctx, axi, words, lasts):
    """Send beats."""
    for word, last in zip(words, lasts, strict=True):
        ctx.set(axi.wdata, word)
        ctx.set(axi.wstrb, 15)
        ctx.set(axi.wlast, last)
        await offered(ctx, axi.wvalid, axi.wready)


@pytest.mark.few(3)
@pytest.mark.parametrize("sent", [0, 1, 3, 4])
@pytest.mark.parametrize(("latency", "stalls"), [(1, 0.0), (40, 0.4)])
def test_bursts_that_were_begun_end_and_answers_are_dropped(sent, latency, stalls):
    dut = MemoryIsolator(PARAMETERS)
    bench = StreamBench(dut, deadline=2_000)
    memory = AxiMemory(dut.o, latency=latency, stalls=stalls, seed=sent)
    memory.attach(bench.simulator)
    answers = {"before": 0, "while": 0, "after": 0}
    times = ["before"]

    async def program(ctx):
        await request(ctx, dut.i, "aw", 0)
        await write(ctx, dut.i, WORDS[:4], (0, 0, 0, 1))
        await request(ctx, dut.i, "aw", 4)
        await write(ctx, dut.i, WORDS[4 : 4 + sent], [n == 3 for n in range(sent)])
        await request(ctx, dut.i, "ar", 0)
        await request(ctx, dut.i, "ar", 8, 3)
        times.append("while")
        ctx.set(dut.closed, 1)
        ctx.set(dut.i.arvalid, 1)  # not taken from a master that is in reset
        await ctx.tick()
        ctx.set(dut.i.arvalid, 0)
        while ctx.get(dut.busy):
            await ctx.tick()
        assert memory.writes == [(0, 4), (16, 4)]
        assert memory.reads == [(0, 4), (32, 3)]
        assert not memory.is_busy
        times.append("after")
        ctx.set(dut.closed, 0)
        await request(ctx, dut.i, "ar", 4)
        while answers["after"] < 4:
            await ctx.tick()
        bench.done()

    async def watch(ctx):
        while True:
            *_, valid, _ = await ctx.tick().sample(dut.i.rvalid, dut.i.rdata)
            answers[times[-1]] += valid

    bench.simulator.add_testbench(watch, background=True)
    bench.spawn(program)
    bench.run()
    assert answers["while"] == 0
    assert answers["after"] == 4
    assert [memory.word(4 * n) for n in range(4 + sent)] == WORDS[: 4 + sent]
    assert all(memory.word(4 * n) not in WORDS for n in range(4 + sent, 8))


def test_every_channel_moves_once_per_cycle_and_a_request_takes_one():
    dut = MemoryIsolator(PARAMETERS)
    bench = StreamBench(dut, deadline=500)
    memory = AxiMemory(dut.o, latency=1)
    memory.attach(bench.simulator)
    taken = []

    async def program(ctx):
        for n in range(4):
            await request(ctx, dut.i, "ar", 4 * n)
        while len(taken) < 16:
            await ctx.tick()
        bench.done()

    async def watch(ctx):
        cycle = 0
        while True:
            *_, valid = await ctx.tick().sample(dut.i.rvalid)
            taken.extend([cycle] * valid)
            cycle += 1

    bench.simulator.add_testbench(watch, background=True)
    bench.spawn(program)
    bench.run()
    # Taken in cycle 0, requested of the memory in the next one, and answered in the one after it.
    assert taken == list(range(dut.latency + 1, dut.latency + 17))

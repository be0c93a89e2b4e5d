# SPDX-License-Identifier: Apache-2.0
import random

from amaranth.hdl import Cat, ClockDomain, Module
import pytest

from hdl.local_reset import ResetTree
from tests.hdl.stream_bench import StreamBench


@pytest.mark.parametrize(("leaves", "latency"), [(1, 2), (2, 2), (4, 2), (5, 3), (16, 3), (19, 4)])
def test_every_leaf_gets_reset_after_the_latency(leaves, latency):
    dut = ResetTree(leaves)
    assert dut.latency == latency
    m = Module()
    m.domains.sync = sync = ClockDomain()
    m.submodules.dut = dut
    bench = StreamBench(m, deadline=1_000)
    source = random.Random(leaves)
    sent = [source.getrandbits(1) for _ in range(50)] + [0] * dut.latency
    seen = []

    async def drive(ctx):
        for reset in sent:
            ctx.set(sync.rst, reset)
            seen.append(ctx.get(Cat(dut.o)))
            await ctx.tick()
        bench.done()

    bench.spawn(drive)
    bench.run()
    everywhere = (1 << leaves) - 1
    assert seen[dut.latency :] == [reset * everywhere for reset in sent[: -dut.latency]]

# SPDX-License-Identifier: Apache-2.0
"""A bank of heads of the index against a list."""

import random

from hdl.index.heads import HeadBank
from tests.hdl.ecp5 import simulate


def test_a_store_gets_what_was_there_and_a_visit_sees_it_a_cycle_later(platform):
    dut = HeadBank(width=5, bits=2)
    assert dut.latency == HeadBank.LATENCY == 3
    generator = random.Random(3)
    table, expected = [0] * 4, []

    async def bench(ctx):
        for cycle in range(300):
            store = generator.randrange(2)
            bucket, visited = generator.randrange(4), generator.randrange(4)
            head = generator.randrange(32)
            ctx.set(dut.store, store)
            ctx.set(dut.bucket, bucket)
            ctx.set(dut.visited, visited)
            ctx.set(dut.head, head)
            expected.append((table[bucket], table[visited], head, store and bucket == visited))
            if store:
                table[bucket] = head
            await ctx.tick()
            if cycle + 1 >= dut.latency:
                previous, newest, new, either = expected[cycle + 1 - dut.latency]
                assert ctx.get(dut.previous) == previous
                assert ctx.get(dut.newest) in ((newest, new) if either else (newest,))

    simulate(dut, platform, bench)

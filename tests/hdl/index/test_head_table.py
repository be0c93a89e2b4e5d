# SPDX-License-Identifier: Apache-2.0
"""The table of heads of the index, in banks, against a list."""

import random

import pytest

from hdl.index.heads import HeadTable
from hdl.index.layouts import bank_count
from hdl.parameters import JoinParameters
from tests.hdl.ecp5 import simulate


@pytest.mark.few(4)
@pytest.mark.parametrize(
    ("comparator", "bucket_bits", "banks"),
    [("equality", 3, 1), ("band", 3, 2), ("band", 2, 2), ("band", 1, 1)],
)
def test_a_store_gets_what_was_there_and_a_visit_of_every_bank_sees_it_a_cycle_later(
    platform, comparator, bucket_bits, banks
):
    parameters = JoinParameters.of(
        engine="index", comparator=comparator, sub_window=20, bucket_bits=bucket_bits
    )
    assert bank_count(parameters) == banks
    dut = HeadTable(parameters)
    assert dut.latency == 3
    generator = random.Random(bucket_bits)
    buckets = 1 << bucket_bits
    table, expected = [0] * buckets, []

    async def bench(ctx):
        for cycle in range(300):
            store, bucket = generator.randrange(2), generator.randrange(buckets)
            head = generator.randrange(1 << len(dut.head))
            visited = [
                bank + banks * generator.randrange(buckets // banks) for bank in range(banks)
            ]
            ctx.set(dut.store, store)
            ctx.set(dut.bucket, bucket)
            ctx.set(dut.head, head)
            for bank, number in enumerate(visited):
                ctx.set(dut.visited[bank], number // banks)
            seen = [{table[n], head if store and n == bucket else table[n]} for n in visited]
            expected.append((table[bucket], seen))
            if store:
                table[bucket] = head
            await ctx.tick()
            if cycle + 1 >= dut.latency:
                previous, seen = expected[cycle + 1 - dut.latency]
                assert ctx.get(dut.previous) == previous
                for bank, heads in enumerate(seen):
                    assert ctx.get(dut.newest[bank]) in heads

    simulate(dut, platform, bench)

# SPDX-License-Identifier: Apache-2.0
"""The memory of a region, inferred and built of primitives."""

import random

import pytest

from hdl.parameters import JoinParameters, KeyField
from hdl.scan.ring import KeyRing
from hdl.words.prepared import stored_layout
from tests.halves import half
from tests.hdl.ecp5 import simulate


@pytest.mark.parametrize(
    ("lanes", "bits"),
    half([1, 2, 3, 4], [7, 12, 20, 40], of=4),
)
def test_a_row_reads_as_it_was_written_lane_by_lane(platform, lanes, bits):
    parameters = JoinParameters.of(sub_window=9, lanes=lanes, keys=(KeyField(name="x", bits=bits),))
    dut = KeyRing(parameters, stored_layout(parameters))
    generator = random.Random(lanes)
    depth = parameters.ring_rows
    share = max(1, 36 // bits)  # lanes of a column
    rows = [[None] * lanes for _ in range(depth)]

    async def bench(ctx):
        wanted = []  # rows as they were when they were read
        lane = row = 0
        for _ in range(400):
            store = generator.random() < 0.7
            read = generator.randrange(depth)
            key = generator.getrandbits(bits)
            ctx.set(dut.store, store)
            ctx.set(dut.place, {"lane": lane, "row": row})
            ctx.set(dut.key, {"x": key})
            ctx.set(dut.address, read)
            column = range(lane // share * share, min((lane // share + 1) * share, lanes))
            seen = list(rows[read])
            if store:
                for n in column:  # lanes after the stored one: anything
                    if read == row % depth:
                        seen[n] = None
                    if n >= lane:
                        rows[row % depth][n] = key if n == lane else None
                lane, row = (lane + 1, row) if lane + 1 < lanes else (0, (row + 1) % (2 * depth))
            wanted.append(seen)
            await ctx.tick()
            if len(wanted) == dut.latency:
                for n, expected in enumerate(wanted.pop(0)):
                    assert expected is None or ctx.get(dut.keys[n].x) == expected
        ctx.set(dut.store, 0)
        for row, expected in enumerate(rows):
            ctx.set(dut.address, row)
            await ctx.tick().repeat(dut.latency)
            for n, key in enumerate(expected):
                assert key is None or ctx.get(dut.keys[n].x) == key

    simulate(dut, platform, bench)

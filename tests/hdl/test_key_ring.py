# SPDX-License-Identifier: Apache-2.0
import random

from amaranth.sim import Simulator
import pytest

from hdl.key_ring import KeyRing
from hdl.parameters import JoinParameters, KeyField


@pytest.mark.parametrize("lanes", [1, 2, 3, 4])
def test_a_row_reads_as_it_was_written_lane_by_lane(lanes):
    parameters = JoinParameters(sub_window=9, lanes=lanes, keys=(KeyField(name="x", bits=7),))
    dut = KeyRing(parameters)
    generator = random.Random(lanes)
    rows = [[None] * lanes for _ in range(parameters.ring_rows)]
    simulator = Simulator(dut)
    simulator.add_clock(1e-6)

    async def bench(ctx):
        wanted = []  # rows as they were when they were read, and what was written meanwhile
        for _ in range(300):
            lane, row = generator.randrange(lanes), generator.randrange(2 * parameters.ring_rows)
            key, read = generator.randrange(128), generator.randrange(parameters.ring_rows)
            ctx.set(dut.store, 1)
            ctx.set(dut.place, {"lane": lane, "row": row})
            ctx.set(dut.key, {"x": key})
            ctx.set(dut.address, read)
            wanted.append((read, list(rows[read]), (row % parameters.ring_rows, lane)))
            rows[row % parameters.ring_rows][lane] = key
            await ctx.tick()
            if len(wanted) < dut.latency:
                continue
            read, before, written = wanted.pop(0)
            for n in range(lanes):  # a lane that is written while it is read may read either way
                if before[n] is not None and (read, n) != written:
                    assert ctx.get(dut.keys[n].x) == before[n]
        ctx.set(dut.store, 0)
        for row, expected in enumerate(rows):
            ctx.set(dut.address, row)
            await ctx.tick().repeat(dut.latency)
            for n, key in enumerate(expected):
                assert key is None or ctx.get(dut.keys[n].x) == key

    simulator.add_testbench(bench)
    simulator.run()

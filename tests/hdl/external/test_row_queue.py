# SPDX-License-Identifier: Apache-2.0
"""A queue of rows against a deque."""

from collections import deque
import random

from amaranth.sim import Simulator
import pytest

from hdl.external.reads import RowQueue


@pytest.mark.parametrize("depth", [2, 4, 16])
def test_rows_leave_in_order_and_come_two_cycles_after_they_were_taken(depth):
    dut = RowQueue(8, depth=depth)
    generator = random.Random(depth)

    async def bench(ctx):
        held, due = deque(), deque([None] * (dut.latency - 1))
        for _ in range(300):
            assert ctx.get(dut.filled) == bool(held)  # a row that was added a cycle ago is told
            add = len(held) < depth and generator.random() < 0.6
            take = bool(held) and generator.random() < 0.6
            row = generator.getrandbits(8)
            ctx.set(dut.add, add)
            ctx.set(dut.last, row)
            ctx.set(dut.take, take)
            due.append(held.popleft() if take else None)
            if add:
                held.append(row)
            await ctx.tick()
            expected = due.popleft()
            assert expected is None or ctx.get(dut.row) == expected

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()


@pytest.mark.parametrize("depth", [0, 1, 6])
def test_the_depth_is_a_power_of_two(depth):
    with pytest.raises(ValueError, match=f"must be a power of two, not {depth}"):
        RowQueue(8, depth=depth)

# SPDX-License-Identifier: Apache-2.0
from amaranth import *
from amaranth.sim import Simulator
import pytest

from hdl.ecp5 import is_below


@pytest.mark.parametrize(("width", "other"), [(1, 1), (2, 3), (3, 2), (4, 4)])
def test_every_pair_of_numbers_is_in_order(width, other):
    m = Module()
    a, b, below = Signal(width), Signal(other), Signal()
    m.d.comb += below.eq(is_below(m, a, b))

    async def bench(ctx):
        for first in range(1 << width):
            for second in range(1 << other):
                ctx.set(a, first)
                ctx.set(b, second)
                assert ctx.get(below) == (first < second)

    simulator = Simulator(m)
    simulator.add_testbench(bench)
    simulator.run()

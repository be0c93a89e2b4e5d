# SPDX-License-Identifier: Apache-2.0
"""The comparisons of passes, from the spans of their probes."""

import random

from amaranth.sim import Simulator
import pytest

from hdl.parameters import JoinParameters
from hdl.scan.ring import SpanCount


@pytest.mark.few(3)
@pytest.mark.parametrize(("lanes", "probes"), [(1, 1), (2, 3), (3, 2), (4, 5), (15, 4), (26, 3)])
def test_every_pass_counts_all_its_comparisons_by_its_last_row(lanes, probes):
    parameters = JoinParameters.of(lanes=lanes, probes=probes, sub_window=9 * lanes, probe_bits=3)
    dut = SpanCount(parameters)
    generator = random.Random(lanes)
    rows = parameters.ring_rows
    total = 0

    def pointer(number):
        return {"lane": number % lanes, "row": number // lanes % (2 * rows)}

    async def bench(ctx):
        nonlocal total
        expected, base, steps = 0, 0, 0  # of the pass under way
        for _ in range(60):
            base += generator.randrange(lanes * rows)
            first, stop, wanted = base, base, 0
            for _ in range(generator.randrange(probes + 1)):
                size = generator.choice([0, 1, lanes, (rows - 3) * lanes, generator.randrange(90)])
                base = max(base, stop - size)
                stop = max(stop, min(base + size, first + (rows - 1) * lanes))
                ctx.set(dut.span, {"tail": pointer(base), "head": pointer(stop)})
                ctx.set(dut.add, 1)
                await tick(ctx)
                ctx.set(dut.add, 0)
                wanted += stop - base
                if generator.random() < 0.3:
                    await tick(ctx)
            # The rows of the pass before, the last of them as the next pass begins.
            for n in range(steps):
                ctx.set(dut.step, 1)
                ctx.set(dut.begin, n == steps - 1)
                await tick(ctx)
                ctx.set(dut.step, 0)
                ctx.set(dut.begin, 0)
                if n < steps - 1 and generator.random() < 0.2:
                    await tick(ctx)
            if not steps:
                ctx.set(dut.begin, 1)
                await tick(ctx)
                ctx.set(dut.begin, 0)
            for _ in range(dut.latency - 1):
                await tick(ctx)
            assert total + ctx.get(dut.comparisons) == expected
            expected += wanted
            steps = max(1, -(-stop // lanes) - first // lanes)

    async def tick(ctx):
        nonlocal total
        now = ctx.get(dut.comparisons)
        assert now <= lanes * probes
        total += now
        await ctx.tick()

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()

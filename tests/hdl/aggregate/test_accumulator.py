# SPDX-License-Identifier: Apache-2.0
"""The open pane: tuples of few keys in every cycle, and gaps of every length."""

import random

from amaranth.sim import Simulator

from hdl.aggregate.accumulator import PaneAccumulator
from tests.hdl.aggregate.operators import aggregate_parameters, operator

ROWS = 4


def test_every_tuple_is_in_its_entry_however_close_the_one_before_was():
    dut = PaneAccumulator(aggregate_parameters(operator("sum", "max", "count"), keys=ROWS))
    generator = random.Random(1)

    async def bench(ctx):
        for round_ in range(12):
            bank = round_ % 2
            ctx.set(dut.scanned, 0b10 >> bank)
            ctx.set(dut.clear, 0b10 >> bank)  # the other bank is cleared meanwhile
            entries = {}
            busy = generator.choice([1.0, 0.7, 0.4])
            for cycle in range(60):
                ctx.set(dut.clear_row, cycle % ROWS)
                row, value = generator.choice([0, 0, 1, generator.randrange(ROWS)]), cycle - 30
                add = round_ > 1 and generator.random() < busy
                ctx.set(dut.add, add)
                ctx.set(dut.bank, bank)
                ctx.set(dut.row, row)
                ctx.set(dut.lifted, {"total": value, "greatest": value - 3, "tuples": 1})
                if add:
                    entries.setdefault(row, []).append(value)
                await ctx.tick()
            ctx.set(dut.add, 0)
            ctx.set(dut.clear, 0)
            await ctx.tick().repeat(dut.settling - 1)
            ctx.set(dut.scanned, 1 << bank)
            for row in range(ROWS):
                ctx.set(dut.scan_row, row)
                await ctx.tick().repeat(dut.latency_of_scan)
                entry = ctx.get(dut.entry)
                values = entries.get(row, [])
                assert entry.touched == bool(values) or round_ == 0
                if values:
                    found = entry.partial.total, entry.partial.greatest, entry.partial.tuples
                    assert found == (sum(values), max(values) - 3, len(values))

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()

# SPDX-License-Identifier: Apache-2.0
import random

import pytest

from hdl.parameters import JoinParameters, KeyField
from hdl.predicates.cells import DoubleCells
from tests.hdl.cell_digests import doubles_of, key_digest_of, part_widths
from tests.hdl.ecp5 import simulate


@pytest.mark.parametrize("lanes", [1, 2, 3, 4, 7])
@pytest.mark.parametrize(("fields", "bits"), [(1, 2), (1, 3), (2, 5), (2, 16), (3, 7), (4, 24)])
def test_a_row_per_cycle_a_cycle_later(lanes, fields, bits):
    keys = tuple(KeyField(name=f"k{n}", bits=9) for n in range(fields))
    dut = DoubleCells(JoinParameters.of(lanes=lanes, sub_window=lanes, keys=keys, digest_bits=bits))
    widths = part_widths(bits, fields)
    assert dut.widths == widths
    assert dut.latency == DoubleCells.LATENCY == 1
    generator = random.Random(f"{lanes} {bits}")
    rows = [
        [[generator.randrange(1 << width) for width in widths] for _ in range(lanes)]
        for _ in range(40)
    ]

    async def bench(ctx):
        for row in rows:
            ctx.set(dut.cells, [{"digest": key_digest_of(widths, cells)} for cells in row])
            await ctx.tick()
            for lane, cells in enumerate(row):
                found = ctx.get(dut.doubles[lane])
                assert {"even": found.even, "odd": found.odd} == doubles_of(widths, cells)

    simulate(dut, None, bench)

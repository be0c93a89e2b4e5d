# SPDX-License-Identifier: Apache-2.0
"""Layouts of a band digest, and its double cells, against plain numbers."""

from amaranth import *
import pytest

from hdl.parameters import JoinParameters, KeyField
from hdl.predicates.cells import (
    cell_layout,
    digest_parts,
    double_cells,
    double_cells_layout,
    probe_digest,
)
from tests.hdl.cell_digests import doubles_of, part_widths, probe_digest_of
from tests.hdl.ecp5 import simulate


def band(fields, bits, digest_bits):
    """An accelerator with band digests."""
    keys = tuple(KeyField(name=f"k{n}", bits=bits) for n in range(fields))
    return JoinParameters.of(keys=keys, digest_bits=digest_bits)


@pytest.mark.parametrize("width", [2, 3, 4, 7])
def test_every_cell_lies_in_one_double_cell_of_each_grid(width):
    cell, digest = Signal(width), Signal(width)
    even, odd = Signal(width - 1), Signal(width - 1)
    m = Module()
    m.d.comb += [
        Cat(even, odd).eq(Cat(double_cells(cell))),
        digest.eq(probe_digest([cell])),
    ]

    async def bench(ctx):
        for value in range(1 << width):
            ctx.set(cell, value)
            found = {"even": ctx.get(even), "odd": ctx.get(odd)}
            assert found == doubles_of([width], [value])
            assert ctx.get(digest) == probe_digest_of([width], [value])

    m.d.sync += Signal().eq(0)
    simulate(m, None, bench)


@pytest.mark.parametrize(("fields", "bits"), [(1, 7), (2, 9), (3, 16), (4, 8), (5, 24)])
def test_parts_share_the_bits_of_a_digest(fields, bits):
    parameters = band(fields, 32, bits)
    widths = digest_parts(parameters)
    assert widths == part_widths(bits, fields)
    assert sum(widths) == bits
    assert double_cells_layout(widths).size == 2 * (bits - fields)


@pytest.mark.parametrize(
    ("fields", "bits", "size"), [(1, 15, 4), (1, 16, 5), (2, 16, 6), (3, 64, 9)]
)
def test_a_shift_may_leave_nothing_of_the_widest_field(fields, bits, size):
    assert cell_layout(band(fields, bits, 2 * fields)).size == size

# SPDX-License-Identifier: Apache-2.0
"""The comparator of cells, as logic and as a carry chain, against cells as numbers."""

from itertools import pairwise, product
import random

import pytest

from hdl import ecp5 as carry_chain
from hdl.predicates.cells import CellComparator
from tests.hdl.cell_digests import doubles_of, probe_digest_of
from tests.hdl.ecp5 import CCU2C, ECP5, simulate


@pytest.fixture(autouse=True)
def modelled(monkeypatch):
    monkeypatch.setattr(carry_chain, "Instance", CCU2C)


def meets(widths, stored, first):
    """Whether each stored cell is the probe's first one or the one after it."""
    return all(
        cell in (probe, (probe + 1) % (1 << width))
        for width, cell, probe in zip(widths, stored, first, strict=True)
    )


def check(widths, pairs, platform):
    """Compare a pair of cells in every cycle; return how many match, and how many do not."""
    dut = CellComparator(widths)
    found = [0, 0]

    async def bench(ctx):
        for stored, first in pairs:
            ctx.set(dut.key, doubles_of(widths, stored))
            ctx.set(dut.criterion.digest, probe_digest_of(widths, first))
            for _ in range(dut.latency):
                await ctx.tick()
            expected = meets(widths, stored, first)
            assert ctx.get(dut.match) == expected, (stored, first)
            found[expected] += 1

    simulate(dut, platform, bench)
    return found


PLATFORMS = pytest.mark.parametrize("platform", [None, ECP5()], ids=["logic", "chain"])


@PLATFORMS
@pytest.mark.parametrize("widths", [[2], [3], [4], [2, 2], [2, 3]])
def test_all_cells_of_few_bits(widths, platform):
    cells = list(product(*(range(1 << width) for width in widths)))
    missed, matched = check(widths, list(product(cells, cells)), platform)
    assert matched == 2 ** len(widths) * len(cells)
    assert missed == len(cells) ** 2 - matched


@PLATFORMS
@pytest.mark.parametrize("widths", [[8, 8], [16], [6, 5, 5], [9, 9], [24]])
def test_every_bit_of_a_part_decides(widths, platform):
    generator = random.Random(str(widths))
    pairs = []
    for _ in range(40):
        first = [generator.randrange(1 << width) for width in widths]
        near = [
            (cell + generator.randrange(2)) % (1 << width)
            for cell, width in zip(first, widths, strict=True)
        ]
        pairs.append((near, first))
        for n, width in enumerate(widths):
            flipped = list(near)
            flipped[n] ^= 1 << generator.randrange(width)
            pairs.append((flipped, first))
    missed, matched = check(widths, pairs, platform)
    assert min(missed, matched) >= 30


def test_latency_and_a_comparison_per_cycle():
    dut = CellComparator([3, 2])
    generator = random.Random(3)
    cells = [[generator.randrange(8), generator.randrange(4)] for _ in range(200)]
    expected, seen = [], []

    async def bench(ctx):
        for stored, first in pairwise(cells):
            ctx.set(dut.key, doubles_of([3, 2], stored))
            ctx.set(dut.criterion.digest, probe_digest_of([3, 2], first))
            await ctx.tick()
            seen.append(ctx.get(dut.match))
            expected.append(meets([3, 2], stored, first))

    simulate(dut, None, bench)
    assert dut.latency == 1
    assert seen == expected
    assert 0 < sum(seen) < len(seen)


@pytest.mark.parametrize("widths", [[], [1], [4, 1]])
def test_a_part_has_a_grid_and_a_double_cell(widths):
    with pytest.raises(ValueError, match="must have at least 2 bits, not"):
        CellComparator(widths)

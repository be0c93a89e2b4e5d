# SPDX-License-Identifier: Apache-2.0
"""Comparison of band digests: is a stored key in the first cell of a probe, or in the next one?"""

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.ecp5 import is_ecp5
from hdl.words.cells import double_cells_layout

from .carry_chain import ONE, elaborate_luts

__all__ = ["CellComparator"]

#: Table of a LUT that passes the carry on if C is the one of A and B that D chooses: A for 0.
CHOSEN = sum(1 << n for n in range(16) if (n >> 1 if n & 8 else n) & 1 == n >> 2 & 1)


class CellComparator(wiring.Component):
    """Compare the cells of a stored key with those of a probe, and say whether the key may match.

    A range that is no wider than a cell meets the cell in which it begins, and perhaps the next
    one. These two are one double cell of the even or of the odd grid
    (:func:`hdl.words.cells.double_cells_layout`). The probe brings the grid and the number of the
    double cell, so one comparison for equality tells whether the key lies in either cell.

    On an ECP5 the comparator is a carry chain with one LUT per compared bit, one that starts the
    carry, and one that brings it out. The LUT of a bit also chooses the grid.

    Latency: 1 cycle. Throughput: 1 comparison per cycle.

    Parameters
    ----------
    widths : list of int
        Bits of a cell number in each part of the digest, at least two each.

    Members
    -------
    criterion : In(wiring.Signature({"digest": Out(sum(widths))}))
        From the lowest bit up: for each part the grid, 1 for the odd one; then the numbers of the
        double cells, one below the other.
    key : In(double_cells_layout(widths))
    match : Out(1)
        The key lies, in all parts, in the double cell of the probe.
    """

    def __init__(self, widths):
        if not widths or min(widths) < 2:
            raise ValueError(
                f"Each part of a band digest must have at least 2 bits, not {widths!r}"
            )
        self.widths = list(widths)
        self.latency = 1
        digest = wiring.Signature({"digest": Out(sum(widths))})
        super().__init__(
            {"criterion": In(digest), "key": In(double_cells_layout(widths)), "match": Out(1)}
        )

    def elaborate(self, platform):
        m = Module()
        digest, parts = self.criterion.digest, len(self.widths)
        # The grid of each compared bit.
        grids = Cat(digest[n].replicate(width - 1) for n, width in enumerate(self.widths))
        double = digest[parts:]
        even, odd = self.key.even, self.key.odd
        match = Signal(reset_less=True)
        m.d.comb += self.match.eq(match)
        if is_ecp5(platform):
            holds = Signal()
            elaborate_luts(m, chain(even, odd, double, grids, holds))
            m.d.sync += match.eq(holds)
        else:
            chosen = Signal.like(even)
            m.d.comb += chosen.eq(even ^ ((even ^ odd) & grids))
            m.d.sync += match.eq(chosen == double)
        return m


def chain(even, odd, double, grids, holds):
    """Return the LUTs of the carry chain, as :func:`elaborate_luts` takes them."""
    ones = Const(-1, 4)
    bits = zip(even, odd, double, grids, strict=True)
    return [
        (ONE, "NO", ones, None),
        *((CHOSEN, "YES", inputs, None) for inputs in bits),
        (0, "NO", ones, holds),  # the sum is zero plus the carry
    ]

# SPDX-License-Identifier: Apache-2.0
"""Double cells of a row of band digests, computed once for all probes."""

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.words.cells import digest_parts, double_cells, double_cells_layout
from hdl.words.prepared import stored_layout

from .layouts import row_layout

__all__ = ["DoubleCells"]


class DoubleCells(wiring.Component):
    """Turn the cells of every lane into the double cells that they lie in, in both grids.

    The key ring stores cells, which are half as wide. Each lane adds one to its cells here, and all
    comparators of the lane use the sum.

    Latency: :attr:`LATENCY` cycle. Throughput: 1 row per cycle.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator; a band with digests.

    Members
    -------
    cells : In
        Digests of a row, as read from a :class:`hdl.scan.key_ring.KeyRing`.
    doubles : Out
        Their double cells.
    """

    LATENCY = 1

    def __init__(self, parameters):
        self.parameters = parameters
        self.widths = digest_parts(parameters)
        self.latency = self.LATENCY
        doubles = double_cells_layout(self.widths)
        super().__init__(
            {
                "cells": In(row_layout(parameters, stored_layout(parameters.scanned))),
                "doubles": Out(row_layout(parameters, doubles)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        for lane in range(self.parameters.lanes):
            digest, first = self.cells[lane].digest, 0
            parts = []
            for width in self.widths:
                parts.append(double_cells(digest[first : first + width]))
                first += width
            even, odd = zip(*parts, strict=True)
            doubles = Signal(self.doubles[lane].shape(), name=f"doubles_{lane}", reset_less=True)
            m.d.sync += [doubles.even.eq(Cat(even)), doubles.odd.eq(Cat(odd))]
            m.d.comb += self.doubles[lane].eq(doubles)
        return m

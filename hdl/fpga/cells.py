# SPDX-License-Identifier: Apache-2.0
"""Cells of a netlist, counted by the resources of a device that they take."""

from collections import Counter
from dataclasses import asdict, dataclass

from .packing import CARRY_SITES, RAM_SITES, carry_feeds

__all__ = ["CELLS", "Cost", "cost_of"]

#: Cells of the ECP5 that are counted, and their names in a report.
CELLS = {
    "LUT4": "luts",
    "CCU2C": "carry_cells",
    "TRELLIS_DPR16X4": "distributed_rams",
    "TRELLIS_FF": "registers",
    "DP16KD": "block_rams",
    "MULT18X18D": "multipliers",
}


@dataclass(frozen=True, kw_only=True)
class Cost:
    """Cells that a component or a whole design takes.

    Parameters
    ----------
    luts : int
        Four-input look-up tables that only serve as such.
    carry_cells : int
        Carry cells; each handles two bits of an adder or a comparator and takes the place of two
        LUTs.
    carry_feeds : int
        Carry cells that nextpnr adds where a carry comes from the fabric or goes there
        (:func:`hdl.fpga.packing.carry_feeds`).
    distributed_rams : int
        Distributed RAMs of 16 words of 4 bits; each takes the place of six LUTs, two of them for
        its write port.
    registers : int
    block_rams : int
    multipliers : int
        Multipliers of 18 by 18 bits.
    """

    luts: int = 0
    carry_cells: int = 0
    carry_feeds: int = 0
    distributed_rams: int = 0
    registers: int = 0
    block_rams: int = 0
    multipliers: int = 0

    @property
    def logic_cells(self):
        """Return the number of LUT sites that the cells take."""
        carries = self.carry_cells + self.carry_feeds
        return self.luts + CARRY_SITES * carries + RAM_SITES * self.distributed_rams

    def __add__(self, other):
        theirs = asdict(other)
        return Cost(**{name: count + theirs[name] for name, count in asdict(self).items()})

    def to_dict(self):
        """Return the cost as JSON-compatible values."""
        return {**asdict(self), "logic_cells": self.logic_cells}


def cost_of(cells):
    """Return the :class:`Cost` of a flat netlist's cells, as in Yosys' JSON."""
    count = Counter(CELLS[cell["type"]] for cell in cells.values() if cell["type"] in CELLS)
    return Cost(**count, carry_feeds=carry_feeds(cells).total())

# SPDX-License-Identifier: Apache-2.0
"""Counter over the cells that a band probe visits, in pairs of neighbours."""

from functools import reduce
from operator import or_

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.words.inputs import Control, control_layout

from .cell_digit import CellDigit
from .layouts import bank_bits, bank_count, visiting_layout

__all__ = ["CellCounter"]


class CellCounter(wiring.Component):
    """Count through the cells of a probe, as through the digits of a number.

    The first field counts fastest, and every field wraps around within its own bits. Neighbouring
    cells of the field that owns the lowest bit of the bucket number lie in different banks of the
    head table, so they are visited two at a time; a range with an odd number of cells ends with a
    single one. A probe that nothing can match takes one step and visits no cell.

    The next probe is taken together with the last step of the current one.

    Latency: 1 cycle from a probe to its first cells. Throughput: 1 step per cycle.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator; its comparator is a band.

    Members
    -------
    arrived : In(1)
        ``probe`` holds the next probe.
    probe : In(visiting_layout(parameters))
    take : Out(1)
        ``probe`` is taken in this cycle.
    filled : Out(1)
        A probe is in progress; from a register.
    step : In(1)
        Advance to the next cells; only while ``filled``.
    last : Out(1)
        The current cells are the last ones of the probe.
    wanted : Out(banks)
        Banks in which the probe visits a bucket in this step.
    addresses : Out(bank_bits(parameters)).array(banks)
        Number of that bucket within each bank.
    tail : Out
        First row that the probe sees.
    configure : In(1)
        Execute ``control``.
    control : In(control_layout(parameters))
    """

    def __init__(self, parameters):
        self.parameters = parameters
        self.latency = 1
        banks, visiting = bank_count(parameters), visiting_layout(parameters)
        super().__init__(
            {
                "arrived": In(1),
                "probe": In(visiting),
                "take": Out(1),
                "filled": Out(1),
                "step": In(1),
                "last": Out(1),
                "wanted": Out(banks),
                "addresses": Out(bank_bits(parameters)).array(banks),
                "tail": Out(visiting["tail"].shape),
                "configure": In(1),
                "control": In(control_layout(parameters)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        cells = Signal.like(self.probe.cells, reset_less=True)  # cells of the current probe
        cell = Signal.like(cells.start, reset_less=True)  # current cell
        vacant = Signal()  # no probe will be in progress unless one is taken now
        digits = self.elaborate_digits(m, vacant)
        following, ended = cell, Const(1)
        for digit in digits:
            moved = Mux(digit.ended, cells.start, cell + digit.stride)[: len(cell)]
            mask = digit.mask & ended.replicate(len(cell))
            following = (following & ~mask) | (moved & mask)
            m.d.comb += digit.step.eq(self.step & ended)
            ended &= digit.ended
        m.d.comb += [
            self.last.eq(cells.none | ended),
            vacant.eq(~self.filled | (self.step & self.last)),
            self.take.eq(vacant & self.arrived),
        ]
        with m.If(vacant):
            m.d.sync += [
                self.filled.eq(self.arrived),
                self.tail.eq(self.probe.tail),
                cells.eq(self.probe.cells),
                cell.eq(self.probe.cells.start),
            ]
        with m.Elif(self.step):
            m.d.sync += cell.eq(following)
        self.elaborate_banks(m, digits, cell, cells)
        return m

    def elaborate_digits(self, m, vacant):
        """Return one counter per field; each is configured by the control words of its field."""
        digits = []
        for n, _ in enumerate(self.parameters.keys):
            m.submodules[f"digit_{n}"] = digit = CellDigit(self.parameters)
            own = (self.control.op == Control.COORDINATE) & (self.control.index == n)
            m.d.comb += [
                digit.configure.eq(self.configure & own),
                digit.part.as_value().eq(self.control.value),
                digit.begin.eq(vacant),
                digit.extent.eq(self.probe.cells[f"extent_{n}"]),
            ]
            digits.append(digit)
        return digits

    def elaborate_banks(self, m, digits, cell, cells):
        """Select the banks that are visited and the bucket in each.

        The lowest bit of a cell, XORed with the lowest bit of the hash, selects its bank. The upper
        bits of the two cells of a pair differ only if the odd cell is the first of them.
        """
        banks = bank_count(self.parameters)
        if banks == 1:
            m.d.comb += [self.wanted.eq(~cells.none), self.addresses[0].eq(cell ^ cells.hash)]
            return
        mask = Signal.like(cell, name="paired_mask")  # bits of the field that is counted in pairs
        m.d.sync += mask.eq(reduce(or_, (d.mask & d.paired.replicate(len(cell)) for d in digits)))
        odd = cell[1:]
        even = (odd & ~mask[1:]) | ((odd + cell[0]) & mask[1:])
        both = Cat(digit.both for digit in digits).any()
        for bank in range(banks):
            turned = cells.hash[0] ^ bank  # this bank holds the odd cells
            m.d.comb += [
                self.wanted[bank].eq(~cells.none & (both | (cell[0] == turned))),
                self.addresses[bank].eq(Mux(turned, odd, even) ^ cells.hash[1:]),
            ]

# SPDX-License-Identifier: Apache-2.0
"""The cells that a probe of a band visits, counted through in pairs of neighbours."""

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
    """Count through the cells of a probe like through the digits of a number.

    The first field counts fastest; each wraps around within its bits. Where a field has the lowest
    bit of the bucket's number, neighbouring cells of it lie in different banks of the head table,
    and are visited two at a time; a range with an odd number of cells ends with a single one. A
    probe that nothing can match takes one step, without any cell.

    The next probe is taken with the last step of the one before it.

    Latency: 1 cycle from a probe to its first cells. Throughput: a step per cycle.

    Parameters
    ----------
    parameters : JoinParameters
        Of the accelerator; a band.

    Members
    -------
    arrived : In(1)
        ``probe`` is the next probe.
    probe : In(visiting_layout(parameters))
    take : Out(1)
        It is taken.
    filled : Out(1)
        A probe is under way; from a register.
    step : In(1)
        Go on to the next cells; only if ``filled``.
    last : Out(1)
        There are no more of this probe.
    wanted : Out(banks)
        Banks in which the probe visits a bucket now.
    addresses : Out(bank_bits(parameters)).array(banks)
        … the bucket's number there.
    tail : Out
        From which row on the probe sees entries.
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
        cells = Signal.like(self.probe.cells, reset_less=True)  # of the probe under way
        cell = Signal.like(cells.start, reset_less=True)  # where it is now
        vacant = Signal()  # the next probe is taken, if there is one
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
        """Return a counter for every field, each told the part that the field takes."""
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
        """Say which bucket is visited in which bank.

        The lowest bit of a cell, turned by that of the hash, is its bank. Of a pair, the odd cell
        and the one above or below it differ in the other bits only if the odd one comes first.
        """
        banks = bank_count(self.parameters)
        if banks == 1:
            m.d.comb += [self.wanted.eq(~cells.none), self.addresses[0].eq(cell ^ cells.hash)]
            return
        mask = Signal.like(cell, name="paired_mask")  # of the field that is counted in pairs
        m.d.sync += mask.eq(reduce(or_, (d.mask & d.paired.replicate(len(cell)) for d in digits)))
        odd = cell[1:]
        even = (odd & ~mask[1:]) | ((odd + cell[0]) & mask[1:])
        both = Cat(digit.both for digit in digits).any()
        for bank in range(banks):
            turned = cells.hash[0] ^ bank  # this bank has the odd cells
            m.d.comb += [
                self.wanted[bank].eq(~cells.none & (both | (cell[0] == turned))),
                self.addresses[bank].eq(Mux(turned, odd, even) ^ cells.hash[1:]),
            ]

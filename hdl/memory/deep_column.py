# SPDX-License-Identifier: Apache-2.0
"""A memory deeper than a block RAM, which is read in more cycles than a shallow one."""

import math

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.ecp5 import is_ecp5
from hdl.streams.delay import delayed

from .block_ram import ADDRESS_BITS
from .key_column import KeyColumn

__all__ = ["ColumnBank", "DeepColumn"]


class ColumnBank(wiring.Component):
    """A :class:`KeyColumn` of one row of block RAMs, with registers of its own at its pins.

    It is a component because synthesis would merge equal registers of several banks.

    Latency: 3 cycles from ``address`` to ``data``. Throughput: 1 row read and 1 row written per
    cycle.

    Parameters
    ----------
    width, depth : int
        Bits of a row; number of rows, a power of two.

    Members
    -------
    write, place, row, address, data
        Those of the ``KeyColumn``.
    """

    def __init__(self, *, width, depth):
        self._column = KeyColumn(width=width, depth=depth, late=True)
        self.latency = 1 + self._column.latency
        super().__init__(self._column.signature)

    def elaborate(self, platform):
        m = Module()
        m.submodules.column = column = self._column
        m.d.comb += [
            column.write.eq(self.write),
            column.place.eq(self.place),
            column.row.eq(self.row),
            self.data.eq(column.data),
        ]
        near = Signal.like(self.address, reset_less=True)
        m.d.sync += near.eq(self.address)
        m.d.comb += column.address.eq(near)
        return m


class DeepColumn(wiring.Component):
    """A memory of any depth, read through several registers.

    On an ECP5 it consists of banks as deep as a block RAM at its narrowest. Each has registers of
    its own in front, and two levels of multiplexers choose among them, each followed by a register.
    Elsewhere it is one memory, with as many registers. Both variants behave the same.

    A row that is read in the cycle in which it is written may show any value.

    Latency: :attr:`LATENCY` cycles from ``address`` to ``data``. Throughput: 1 row read and 1 row
    written per cycle.

    Parameters
    ----------
    width, depth : int
        Bits of a row; number of rows, a power of two.

    Members
    -------
    write : In(1)
        Write ``row`` at ``place``.
    place : In(range(depth))
    row : In(width)
    address : In(range(depth))
        Row to read.
    data : Out(width)
    """

    LATENCY = 5

    def __init__(self, *, width, depth):
        self.width = width
        self.depth = depth
        self.latency = self.LATENCY
        super().__init__(
            {
                "write": In(1),
                "place": In(range(depth)),
                "row": In(width),
                "address": In(range(depth)),
                "data": Out(width),
            }
        )

    def elaborate(self, platform):
        m = Module()
        bank_depth = min(self.depth, 1 << ADDRESS_BITS) if is_ecp5(platform) else self.depth
        inside = (bank_depth - 1).bit_length()
        banks = []
        for n in range(self.depth // bank_depth):
            bank = ColumnBank(width=self.width, depth=bank_depth)
            m.submodules[f"bank_{n}"] = bank
            m.d.comb += [
                bank.write.eq(self.write & (self.place[inside:] == n)),
                bank.place.eq(self.place[:inside]),
                bank.row.eq(self.row),
                bank.address.eq(self.address[:inside]),
            ]
            banks.append(bank.data)
        number = {"number": self.address[inside:]}
        for cycle in range(self.LATENCY - 2):
            number = delayed(m, number, f"bank_{cycle}", flags=())
        self.elaborate_choice(m, banks, number["number"])
        return m

    def elaborate_choice(self, m, banks, number):
        """Choose the data of bank ``number`` in two registered steps."""
        arity = 1 << math.ceil((len(banks) - 1).bit_length() / 2)
        low = (arity - 1).bit_length()
        groups = []
        for n in range(0, len(banks), arity):
            group = Signal(self.width, name=f"group_{n // arity}", reset_less=True)
            m.d.sync += group.eq(Array(banks[n : n + arity])[number[:low]] if low else banks[n])
            groups.append(group)
        high = Signal(max(1, len(number) - low), reset_less=True)
        output = Signal(self.width, reset_less=True)
        m.d.sync += [high.eq(number[low:]), output.eq(Array(groups)[high])]
        m.d.comb += self.data.eq(output)

# SPDX-License-Identifier: Apache-2.0
"""The sum of IPv4 and UDP: 16-bit words in ones' complement."""

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["OnesSum"]


class OnesSum(wiring.Component):
    """Add 16-bit words in ones' complement.

    A carry is added in the next cycle, so that no sum takes more than one adder.

    Latency: 3 cycles from the last word to ``total``, in which no word comes. Throughput: 1 word
    per cycle.

    Parameters
    ----------
    first : int
        What the sum begins with, 16 bits.

    Members
    -------
    clear : In(1)
        Begin a sum.
    add : In(1)
        Add ``word``, unless a sum begins.
    word : In(16)
    total : Out(16)
    """

    latency = 3

    def __init__(self, *, first=0):
        self.first = first
        super().__init__({"clear": In(1), "add": In(1), "word": In(16), "total": Out(16)})

    def elaborate(self, platform):
        m = Module()
        carry = Signal()
        m.d.sync += Cat(self.total, carry).eq(self.total + carry + Mux(self.add, self.word, 0))
        with m.If(self.clear):
            m.d.sync += Cat(self.total, carry).eq(self.first)
        return m

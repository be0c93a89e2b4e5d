# SPDX-License-Identifier: Apache-2.0
"""Comparing two words in the carry chain of an ECP5."""

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["CarryEquality"]

#: A LUT of four inputs that says A = B and C = D.
EQUAL = sum(1 << n for n in range(16) if n & 1 == n >> 1 & 1 and n >> 2 & 1 == n >> 3 & 1)
#: A LUT that never lets the carry pass and makes one of its own where A = B; C and D are ones.
FIRST_EQUAL = 0b1001


class CarryEquality(wiring.Component):
    """Are two words equal? Each LUT of the chain passes a carry on while its two bits are.

    The first LUT makes the carry out of one bit of each word, so nothing leads into the chain; the
    last one shows it, so nothing but a sum leads out. Otherwise nextpnr would add a cell at
    either end. A LUT compares two bits: 32 bits take 18 of them; as logic they take 21, three
    levels deep. There is no model of the primitive here: the outcome of ``a == b`` is its meaning.

    Latency: 0 cycles. Throughput: 1 comparison per cycle.

    Parameters
    ----------
    width : int
        Bits of a word, at least one.

    Members
    -------
    a, b : In(width)
    equal : Out(1)
    """

    def __init__(self, width):
        if width < 1:
            raise ValueError(f"Words of {width!r} bits cannot be compared")
        self.width = width
        self.latency = 0
        super().__init__({"a": In(width), "b": In(width), "equal": Out(1)})

    def elaborate(self, platform):
        m = Module()
        luts = self.luts()
        carry = None
        for n in range(0, len(luts), 2):
            pins = {} if carry is None else {"i_CIN": carry}
            for lut, (table, inject, inputs) in enumerate(luts[n : n + 2]):
                pins |= {f"p_INIT{lut}": Const(table, 16), f"p_INJECT1_{lut}": inject}
                pins |= {f"i_{pin}{lut}": bit for pin, bit in zip("ABCD", inputs, strict=True)}
            if n + 2 < len(luts):
                carry = Signal(name=f"carry_{n // 2}")
                pins["o_COUT"] = carry
            else:
                pins["o_S1"] = self.equal
            m.submodules[f"cell_{n // 2}"] = Instance("CCU2C", **pins)
        return m

    def luts(self):
        """Return table, injection and inputs of each LUT, an even number of them."""
        ones = Const(-1, 4)  # pins that are tied high take no wire
        luts = [(FIRST_EQUAL, "NO", [self.a[0], self.b[0], *ones[:2]])]
        for bit in range(1, self.width, 2):
            pairs = [Cat(word[bit : bit + 2], ones)[:2] for word in (self.a, self.b)]
            (a, c), (b, d) = pairs
            luts.append((EQUAL, "YES", [a, b, c, d]))
        if len(luts) % 2 == 0:
            luts.append((EQUAL, "YES", ones))
        return [*luts, (0, "NO", ones)]

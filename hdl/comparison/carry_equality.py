# SPDX-License-Identifier: Apache-2.0
"""Comparison of two words for equality in the carry chain of an ECP5."""

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["CarryEquality"]

#: Bits of each word that one ``CCU2C`` compares: two in each of its two LUTs.
CELL_BITS = 4
#: Table of a LUT with four inputs whose output is A = B and C = D.
EQUAL = sum(1 << n for n in range(16) if n & 1 == n >> 1 & 1 and n >> 2 & 1 == n >> 3 & 1)


class CarryEquality(wiring.Component):
    """Compare two words for equality in a carry chain.

    Each LUT passes the carry on if its two bits of both words are equal. So 32 bits take 16 LUTs
    and an exit from the chain. As logic, they take 21 LUTs, three levels deep.

    There is no simulation model of the primitive here. The component behaves as ``a == b``.

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
        zeros = Const(0, CELL_BITS)  # pads both words to whole cells
        carry = Const(1)
        for first in range(0, self.width, CELL_BITS):
            a, b = (Cat(word[first : first + CELL_BITS], zeros) for word in (self.a, self.b))
            following = Signal(name=f"carry_{first}")
            pins = {}
            for lut in range(2):
                low, high = 2 * lut, 2 * lut + 1
                pins |= {
                    f"i_A{lut}": a[low], f"i_B{lut}": b[low],
                    f"i_C{lut}": a[high], f"i_D{lut}": b[high],
                    f"p_INIT{lut}": Const(EQUAL, 16), f"p_INJECT1_{lut}": "YES",
                }  # fmt: skip
            m.submodules[f"cell_{first}"] = Instance("CCU2C", i_CIN=carry, o_COUT=following, **pins)
            carry = following
        m.d.comb += self.equal.eq(carry)
        return m

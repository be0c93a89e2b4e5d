# SPDX-License-Identifier: Apache-2.0
"""Carry chains of an ECP5, whose primitives some components use directly."""

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = [
    "CarryChain",
    "CarryEquality",
    "ONE",
    "OPEN_TABLES",
    "RELATIONS",
    "elaborate_luts",
    "is_below",
    "is_ecp5",
]


def is_ecp5(platform):
    """Return whether ``platform`` is an ECP5.

    A platform is any object with the name of a ``device``.
    """
    return str(getattr(platform, "device", "")).upper().startswith("LFE5U")


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


RELATIONS = ("equal", "at_least")

#: Tables of a LUT that passes no carry on, and generates a carry where A = B, where A >= B, or
#: always; C and D are ones. So the carry input of a cell that begins with such a LUT may be left
#: open.
FIRST_EQUAL, FIRST_AT_LEAST, ONE = OPEN_TABLES = (0b1001, 0b1011, 0b1111)
#: Table of a LUT that passes the carry on where A = B, and makes A the carry elsewhere; C and D are
#: ones.
AT_LEAST = 0b1001 << 12 | 0b1010


class CarryChain(wiring.Component):
    """Compare each field of a word with the same field of another word.

    A LUT of the chain compares two bits of either word for equality, or one bit for order. The
    first LUT of a field starts a carry of its own, and one LUT behind each field brings the carry
    out as a sum. So nothing drives the start of the chain, and only sums leave it. A constant at
    its start or a carry at its end would take one more cell each, and the constant also a wire
    across the chip.

    An equality of 32 bits takes 18 LUTs. As logic, it takes 21 LUTs, three levels deep.

    There is no simulation model of the primitive here. The component behaves as ``a == b`` or
    ``a >= b``.

    Latency: 0 cycles. Throughput: 1 comparison per cycle.

    Parameters
    ----------
    widths : list of int
        Bits of each field, at least one each.
    relation : str
        ``"equal"`` or ``"at_least"``.

    Members
    -------
    a, b : In(sum(widths))
    holds : Out(len(widths))
        For each field, whether the relation holds between the field of ``a`` and that of ``b``.
    """

    def __init__(self, widths, *, relation):
        if not widths or min(widths) < 1:
            raise ValueError(f"Fields of {widths!r} bits cannot be compared")
        if relation not in RELATIONS:
            raise ValueError(f"Relation must be one of {RELATIONS!r}, not {relation!r}")
        self.widths = list(widths)
        self.relation = relation
        self.latency = 0
        total = sum(widths)
        super().__init__({"a": In(total), "b": In(total), "holds": Out(len(widths))})

    def elaborate(self, platform):
        m = Module()
        elaborate_luts(m, self.luts())
        return m

    def luts(self):
        """Return table, injection, inputs and output of each LUT."""
        ones = Const(-1, 4)  # pins that are tied high need no wire
        luts, first = [], 0
        for field, width in enumerate(self.widths):
            a, b = (word[first : first + width] for word in (self.a, self.b))
            first += width
            if self.relation == "equal":
                luts.append((FIRST_EQUAL, "NO", [a[0], b[0], *ones[:2]], None))
                for bit in range(1, width, 2):
                    (a0, a1), (b0, b1) = (Cat(word[bit : bit + 2], ones)[:2] for word in (a, b))
                    luts.append((EQUAL, "YES", [a0, b0, a1, b1], None))
            else:
                luts += [
                    (AT_LEAST if bit else FIRST_AT_LEAST, "NO", [a[bit], b[bit], *ones[:2]], None)
                    for bit in range(width)
                ]
            luts.append((0, "NO", ones, self.holds[field]))  # the sum is zero plus the carry
        return luts


def elaborate_luts(m, luts):
    """Place the LUTs of a chain in carry cells, two in each.

    Parameters
    ----------
    luts : list of tuple
        Table, injection, inputs and output of each LUT, in the order of the carry. The output is
        None if the sum of the LUT is not used.
    """
    if len(luts) % 2:
        luts = [*luts, (0, "YES", Const(-1, 4), None)]
    carry = {}
    for n in range(0, len(luts), 2):
        pins = carry
        for half, (table, inject, inputs, shown) in enumerate(luts[n : n + 2]):
            pins |= {f"p_INIT{half}": Const(table, 16), f"p_INJECT1_{half}": inject}
            pins |= {f"i_{pin}{half}": bit for pin, bit in zip("ABCD", inputs, strict=True)}
            if shown is not None:
                pins[f"o_S{half}"] = shown
        carry = {}
        if n + 2 < len(luts):
            carry["i_CIN"] = pins["o_COUT"] = Signal(name=f"carry_{n // 2}")
        m.submodules[f"cell_{n // 2}"] = Instance("CCU2C", **pins)


def is_below(m, a, b):
    """Return whether the unsigned ``a`` is below ``b``.

    Synthesis turns a subtraction into one carry chain, but a comparison into a tree of LUTs. For 48
    bits, that tree is six LUTs deep.
    """
    difference = Signal(signed(max(len(a), len(b)) + 1))
    m.d.comb += difference.eq(a - b)
    return difference[-1]

# SPDX-License-Identifier: Apache-2.0
"""Which of two numbers is less, in the carry chain of an FPGA."""

from amaranth import *

__all__ = ["is_below"]


def is_below(m, a, b):
    """Return whether the unsigned ``a`` is below ``b``.

    Synthesis makes a subtraction one carry chain, and a comparison a tree of LUTs: of 48 bits, that
    is six of them one after the other.
    """
    difference = Signal(signed(max(len(a), len(b)) + 1))
    m.d.comb += difference.eq(a - b)
    return difference[-1]

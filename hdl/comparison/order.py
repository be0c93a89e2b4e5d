# SPDX-License-Identifier: Apache-2.0
"""Comparison of two numbers for order in the carry chain of an FPGA."""

from amaranth import *

__all__ = ["is_below"]


def is_below(m, a, b):
    """Return whether the unsigned ``a`` is below ``b``.

    Synthesis turns a subtraction into one carry chain, but a comparison into a tree of LUTs. For 48
    bits, that tree is six LUTs deep.
    """
    difference = Signal(signed(max(len(a), len(b)) + 1))
    m.d.comb += difference.eq(a - b)
    return difference[-1]

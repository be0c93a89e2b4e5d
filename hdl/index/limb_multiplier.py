# SPDX-License-Identifier: Apache-2.0
"""Multiplier of the device with registers of its own at its inputs and output."""

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["LimbMultiplier"]


class LimbMultiplier(wiring.Component):
    """Multiply two limbs, each at most as wide as an operand of the device's multiplier.

    A multiplication takes half a cycle, and multipliers have fixed places on the device. So the
    registers next to a multiplier serve it alone and can be placed beside it. Synthesis must not
    merge them (:data:`hdl.fpga.synthesis.KEEP`), although several multipliers share an operand.

    Latency: 2 cycles. Throughput: 1 product per cycle.

    Parameters
    ----------
    a_bits, b_bits : int
        Widths of the limbs.
    gated : bool
        Whether the registers have clock enables, ``load`` and ``multiply``.

    Members
    -------
    a, b : In
    load : In(1)
        If gated: take the operands.
    multiply : In(1)
        If gated: take the product of the registered operands.
    product : Out(a_bits + b_bits)
    """

    def __init__(self, a_bits, b_bits, *, gated):
        self.gated = gated
        self.latency = 2
        super().__init__(
            {
                "a": In(a_bits),
                "b": In(b_bits),
                "load": In(1),
                "multiply": In(1),
                "product": Out(a_bits + b_bits),
            }
        )

    def elaborate(self, platform):
        m = Module()
        a, b = (
            Signal.like(operand, reset_less=True, name=f"own_{name}")
            for name, operand in (("a", self.a), ("b", self.b))
        )
        product = Signal.like(self.product, reset_less=True, name="held")
        with m.If(self.load | ~C(self.gated, 1)):
            m.d.sync += [a.eq(self.a), b.eq(self.b)]
        with m.If(self.multiply | ~C(self.gated, 1)):
            m.d.sync += product.eq(a * b)
        m.d.comb += self.product.eq(product)
        return m

# SPDX-License-Identifier: Apache-2.0
"""One multiplier of the device, with registers of its own before and behind it."""

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["LimbMultiplier"]


class LimbMultiplier(wiring.Component):
    """Multiply two limbs, as many bits each as one multiplier of the device has.

    A multiplication takes half of a cycle, and multipliers stand where the device has them. So the
    registers beside one serve no other, and can stand where it stands; synthesis keeps them apart
    (:data:`hdl.fpga.synthesis.KEEP`), although several multipliers have the same operand.

    Latency: 2 cycles. Throughput: 1 product per cycle.

    Parameters
    ----------
    a_bits, b_bits : int
        Of the limbs.
    gated : bool
        Whether registers only change when told to.

    Members
    -------
    a, b : In
    load : In(1)
        If gated: the operands are taken.
    multiply : In(1)
        If gated: the product of the operands that were taken is.
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

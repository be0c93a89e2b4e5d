# SPDX-License-Identifier: Apache-2.0
"""A division that takes one cycle per bit, for what happens rarely."""

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["SerialDivider"]


class SerialDivider(wiring.Component):
    """Divide two unsigned numbers; the divisor must not be zero.

    Latency: ``width + 1`` cycles from ``start`` to ``done``. Throughput: 1 division in as many.

    Parameters
    ----------
    width : int
        Bits of both numbers.

    Members
    -------
    start : In(1)
        Begin with ``dividend`` and ``divisor``, which must hold until ``done``. A division that is
        under way is forgotten.
    dividend, divisor : In(width)
    done : Out(1)
        ``quotient`` and ``remainder`` are there, in one cycle.
    quotient, remainder : Out(width)
    """

    def __init__(self, width):
        if width < 1:
            raise ValueError(f"A divider must have at least one bit, not {width!r}")
        self.width = width
        self.latency = width + 1
        super().__init__(
            {
                "start": In(1),
                "dividend": In(width),
                "divisor": In(width),
                "done": Out(1),
                "quotient": Out(width),
                "remainder": Out(width),
            }
        )

    def elaborate(self, platform):
        m = Module()
        left = Signal(range(self.width + 1))
        # The remainder moves up from the quotient's upper end, bit by bit.
        shifted = Cat(self.quotient[-1], self.remainder)
        rest = Signal(signed(self.width + 2))
        m.d.comb += rest.eq(shifted - self.divisor)
        m.d.sync += self.done.eq(left == 1)
        with m.If(left != 0):
            fits = ~rest[-1]
            m.d.sync += [
                left.eq(left - 1),
                self.quotient.eq(Cat(fits, self.quotient)),
                self.remainder.eq(Mux(fits, rest, shifted)),
            ]
        with m.If(self.start):
            m.d.sync += [
                left.eq(self.width),
                self.done.eq(0),
                self.quotient.eq(self.dividend),
                self.remainder.eq(0),
            ]
        return m

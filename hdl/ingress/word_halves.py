# SPDX-License-Identifier: Apache-2.0
"""Which tuples of a word go on in the same cycle."""

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["WordHalves"]


class WordHalves(wiring.Component):
    """Let the tuples of a word go on in one beat, or one after the other in two.

    A word of two tuples takes two beats if they are to go on ``apart``: first the tuple of side
    ``first``, then the other one. Every other word takes one beat.

    Latency: 0 cycles. Throughput: 1 beat per cycle.

    Members
    -------
    tuples : In(2)
        The word at hand holds a tuple of side R (bit 0), of side S (bit 1).
    first : In(1)
        Side of the tuple that comes first, if there are two.
    apart : In(1)
        If there are two tuples, they go on in two beats. Only the value in the first beat counts.
    present : Out(2)
        Tuples of the beat at hand, in the same form as ``tuples``.
    last : Out(1)
        The beat at hand is the last one of its word.
    advance : In(1)
        The beat at hand is taken.
    """

    def __init__(self):
        self.latency = 0
        super().__init__(
            {
                "tuples": In(2),
                "first": In(1),
                "apart": In(1),
                "present": Out(2),
                "last": Out(1),
                "advance": In(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        second = Signal()  # the first of two beats has been taken
        divides = Signal()  # this beat is the first of two
        m.d.comb += [
            divides.eq(self.tuples.all() & self.apart & ~second),
            self.last.eq(~divides),
        ]
        with m.If(second | divides):
            m.d.comb += self.present.eq(Mux(self.first ^ second, 0b10, 0b01))
        with m.Else():
            m.d.comb += self.present.eq(self.tuples)
        with m.If(self.advance):
            m.d.sync += second.eq(divides)
        return m

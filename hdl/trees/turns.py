# SPDX-License-Identifier: Apache-2.0
"""Expand the order in which groups closed into turns of one side each."""

from amaranth import *
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hdl.streams.registers import StreamRegister

__all__ = ["Turns"]


class Turns(wiring.Component):
    """Say in advance which side comes next.

    If the groups of both sides closed at once, both sides have a turn, R first.

    Latency: 1 cycle. Throughput: 1 turn per cycle.

    Members
    -------
    i : In(stream.Signature(2))
        Sides whose groups closed, at least one: bit 0 for R, bit 1 for S.
    o : Out(stream.Signature(2))
        Side whose turn it is, in the same form, directly from a register. It is zero while no turn
        waits, so it needs no ``valid`` beside it.
    """

    def __init__(self):
        self.latency = 1
        super().__init__({"i": In(stream.Signature(2)), "o": Out(stream.Signature(2))})

    def elaborate(self, platform):
        m = Module()
        m.submodules.output = output = StreamRegister(
            data.StructLayout({"side": 2}), early=["side"]
        )
        turn, sides = output.i, self.i.payload
        both = sides.all()
        r_done = Signal()  # both sides have a turn, and that of R is over
        is_s = ~sides[0] | r_done
        m.d.comb += [
            turn.valid.eq(self.i.valid),
            turn.payload.side.eq(Cat(self.i.valid & ~is_s, self.i.valid & is_s)),
            self.i.ready.eq(turn.ready & (~both | r_done)),
            self.o.valid.eq(output.o.valid),
            self.o.payload.eq(output.o.payload.side),
            output.o.ready.eq(self.o.ready),
        ]
        with m.If(turn.valid & turn.ready):
            m.d.sync += r_done.eq(both & ~r_done)
        return m

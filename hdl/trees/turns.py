# SPDX-License-Identifier: Apache-2.0
"""Expands the order in which groups closed into turns of one side each."""

from amaranth import *
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hdl.streams.registers import StreamRegister

__all__ = ["Turns"]


class Turns(wiring.Component):
    """Say, ahead of time, which side comes next.

    Two sides whose groups closed at once have two turns, R first.

    Latency: 1 cycle. Throughput: 1 turn per cycle.

    Members
    -------
    i : In(stream.Signature(2))
        Sides whose group closed: bit 0 for R, bit 1 for S; at least one of them.
    o : Out(stream.Signature(2))
        The side whose turn it is, likewise, straight out of a register; zero while there is none,
        so it needs no ``valid``.
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
        r_done = Signal()  # of two sides, R has had its turn
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

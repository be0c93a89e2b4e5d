# SPDX-License-Identifier: Apache-2.0
"""Expands the order in which groups closed into turns of one side each."""

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hdl.streams.registers import SpareRegister, StreamWire

__all__ = ["Turns"]


class Turns(wiring.Component):
    """Say, ahead of time, which side comes next.

    Two sides whose groups closed at once have two turns, R first.

    Latency: 1 cycle, none if not ``pipelined``. Throughput: 1 turn per cycle.

    Parameters
    ----------
    pipelined : bool
        Whether the turn comes straight out of a register.

    Members
    -------
    i : In(stream.Signature(2))
        Sides whose group closed: bit 0 for R, bit 1 for S; at least one of them.
    o : Out(stream.Signature(2))
        The side whose turn it is, likewise; zero while there is none, so it needs no ``valid``.
    """

    def __init__(self, *, pipelined=True):
        self.pipelined = pipelined
        self.latency = int(pipelined)
        super().__init__({"i": In(stream.Signature(2)), "o": Out(stream.Signature(2))})

    def elaborate(self, platform):
        m = Module()
        m.submodules.output = output = SpareRegister(2) if self.pipelined else StreamWire(2)
        connect(m, output.o, flipped(self.o))
        turn, sides = output.i, self.i.payload
        both = sides.all()
        r_done = Signal()  # of two sides, R has had its turn
        is_s = ~sides[0] | r_done
        m.d.comb += [
            turn.valid.eq(self.i.valid),
            turn.payload.eq(Cat(self.i.valid & ~is_s, self.i.valid & is_s)),
            self.i.ready.eq(turn.ready & (~both | r_done)),
        ]
        with m.If(turn.valid & turn.ready):
            m.d.sync += r_done.eq(both & ~r_done)
        return m

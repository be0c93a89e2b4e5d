# SPDX-License-Identifier: Apache-2.0
"""Frames of two senders on one line."""

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from .frames import FrameByte

__all__ = ["FrameChoice"]


class FrameChoice(wiring.Component):
    """Send whole frames of two inputs, those of the first one first.

    An input whose frame is sent keeps the output until its last byte.

    Latency: 0 cycles. Throughput: 1 byte per cycle.

    Members
    -------
    i : In(stream.Signature(FrameByte)).array(2)
    o : Out(stream.Signature(FrameByte))
    """

    def __init__(self):
        super().__init__(
            {
                "i": In(stream.Signature(FrameByte)).array(2),
                "o": Out(stream.Signature(FrameByte)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        held, chosen = Signal(), Signal()  # a frame is under way; which one
        second = Mux(held, chosen, ~self.i[0].valid)
        m.d.comb += [
            self.o.payload.eq(Mux(second, self.i[1].payload, self.i[0].payload)),
            self.o.valid.eq(Mux(second, self.i[1].valid, self.i[0].valid)),
            self.i[0].ready.eq(self.o.ready & ~second),
            self.i[1].ready.eq(self.o.ready & second),
        ]
        with m.If(self.o.valid):
            m.d.sync += [chosen.eq(second), held.eq(~(self.o.ready & self.o.payload.last))]
        return m

# SPDX-License-Identifier: Apache-2.0
"""What a source has promised goes on before its control word does."""

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hdl.scalegate.words import GateKind

__all__ = ["KeptWatermark"]


class KeptWatermark(wiring.Component):
    """Let a watermark of a source leave a ScaleGate before the barrier behind it.

    A gate says a watermark when no tuple is ready, and drops it if a barrier is faster. So whether
    the words behind the gate get to know the watermark would depend on the timing. A barrier, or a
    LEAVE, that follows a WATERMARK therefore gets a word in front of it: a tuple of time zero whose
    body is a control word. It is late, so the gate sends it at its place in the order, with the
    latest time that the source has shown.

    ``o`` depends on ``i`` in the same cycle.

    Latency: 0 cycles. Throughput: 1 word per cycle, and one cycle more for a barrier or LEAVE
    behind a WATERMARK.

    Parameters
    ----------
    layout : data.StructLayout
        :func:`hdl.scalegate.words.source_word`; the body of a BARRIER or LEAVE is a control word.

    Members
    -------
    i : In(stream.Signature(layout))
    o : Out(stream.Signature(layout))
    """

    def __init__(self, layout):
        self.layout = layout
        self.latency = 0
        super().__init__({"i": In(stream.Signature(layout)), "o": Out(stream.Signature(layout))})

    def elaborate(self, platform):
        m = Module()
        word = self.i.payload
        owed, ends, speaks = Signal(), Signal(), Signal()
        m.d.comb += [
            ends.eq((word.kind == GateKind.BARRIER) | (word.kind == GateKind.LEAVE)),
            speaks.eq(owed & ends),
            self.o.payload.eq(word),
            self.o.valid.eq(self.i.valid),
            self.i.ready.eq(self.o.ready & ~speaks),
        ]
        with m.If(speaks):
            m.d.comb += [self.o.payload.kind.eq(GateKind.TUPLE), self.o.payload.time.eq(0)]
        with m.If(self.o.valid & self.o.ready):
            m.d.sync += owed.eq(word.kind == GateKind.WATERMARK)
        return m

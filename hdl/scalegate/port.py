# SPDX-License-Identifier: Apache-2.0
"""One input of a two-way merge: the words that wait, and how far the input has come."""

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hdl.comparison.order import is_below
from hdl.streams.registers import StreamRegister

from .words import GateKind

__all__ = ["MergePort"]


class MergePort(wiring.Component):
    """Hold up to two tuples of an input, and remember its watermark.

    The watermark of an input is the time of its latest word. It counts only while no tuple waits.
    So a WATERMARK and a LEAVE are not stored behind the tuples: they change the watermark at once.

    A tuple whose time is below the watermark goes on as a *late* one, with the watermark as its
    time. So times never fall from the port on.

    A port whose input has left is not ``present``. The next word that is offered makes it present
    again, and is taken from the next cycle on. Its watermark is then ``floor``, or still the old
    one if tuples wait. Nothing is taken while a BARRIER waits. When the barrier leaves, the
    watermark is zero again.

    ``i.ready`` depends on registers alone. A reset lasts two cycles at least.

    Latency: 1 cycle. Throughput: 1 word per cycle; a barrier takes 2 cycles.

    Parameters
    ----------
    layout : data.StructLayout
        :func:`hdl.scalegate.words.gate_word`.
    present : bool
        Whether the input is present after reset.

    Members
    -------
    i : In(stream.Signature(layout))
    floor : In(layout["time"])
        Least time that a word may have which leaves the merge after this cycle.
    head : Out(layout)
        The oldest tuple or barrier.
    filled : Out(1)
        There is one.
    take : In(1)
        Remove it.
    mark : Out(layout["time"])
        The watermark.
    present : Out(1)
    """

    def __init__(self, layout, *, present=True):
        self.layout = layout
        self.latency = 1
        time = layout["time"].shape
        super().__init__(
            {
                "i": In(stream.Signature(layout)),
                "floor": In(time),
                "head": Out(layout),
                "filled": Out(1),
                "take": In(1),
                "mark": Out(time),
                "present": Out(1, init=int(present)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.held = held = StreamRegister(self.layout, early=["kind", "time"])
        word = self.i.payload
        closed = Signal()  # a barrier waits
        late, stored = Signal(), Signal()
        transfer = self.i.valid & self.i.ready
        m.d.comb += [
            late.eq(is_below(m, word.time, self.mark)),
            stored.eq((word.kind == GateKind.TUPLE) | (word.kind == GateKind.BARRIER)),
            self.i.ready.eq(held.i.ready & self.present & ~closed),
            held.i.valid.eq(transfer & stored),
            held.i.payload.eq(word),
            held.i.payload.time.eq(Mux(late, self.mark, word.time)),
            held.i.payload.late.eq(word.late | (late & (word.kind == GateKind.TUPLE))),
            held.o.ready.eq(self.take),
            self.head.eq(held.o.payload),
            self.filled.eq(held.o.valid),
        ]
        with m.If(~self.present):
            m.d.sync += self.present.eq(self.i.valid)
            with m.If(~self.filled):  # tuples that still wait are not below the watermark
                m.d.sync += self.mark.eq(self.floor)
        with m.Elif(transfer):
            m.d.sync += [
                self.present.eq(word.kind != GateKind.LEAVE),
                closed.eq(word.kind == GateKind.BARRIER),
            ]
            with m.If(~late & (word.kind != GateKind.LEAVE)):
                m.d.sync += self.mark.eq(word.time)
        with m.Elif(closed & self.take & (self.head.kind == GateKind.BARRIER)):
            m.d.sync += [closed.eq(0), self.mark.eq(0)]
        return m

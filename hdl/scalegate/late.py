# SPDX-License-Identifier: Apache-2.0
"""The check of a source's times: a word that goes back in time is late."""

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hdl.comparison.carry_chain import is_below

from .words import GateKind

__all__ = ["LateCheck", "is_late"]


def is_late(m, word, time):
    """Return whether a word is late, given the ``time`` that was reached before.

    A tuple is late if it is older, a WATERMARK also if it says the same.
    """
    is_tuple, is_mark = word.kind == GateKind.TUPLE, word.kind == GateKind.WATERMARK
    return (is_tuple | is_mark) & is_below(m, Cat(is_tuple, word.time), Cat(C(1, 1), time))


class LateCheck(wiring.Component):
    """Mark the late words of a source, so that its times do not fall behind this component.

    A tuple whose time is below one that its source has shown before goes on as a *late* one, with
    the latest time so far. A WATERMARK that says nothing new is marked late too. After a BARRIER
    or a LEAVE, times start again at zero; the time of these words is zero.

    The word at the input is compared with the last two times at once, and a register that is known
    by then tells which of the two was reached. So a comparison ends in a register, and no choice
    waits for it.

    Latency: 1 cycle. Throughput: 1 word per cycle.

    Parameters
    ----------
    layout : data.StructLayout
        :func:`hdl.scalegate.words.gate_word`.

    Members
    -------
    i : In(stream.Signature(layout))
        ``late`` is ignored.
    o : Out(stream.Signature(layout))
        ``valid`` comes from a register.
    """

    def __init__(self, layout):
        self.layout = layout
        self.latency = 1
        super().__init__({"i": In(stream.Signature(layout)), "o": Out(stream.Signature(layout))})

    def elaborate(self, platform):
        m = Module()
        word = Signal(self.layout)  # with its own time, or zero
        late = Signal()  # of the word
        before = Signal.like(word.time)  # what was reached before the word
        loads = Signal()
        m.d.comb += [
            self.i.ready.eq(~self.o.valid | self.o.ready),
            loads.eq(self.i.valid & self.i.ready),
            self.o.payload.eq(word),
            self.o.payload.time.eq(Mux(late, before, word.time)),
            self.o.payload.late.eq(late),
        ]
        m.d.sync += self.o.valid.eq(self.i.valid | (self.o.valid & ~self.o.ready))
        less = [is_late(m, self.i.payload, time) for time in (word.time, before)]
        with m.If(loads):
            m.d.sync += [word.eq(self.i.payload), late.eq(Mux(late, *reversed(less)))]
            with m.Switch(self.i.payload.kind):
                with m.Case(GateKind.LEAVE, GateKind.BARRIER):
                    m.d.sync += word.time.eq(0)
            with m.If(~late):
                m.d.sync += before.eq(word.time)
        return m

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
    again. In the next cycle the port *settles*: it takes over ``floor`` as its watermark, and the
    merge lets nothing leave, so the floor does not rise meanwhile. The word is taken from the cycle
    after that on. If tuples still wait, they are not below the watermark, which stays then, and
    there is nothing to settle. Behind a BARRIER, the watermark is zero.

    ``i.ready`` depends on registers alone. A reset lasts two cycles at least.

    Latency: 1 cycle. Throughput: 1 word per cycle.

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
        Least time that a word may have which leaves the merge; from a register.
    head : Out(layout)
        The oldest tuple or barrier. ``head.time`` is the watermark while there is none. Kind and
        time come from registers.
    filled : Out(1)
        There is one.
    take : In(1)
        Remove it.
    present : Out(1)
    settles : Out(1)
        The watermark is about to become the floor.
    """

    def __init__(self, layout, *, present=True):
        self.layout = layout
        self.latency = 1
        self._is_present = int(present)
        super().__init__(
            {
                "i": In(stream.Signature(layout)),
                "floor": In(layout["time"].shape),
                "head": Out(layout),
                "filled": Out(1),
                "take": In(1),
                "present": Out(1, init=self._is_present),
                "settles": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.held = held = StreamRegister(self.layout, early=["kind", "time"])
        word = self.i.payload
        mark, rises = Signal.like(word.time), Signal.like(word.time)
        joined = Signal(init=self._is_present)  # present, and settled
        late, stored = Signal(), Signal()
        transfer = self.i.valid & self.i.ready
        m.d.comb += [
            late.eq(is_below(m, word.time, mark)),
            stored.eq((word.kind == GateKind.TUPLE) | (word.kind == GateKind.BARRIER)),
            self.settles.eq(self.present & ~joined & ~self.filled),
            self.i.ready.eq(held.i.ready & joined),
            held.i.valid.eq(transfer & stored),
            held.i.payload.eq(word),
            # The register shows the time at its input when it is empty, so the watermark is at the
            # output then. A tuple at the input has the watermark that it makes.
            held.i.payload.time.eq(rises),
            held.i.payload.late.eq(word.late | (late & (word.kind == GateKind.TUPLE))),
            held.o.ready.eq(self.take),
            self.head.eq(held.o.payload),
            self.filled.eq(held.o.valid),
            rises.eq(mark),
        ]
        m.d.sync += mark.eq(rises)
        with m.If(~joined):
            m.d.sync += [self.present.eq(self.present | self.i.valid), joined.eq(self.present)]
            with m.If(~self.filled):  # tuples that still wait are not below the watermark
                m.d.comb += rises.eq(self.floor)
        with m.Elif(transfer):
            stays = word.kind != GateKind.LEAVE
            m.d.sync += [self.present.eq(stays), joined.eq(stays)]
            with m.If(word.kind == GateKind.BARRIER):
                m.d.comb += rises.eq(0)
            with m.Elif(~late & stays):
                m.d.comb += rises.eq(word.time)
        return m

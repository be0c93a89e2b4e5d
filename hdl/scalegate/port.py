# SPDX-License-Identifier: Apache-2.0
"""One input of a two-way merge: the words that wait, and how far the input has come."""

from amaranth import *
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hdl.ecp5 import is_below
from hdl.streams.registers import StreamRegister

from .words import GateKind

__all__ = ["LateCheck", "MergePort", "gate_place", "is_late"]


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


def gate_place(time_bits):
    """Return the layout of a place in the order of a merge; as a number, a later one is greater.

    A barrier is greater than every time, and an input that has left is greater than a barrier.
    """
    return data.StructLayout({"time": unsigned(time_bits), "ends": 1, "gone": 1})


class MergePort(wiring.Component):
    """Hold up to three tuples of an input, and remember its watermark.

    The watermark of an input is the time of its latest word. It counts only while no tuple waits.
    So a WATERMARK and a LEAVE are not stored behind the tuples: they change the watermark at once.

    The port shows its *head*: the oldest tuple or barrier, or else the watermark, or that the input
    has left. It also shows what stands *next*, with which the head is replaced by ``move``. The
    owner compares both ahead, and moves whenever the head is no tuple that has to wait.

    A port whose input has left takes the next word only after its last tuple has gone. When that
    word is offered, the port *settles* for two cycles, in which the merge lets nothing leave: first
    it takes over ``floor`` as its watermark, and then the head shows this. A word is late if it is
    below the watermark, and goes on with the watermark as its time. This can happen only from the
    return of an input up to its first word that is not late. Only in this time are words compared
    with the watermark, which takes two cycles more for each.

    ``i.ready`` depends on registers alone. A reset lasts two cycles at least.

    Latency: 2 cycles. Throughput: 1 word per cycle; 1 word in 3 cycles while words are late.

    Parameters
    ----------
    layout : data.StructLayout
        :func:`hdl.scalegate.words.gate_word`.
    present : bool
        Whether the input is present after reset.

    Members
    -------
    i : In(stream.Signature(layout))
        Times do not fall, except that they start again at zero with a BARRIER, whose time is zero,
        and behind a LEAVE. A WATERMARK that is ``late`` says nothing new.
    floor : In(layout["time"])
        Least time that a word may have which leaves the merge; from a register.
    head : Out(layout)
        What is shown, from registers: TUPLE, BARRIER, WATERMARK or LEAVE.
    place : Out(gate_place(time_bits))
        Its place in the order; from registers.
    filled : Out(1)
        It is a tuple or a barrier; from a register.
    offers : Out(1)
        The output has to learn of it, unless ``silent`` changed in the last cycle; from a register.
    next_place : Out(gate_place(time_bits))
        Place of what will be the head.
    next_filled : Out(1)
        That is a tuple or a barrier; from a register.
    move : In(1)
        Replace the head.
    told : In(1)
        The output tells the time of the head, or offers what does so, or has told it before.
    silent : In(1)
        The output has said that no input is left; from a register.
    blocked : In(1)
        A word waits at the output of the merge, so the port may not begin to settle.
    settles : Out(1)
        Nothing may leave in the next cycle.
    """

    def __init__(self, layout, *, present=True):
        self.layout = layout
        self.latency = 2
        self._is_present = bool(present)
        time = layout["time"].shape
        place = gate_place(Shape.cast(time).width)
        super().__init__(
            {
                "i": In(stream.Signature(layout)),
                "floor": In(time),
                "head": Out(layout),
                "place": Out(place),
                "filled": Out(1),
                "offers": Out(1),
                "next_place": Out(place),
                "next_filled": Out(1),
                "move": In(1),
                "told": In(1),
                "silent": In(1),
                "blocked": In(1),
                "settles": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.held = held = StreamRegister(self.layout, early=["kind", "time"])
        joined = Signal(init=self._is_present)  # present, and the watermark is its own
        fresh = Signal()  # the watermark is that of a WATERMARK, and the head has not shown it
        self.elaborate_input(m, held.i, joined, fresh)
        self.elaborate_head(m, held.o, joined, fresh)
        return m

    def elaborate_input(self, m, o, joined, fresh):
        """Take words: store tuples and barriers, and keep the watermark."""
        word = self.i.payload
        mark, rises = Signal.like(word.time), Signal.like(word.time)
        stored, transfer = Signal(), Signal()
        takes, late = self.elaborate_return(m, mark, joined, transfer)
        m.d.comb += [
            stored.eq((word.kind == GateKind.TUPLE) | (word.kind == GateKind.BARRIER)),
            self.i.ready.eq(o.ready & joined & takes),
            transfer.eq(self.i.valid & self.i.ready),
            o.valid.eq(transfer & stored),
            o.payload.eq(word),
            # The register shows the time at its input when it is empty, so the watermark is at the
            # output then. A tuple at the input has the watermark that it makes.
            o.payload.time.eq(rises),
            o.payload.late.eq(word.late | late),
        ]
        risen = transfer & ~stored & ~late & ~word.late
        hidden = transfer & stored
        m.d.comb += rises.eq(Mux(joined, Mux(transfer & ~late, word.time, mark), self.floor))
        m.d.sync += [
            mark.eq(rises),
            fresh.eq(joined & (risen | (fresh & ~hidden & ~(self.move & ~self.next_filled)))),
        ]

    def elaborate_return(self, m, mark, joined, transfer):
        """Let an input leave and come back; return whether a word can be taken, and is late.

        Both depend on registers alone. While words may be late, one that is offered is sampled in
        its first cycle, and compared in the next one.
        """
        word = self.i.payload
        settling = Signal()
        behind = Signal()  # the input came back, and no word was in time yet
        sampled = Signal(
            data.StructLayout({"kind": GateKind, "time": len(word.time)}), reset_less=True
        )
        steady, checked, late = Signal(), Signal(), Signal()
        begins = self.place.gone & self.i.valid & ~self.blocked
        waits = behind & joined & self.i.valid & ~transfer
        m.d.comb += self.settles.eq(Mux(settling, ~joined, begins))
        m.d.sync += [
            settling.eq(self.settles),
            sampled.kind.eq(word.kind),
            sampled.time.eq(word.time),
            steady.eq(waits),
            checked.eq(waits & steady),
            late.eq(steady & is_late(m, sampled, mark)),
        ]
        with m.If(~joined):
            m.d.sync += [joined.eq(settling), behind.eq(1)]
        with m.Elif(transfer):
            m.d.sync += [joined.eq(word.kind != GateKind.LEAVE), behind.eq(late)]
        return checked | ~behind, late

    def elaborate_head(self, m, i, joined, fresh):
        """Show what the register behind the input holds, or else the watermark."""
        is_barrier = i.valid & (i.payload.kind == GateKind.BARRIER)
        shown = Signal(self.layout)
        head = Signal(self.layout, reset_less=True)
        ends, gone = Signal(), Signal(init=not self._is_present)  # of the head
        news = Signal()  # the head is a watermark that the output has not told
        m.d.comb += [
            self.next_filled.eq(i.valid),
            self.next_place.time.eq(i.payload.time),
            self.next_place.ends.eq(is_barrier),
            self.next_place.gone.eq(~i.valid & ~joined),
            i.ready.eq(self.move),
            shown.eq(i.payload),
            self.head.eq(head),
            self.place.time.eq(head.time),
            self.place.ends.eq(ends),
            self.place.gone.eq(gone),
        ]
        with m.If(~i.valid):
            m.d.comb += [
                shown.kind.eq(Mux(joined, GateKind.WATERMARK, GateKind.LEAVE)),
                shown.late.eq(0),
            ]
        untold = (news & ~self.told) | (self.move & fresh & ~i.valid)
        m.d.sync += news.eq(untold & joined)
        with m.If(self.move):
            m.d.sync += [
                head.eq(shown),
                self.filled.eq(i.valid),
                self.offers.eq(i.valid | Mux(joined, self.silent | untold, ~self.silent)),
                ends.eq(self.next_place.ends),
                gone.eq(self.next_place.gone),
            ]

# SPDX-License-Identifier: Apache-2.0
"""The entry of a source into a ScaleGate: its queue, its stalls, and its exclusion."""

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hdl.streams.pointer_queue import PointerQueue
from hdl.streams.registers import StreamRegister

from .late import LateCheck
from .words import GateKind

__all__ = ["COUNTER_BITS", "DEADLINE_BITS", "SourceEntry"]

#: Bits of the counter of stalled cycles, which wraps, and of a deadline.
COUNTER_BITS = 32
DEADLINE_BITS = 32


class SourceEntry(wiring.Component):
    """Queue the words of a source, count its stalls, and exclude it if it is asked to.

    A source that is excluded gets a LEAVE: it holds nobody back until its next word. Only a source
    that has no word here is excluded; otherwise ``exclude`` has no effect.

    The words also learn here whether they are late (:class:`hdl.scalegate.late.LateCheck`). A
    register stands between the queue and this check, because what reads the queue is slow.

    Latency: 3 cycles. Throughput: 1 word per cycle.

    Parameters
    ----------
    i_layout : data.StructLayout
        :func:`hdl.scalegate.words.source_word`.
    o_layout : data.StructLayout
        :func:`hdl.scalegate.words.gate_word`.
    number : int
        Number of the source.
    depth : int
        Places of the queue, a power of two.

    Members
    -------
    i : In(stream.Signature(i_layout))
        ``ready`` comes from a register.
    o : Out(stream.Signature(o_layout))
    blamed : In(1)
        Words of other sources wait for this one.
    exclude : In(1)
        Exclude the source now.
    deadline : In(DEADLINE_BITS)
        Exclude the source after this many stalled cycles on end, in the second cycle after the last
        one if it has no word by then; never if zero.
    stalls : Out(COUNTER_BITS)
        Cycles in which the source was blamed and had no word, a cycle late.
    excluded : Out(1)
        The source was excluded since reset or ``forget``.
    forget : In(1)
        Forget that the source was excluded.
    waits : Out(1)
        A word is in the entry.
    """

    def __init__(self, i_layout, o_layout, *, number, depth):
        self.i_layout = i_layout
        self.o_layout = o_layout
        self.number = number
        self.depth = depth
        self.latency = 3
        super().__init__(
            {
                "i": In(stream.Signature(i_layout)),
                "o": Out(stream.Signature(o_layout)),
                "blamed": In(1),
                "exclude": In(1),
                "deadline": In(DEADLINE_BITS),
                "stalls": Out(COUNTER_BITS),
                "excluded": Out(1),
                "forget": In(1),
                "waits": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.queue = queue = PointerQueue(self.i_layout, depth=self.depth, reserve=1)
        m.submodules.first = first = StreamRegister(self.o_layout, early=["kind", "time"])
        m.submodules.check = check = LateCheck(self.o_layout)
        connect(m, first.o, check.i)
        connect(m, check.o, flipped(self.o))
        leaves = Signal()  # a LEAVE goes out, before what comes meanwhile
        word = first.i.payload
        m.d.comb += [
            self.i.ready.eq(queue.room),
            queue.add.eq(self.i.valid & queue.room),
            queue.last.eq(self.i.payload),
            queue.take.eq(queue.filled & first.i.ready & ~leaves),
            first.i.valid.eq(queue.filled | leaves),
            word.source.eq(self.number),
        ]
        with m.If(leaves):
            m.d.comb += word.kind.eq(GateKind.LEAVE)
        with m.Else():
            m.d.comb += [
                word.kind.eq(queue.first.kind),
                word.time.eq(queue.first.time),
                word.body.eq(queue.first.body),
            ]
        left = Signal(DEADLINE_BITS)  # cycles up to the deadline
        stalled = Signal()
        counted = Signal()  # stalled in the last cycle: the carry chains begin at a register
        m.d.comb += [
            self.waits.eq(queue.filled | leaves | first.o.valid | check.o.valid),
            stalled.eq(self.blamed & ~self.waits),
        ]
        expired = Signal()  # the deadline has passed
        begins = ~self.waits & (self.exclude | expired)
        m.d.sync += [
            left.eq(Mux(counted & (left != 0), left - 1, self.deadline)),
            expired.eq(counted & (left == 1)),
            counted.eq(stalled),
            self.stalls.eq(self.stalls + counted),
            leaves.eq(begins | (leaves & ~first.i.ready)),
            self.excluded.eq(begins | (self.excluded & ~self.forget)),
        ]
        return m

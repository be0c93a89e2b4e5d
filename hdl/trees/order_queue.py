# SPDX-License-Identifier: Apache-2.0
"""Remembers the order in which groups closed, from the ingress to the combiner."""

from amaranth import *
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hdl.local_reset import reset_nearby
from hdl.streams.pointer_queue import PointerQueue
from hdl.streams.registers import StreamRegister

__all__ = ["OrderQueue"]


class OrderQueue(wiring.Component):
    """A queue that announces from a register whether there is ``room``, a few entries early.

    So whoever pushes need not wait for an answer: it asks for room some cycles before. Registers
    stand before and behind the queue, as what pushes and what takes are far apart.

    Latency: 4 cycles, from ``push`` to ``o``. Throughput: 1 entry per cycle.

    Parameters
    ----------
    shape : shape-like
        Shape of an entry, which has few bits.
    depth : int
        Entries, more than :attr:`in_flight`; a power of two.
    per_word : int
        Entries that an input word may bring.

    Attributes
    ----------
    in_flight : int
        Entries that may come without having seen that there is no ``room``: :attr:`IN_FLIGHT`, and
        the further ones of :attr:`WORDS` words.

    Members
    -------
    push : In(1)
    i : In(shape)
    room : Out(1)
        ``in_flight`` more entries will fit.
    o : Out(stream.Signature(shape))
    """

    #: Three that the ingress may push from the last cycle with ``room`` on
    #: (:class:`hdl.ingress.ingress.Ingress`), and those of the three cycles before, of which
    #: ``room`` does not know: ``push``, the queue's pointer and its level pass a register each on
    #: the way to it.
    IN_FLIGHT = 6
    #: Words that the ingress has accepted, but whose entries have not come.
    WORDS = 2

    def __init__(self, shape, *, depth, per_word=1):
        self.in_flight = self.IN_FLIGHT + self.WORDS * (per_word - 1)
        if depth <= self.in_flight:
            raise ValueError(f"A queue of {depth} entries cannot hold {self.in_flight} in flight")
        self.shape = shape
        self.depth = depth
        self.latency = 4
        super().__init__(
            {
                "push": In(1),
                "i": In(shape),
                "room": Out(1),
                "o": Out(stream.Signature(shape)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.queue = queue = PointerQueue(self.shape, depth=self.depth)
        level = Signal.like(queue.level)
        m.d.sync += [
            queue.add.eq(self.push),
            queue.last.eq(self.i),
            level.eq(queue.level),
            self.room.eq(level < self.depth - self.in_flight),
        ]
        self.elaborate_output(m, queue)
        return reset_nearby(m, platform)

    def elaborate_output(self, m, queue):
        """Put registers behind the queue.

        The first one takes what comes out of memory as it is, the second one shows it as it is:
        there are few bits, so it may be enabled by ``ready``.
        """
        m.submodules.fetched = fetched = StreamRegister(self.shape)
        m.submodules.output = output = StreamRegister(
            data.StructLayout({"entry": self.shape}), early=["entry"]
        )
        m.d.comb += [
            queue.take.eq(fetched.i.valid & fetched.i.ready),
            fetched.i.valid.eq(queue.filled),
            fetched.i.payload.eq(queue.first),
            fetched.o.ready.eq(output.i.ready),
            output.i.valid.eq(fetched.o.valid),
            output.i.payload.entry.eq(fetched.o.payload),
            output.o.ready.eq(self.o.ready),
            self.o.valid.eq(output.o.valid),
            self.o.payload.eq(output.o.payload.entry),
        ]

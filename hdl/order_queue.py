# SPDX-License-Identifier: Apache-2.0
"""Remembers the order in which groups closed, from the ingress to the combiner."""

from amaranth import *
from amaranth.lib import fifo, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from .index.pointer_queue import PointerQueue
from .streams import StreamRegister

__all__ = ["OrderQueue"]


class OrderQueue(wiring.Component):
    """A queue that announces from a register whether there is ``room``, a few entries early.

    So whoever pushes need not wait for an answer: it asks for room a cycle before.

    Latency: 3 cycles, from ``push`` to ``o``; 1 if not ``pipelined``. Throughput: 1 entry per
    cycle.

    Parameters
    ----------
    shape : shape-like
        Shape of an entry.
    depth : int
        Entries, more than :attr:`IN_FLIGHT`; a power of two if not ``pipelined``.
    pipelined : bool
        Whether there are registers behind the queue.

    Members
    -------
    push : In(1)
    i : In(shape)
    room : Out(1)
        :attr:`IN_FLIGHT` more entries will fit.
    o : Out(stream.Signature(shape))
    """

    #: Entries that may come after ``room`` fell: it is a register, and so may be ``push``.
    IN_FLIGHT = 3

    def __init__(self, shape, *, depth, pipelined=True):
        if depth <= self.IN_FLIGHT:
            raise ValueError(f"A queue of {depth} entries cannot hold {self.IN_FLIGHT} in flight")
        self.shape = shape
        self.depth = depth
        self.pipelined = pipelined
        self.latency = 3 if pipelined else 1
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
        if not self.pipelined:
            m.submodules.queue = queue = PointerQueue(self.shape, depth=self.depth)
            m.d.comb += [
                queue.add.eq(self.push),
                queue.last.eq(self.i),
                queue.take.eq(self.o.valid & self.o.ready),
                self.o.valid.eq(queue.filled),
                self.o.payload.eq(queue.first),
            ]
            m.d.sync += self.room.eq(queue.level < self.depth - self.IN_FLIGHT)
            return m
        width = Shape.cast(self.shape).width
        m.submodules.queue = queue = fifo.SyncFIFOBuffered(width=width, depth=self.depth)
        m.submodules.output = output = StreamRegister(self.shape)
        connect(m, queue.r_stream, output.i)
        connect(m, output.o, flipped(self.o))
        m.d.comb += [queue.w_data.eq(self.i), queue.w_en.eq(self.push)]
        m.d.sync += self.room.eq(queue.w_level < self.depth - self.IN_FLIGHT)
        return m

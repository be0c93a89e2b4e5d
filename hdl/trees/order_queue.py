# SPDX-License-Identifier: Apache-2.0
"""Remembers the order in which groups closed, from the ingress to the combiner."""

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hdl.local_reset import reset_nearby
from hdl.streams.pointer_queue import PointerQueue
from hdl.streams.registers import SpareRegister, StreamRegister

__all__ = ["OrderQueue"]


class OrderQueue(wiring.Component):
    """A queue that announces from a register whether there is ``room``, a few entries early.

    So whoever pushes need not wait for an answer: it asks for room some cycles before. Registers
    stand before and behind the queue, as what pushes and what takes are far apart.

    Latency: 4 cycles, from ``push`` to ``o``; 1 if not ``pipelined``. Throughput: 1 entry per
    cycle.

    Parameters
    ----------
    shape : shape-like
        Shape of an entry, which has few bits.
    depth : int
        Entries, more than :attr:`in_flight`; a power of two.
    pipelined : bool
        Whether there are registers around the queue.
    per_word : int
        Entries that an input word may bring.

    Attributes
    ----------
    in_flight : int
        Entries that may come without having seen that there is no ``room``: :attr:`IN_FLIGHT`, or
        :attr:`PLAIN_IN_FLIGHT` if not ``pipelined``; and the further ones of :attr:`WORDS` words.

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
    #: The one of the last cycle with ``room`` and that of the cycle before, which is on its way to
    #: the queue's pointer; one more if ``closing`` were a register.
    PLAIN_IN_FLIGHT = 3

    #: Words that the ingress has accepted, but whose entries have not come.
    WORDS = 2

    def __init__(self, shape, *, depth, pipelined=True, per_word=1):
        self.in_flight = self.IN_FLIGHT if pipelined else self.PLAIN_IN_FLIGHT
        self.in_flight += self.WORDS * (per_word - 1)
        if depth <= self.in_flight:
            raise ValueError(f"A queue of {depth} entries cannot hold {self.in_flight} in flight")
        self.shape = shape
        self.depth = depth
        self.pipelined = pipelined
        self.latency = 4 if pipelined else 1
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
        if not self.pipelined:
            self.elaborate_queue(m, queue, queue.level, self.o)
            m.d.comb += [queue.add.eq(self.push), queue.last.eq(self.i)]
            return m
        self.elaborate_registers(m, queue)
        return reset_nearby(m, platform, pipelined=True)

    def elaborate_registers(self, m, queue):
        """Put registers around the queue.

        Behind it the first one takes what comes out of memory as it is, the second one shows it as
        it is: there are few bits, so it may be enabled by ``ready``.
        """
        m.submodules.fetched = read = StreamRegister(self.shape)
        m.submodules.output = output = SpareRegister(self.shape)
        connect(m, read.o, output.i)
        connect(m, output.o, flipped(self.o))
        level = Signal.like(queue.level)
        self.elaborate_queue(m, queue, level, read.i)
        m.d.sync += [queue.add.eq(self.push), queue.last.eq(self.i), level.eq(queue.level)]

    def elaborate_queue(self, m, queue, level, o):
        """Let the queue's elements out to ``o``; look for room at ``level``."""
        m.d.comb += [
            queue.take.eq(o.valid & o.ready),
            o.valid.eq(queue.filled),
            o.payload.eq(queue.first),
        ]
        m.d.sync += self.room.eq(level < self.depth - self.in_flight)

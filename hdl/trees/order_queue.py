# SPDX-License-Identifier: Apache-2.0
"""Queue of the order in which groups closed, from the ingress to the combiner."""

from amaranth import *
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hdl.local_reset import reset_nearby
from hdl.streams.pointer_queue import PointerQueue
from hdl.streams.registers import StreamRegister

__all__ = ["OrderQueue"]


class OrderQueue(wiring.Component):
    """A queue whose ``room`` falls while several entries still fit.

    So the ingress can check ``room`` some cycles before it pushes an entry, and never waits when it
    pushes. There are registers in front of the queue and behind it, as the ingress and the combiner
    are far apart.

    Latency: 4 cycles, from ``push`` to ``o``. Throughput: 1 entry per cycle.

    Parameters
    ----------
    shape : shape-like
        Shape of an entry, which has few bits.
    depth : int
        Number of entries, more than :attr:`in_flight`; a power of two.
    per_word : int
        Largest number of entries that one input word brings.

    Attributes
    ----------
    in_flight : int
        Number of entries that may come before the producer reacts to the fall of ``room``:
        :attr:`IN_FLIGHT`, and ``per_word - 1`` more for each of :attr:`WORDS` words.

    Members
    -------
    push : In(1)
    i : In(shape)
    room : Out(1)
        High while ``in_flight`` more entries fit; from a register.
    o : Out(stream.Signature(shape))
    """

    #: The ingress may push three entries from the last cycle with ``room`` on
    #: (:class:`hdl.ingress.ingress.Ingress`). It may have pushed three more in the cycles before,
    #: which ``room`` does not reflect yet: ``push``, the pointer of the queue and its level pass
    #: one register each on the way to ``room``.
    IN_FLIGHT = 6
    #: Words that the ingress may have accepted whose entries have not been pushed yet.
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
        """Put two stream registers behind the queue.

        The first register takes an entry directly from the memory. The second one shows it directly
        from a register, which ``ready`` enables; an entry has few enough bits for that.
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

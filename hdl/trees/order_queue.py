# SPDX-License-Identifier: Apache-2.0
"""The order of stars and turns in a tree."""

from amaranth import *
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hdl.local_reset import reset_nearby
from hdl.streams.queues import PointerQueue
from hdl.streams.registers import StreamRegister

__all__ = ["OrderQueue", "TurnQueue", "Turns"]


class OrderQueue(wiring.Component):
    """A FIFO with an almost-full flag: ``room`` falls while several entries still fit.

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


class TurnQueue(wiring.Component):
    """Expand the order in which groups closed into turns of one side each, and show the next two.

    Turns are held in registers and move up as turns end. There are five places, so that two turns
    can end in every cycle while an entry of two turns comes in every cycle.

    Latency: 1 cycle. Throughput: 1 entry per cycle, and 2 turns per cycle.

    Members
    -------
    i : In(stream.Signature(3))
        Sides whose groups closed, at least one: bit 0 for R, bit 1 for S. If both closed, R comes
        first unless bit 2 is set (:func:`hdl.words.results.turns_shape`).
    first : Out(2)
        Side whose turn it is: bit 0 for R, bit 1 for S. Zero while no turn waits.
    second : Out(2)
        Side whose turn is the next one, in the same form.
    ended : In(2)
        Bit 0: the first turn ends in this cycle. Bit 1: the second turn ends as well; only together
        with bit 0.
    """

    PLACES = 5

    def __init__(self):
        self.latency = 1
        super().__init__(
            {
                "i": In(stream.Signature(3)),
                "first": Out(2),
                "second": Out(2),
                "ended": In(2),
            }
        )

    def elaborate(self, platform):
        m = Module()
        turns = [Signal(2, name=f"turn_{n}") for n in range(self.PLACES)]
        # Two turns must fit, even if no turn ends in this cycle.
        m.d.comb += [
            self.i.ready.eq(turns[-2] == 0),
            self.first.eq(turns[0]),
            self.second.eq(turns[1]),
        ]
        sides, s_first = self.i.payload[:2], self.i.payload[2]
        is_s = ~sides[0] | (sides.all() & s_first)
        transfer = self.i.valid & self.i.ready
        leader, follower = Signal(2), Signal(2)
        with m.If(transfer):
            m.d.comb += leader.eq(Cat(~is_s, is_s))
            with m.If(sides.all()):
                m.d.comb += follower.eq(Cat(is_s, ~is_s))

        none = Const(0, 2)
        left = []  # content of each place after the turns that end have left
        # Whether each place is occupied then. The constants stand for two places before the first.
        taken = [Const(0), Const(1)]
        for place in range(self.PLACES):
            now, one, two = [*turns[place:], none, none][:3]
            left.append(Mux(self.ended[1], two, Mux(self.ended[0], one, now)))
            taken.append(Mux(self.ended[1], two.any(), Mux(self.ended[0], one.any(), now.any())))
        for place, turn in enumerate(turns):
            before_last, last, own = taken[place : place + 3]
            entering = Mux(last, leader, Mux(before_last, follower, 0))
            m.d.sync += turn.eq(Mux(own, left[place], entering))
        return m


class Turns(wiring.Component):
    """Say in advance which side comes next.

    If the groups of both sides closed at once, both sides have a turn, R first.

    Latency: 1 cycle. Throughput: 1 turn per cycle.

    Members
    -------
    i : In(stream.Signature(2))
        Sides whose groups closed, at least one: bit 0 for R, bit 1 for S.
    o : Out(stream.Signature(2))
        Side whose turn it is, in the same form, directly from a register. It is zero while no turn
        waits, so it needs no ``valid`` beside it.
    """

    def __init__(self):
        self.latency = 1
        super().__init__({"i": In(stream.Signature(2)), "o": Out(stream.Signature(2))})

    def elaborate(self, platform):
        m = Module()
        m.submodules.output = output = StreamRegister(
            data.StructLayout({"side": 2}), early=["side"]
        )
        turn, sides = output.i, self.i.payload
        both = sides.all()
        r_done = Signal()  # both sides have a turn, and that of R is over
        is_s = ~sides[0] | r_done
        m.d.comb += [
            turn.valid.eq(self.i.valid),
            turn.payload.side.eq(Cat(self.i.valid & ~is_s, self.i.valid & is_s)),
            self.i.ready.eq(turn.ready & (~both | r_done)),
            self.o.valid.eq(output.o.valid),
            self.o.payload.eq(output.o.payload.side),
            output.o.ready.eq(self.o.ready),
        ]
        with m.If(turn.valid & turn.ready):
            m.d.sync += r_done.eq(both & ~r_done)
        return m

# SPDX-License-Identifier: Apache-2.0
"""Queue of the deadlines of a window's keys, with the next three deadlines in registers."""

from amaranth import *
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hdl.memory.key_column import KeyColumn
from hdl.memory.parity_column import ParityColumn
from hdl.memory.read_ahead import ReadAhead
from hdl.streams.delay import delayed
from hdl.streams.registers import StreamRegister

__all__ = ["DeadlineQueue"]


class DeadlineQueue(wiring.Component):
    """A queue of numbers in block RAM, with registers at both ends.

    A number goes straight to the registers at the output end if no other number is queued in front
    of them. Otherwise it goes into the memory, and is read ahead from there. Then it moves up
    through three registers, one after the other: ``coming``, ``following`` and ``oldest``. A number
    stays in each of them for at least one cycle, so what is known of a number in one register is
    known of it in the next. Reset empties the queue.

    The last two registers are placed near the consumer, and the memory where the device has block
    RAM. To bridge the distance, there is a stream register in front of the last two registers, and
    the memory learns a cycle later that a number was taken.

    Latency: 3 cycles from ``add`` until the number is the ``following`` one, 4 until it is the
    ``oldest`` one, of an empty queue. Up to :attr:`latency` cycles until it is the ``oldest`` one
    if others came shortly before, so that the number has to go through the memory. Throughput: 1
    number added and 1 number taken per cycle.

    Parameters
    ----------
    width : int
        Bits of a number.
    depth : int
        Numbers that the memory holds, a power of two.
    parity : bool
        Whether the memory has parity bits.

    Members
    -------
    add : In(1)
        Append ``last``. There is no protection against an overflow: ``depth`` numbers fit.
    last : In(width)
    take : In(1)
        Remove the ``oldest`` number; only while it is valid.
    oldest, following, coming : Out(width)
        The last three registers.
    oldest_valid, following_valid : Out(1)
        There may be a ``following`` number without an ``oldest`` one for a cycle; it moves up then.
    rises : Out(2)
        The ``following`` number, if there is one, becomes the ``oldest`` one; the number that is
        ``coming``, if there is one, becomes the ``following`` one.
    wrong : Out(1)
        A number that was read holds a flipped bit; from a register, only with parity. It is told in
        the cycle in which the number is the first one that was read ahead, or earlier.
    """

    def __init__(self, width, *, depth, parity=False):
        self.width = width
        self.depth = depth
        self.parity = parity
        # A number is registered (1), goes to the memory (1), is written late (2), is read ahead,
        # and moves up (3).
        self.latency = 4 + (KeyColumn.LATENCY + 1) + 3
        super().__init__(
            {
                "add": In(1),
                "last": In(width),
                "take": In(1),
                "oldest": Out(width),
                "following": Out(width),
                "coming": Out(width),
                "oldest_valid": Out(1),
                "following_valid": Out(1),
                "rises": Out(2),
                **({"wrong": Out(1)} if parity else {}),
            }
        )

    def elaborate(self, platform):
        m = Module()
        oldest, following = (
            Signal(self.width, reset_less=True, name=name)
            for name in ("now_oldest", "now_following")
        )
        arriving = delayed(m, {"add": self.add, "last": self.last}, "arriving", flags=["add"])
        # Consumers compare the number that is coming, so it comes directly from a register.
        m.submodules.next = next_ = StreamRegister(
            data.StructLayout({"number": self.width}), early=["number"]
        )
        self.elaborate_memory(m, next_.i, **arriving)
        rises = Signal(2, name="rises_now")
        m.d.comb += [
            rises.eq(Cat(~self.oldest_valid | self.take, ~self.following_valid | rises[0])),
            next_.o.ready.eq(rises[1]),
            self.rises.eq(rises),
            self.oldest.eq(oldest),
            self.following.eq(following),
            self.coming.eq(next_.o.payload.number),
        ]
        with m.If(rises[0]):
            m.d.sync += [oldest.eq(following), self.oldest_valid.eq(self.following_valid)]
        with m.If(rises[1]):
            m.d.sync += [
                following.eq(next_.o.payload.number),
                self.following_valid.eq(next_.o.valid),
            ]
        return m

    def elaborate_memory(self, m, next_, add, last):
        """Queue numbers in the memory, and pass them on as they are read.

        A number that is added while the memory holds none is passed on directly.
        """
        column = ParityColumn if self.parity else KeyColumn
        m.submodules.numbers = memory = column(width=self.width, depth=self.depth, late=True)
        m.submodules.ahead = ahead = ReadAhead(self.width, depth=self.depth, tells=self.parity)
        if self.parity:
            m.d.comb += [memory.checked.eq(ahead.reads), self.wrong.eq(memory.wrong)]
        head, come, written = (
            Signal.like(ahead.head, name=name) for name in ("head", "come", "written")
        )
        held = Signal.like(head)  # numbers in the memory, or on their way through it
        none = Signal(init=1)
        into, out = add & ~(none & next_.ready), ahead.filled & next_.ready
        # A number that is added while the next register has no room goes into the memory. It is
        # offered again when it has been read.
        m.d.comb += [
            next_.valid.eq(ahead.filled | (add & none)),
            next_.payload.number.eq(Mux(none, last, ahead.first)),
        ]
        # `into` arrives late, and the block RAMs are far away.
        arriving = {"into": into, "place": head, "row": last}
        near = delayed(m, arriving, "near", flags=["into"])
        m.d.comb += [
            memory.write.eq(near["into"]),
            memory.place.eq(near["place"]),
            memory.row.eq(near["row"]),
            memory.address.eq(ahead.address),
            ahead.row.eq(memory.data),
            ahead.head.eq(written),
            ahead.take.eq(out),
        ]
        m.d.sync += [come.eq(head), written.eq(come)]
        with m.If(into):
            m.d.sync += head.eq(head + 1)
        with m.If(into & ~out):
            m.d.sync += [held.eq(held + 1), none.eq(0)]
        with m.Elif(out & ~into):
            m.d.sync += [held.eq(held - 1), none.eq(held == 1)]

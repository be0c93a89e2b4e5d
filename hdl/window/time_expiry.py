# SPDX-License-Identifier: Apache-2.0
"""Expiry by time: deadlines, ages, and the keys that have passed theirs."""

from amaranth import *
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from hdl.ecp5 import is_below
from hdl.memory.columns import KeyColumn, ParityColumn
from hdl.memory.read_ahead import ReadAhead
from hdl.streams.registers import StreamRegister, delayed
from hdl.words.inputs import control_layout

__all__ = ["AgeFlags", "DeadlineQueue", "TimeExpiry", "time_members", "times_layout"]


class AgeFlags(wiring.Component):
    """Compare the timestamps of a word with two deadlines before the word is at hand.

    A word is at hand while it is at the output of the region's input register, a
    :class:`hdl.streams.registers.StreamRegister`. This component holds the timestamps of the same
    words in the same places as that register. It stands beside the last registers of a
    :class:`hdl.window.time_expiry.DeadlineQueue` as well. Words and deadlines both move up, and
    a pair of them is compared in the cycle before it is the word at hand and one of the two oldest
    deadlines. So accepting a tuple depends on registers instead of comparisons, and a word may come
    and a key may leave in the same cycle.

    The word that comes next is compared with all three deadlines. The word at hand is compared with
    the deadline that is coming only: what is known of the others moves up with them.

    Latency: 0 cycles from ``rises`` and ``moves`` to the flags of what has moved. Throughput: 1
    word and 1 deadline per cycle.

    Parameters
    ----------
    bits : int
        Width of a timestamp.
    count : int
        Number of timestamps in a word.

    Members
    -------
    coming : In(data.ArrayLayout(bits, count))
        Timestamps of the word at the input of the stream register.
    fills : In(1)
        The stream register is ready.
    moves : In(1)
        No word is at hand, or the word at hand leaves the stream register.
    deadlines : In(data.ArrayLayout(bits + 1, 3))
        The ``oldest`` deadline of the queue, the ``following`` one and the one that is ``coming``:
        the last times at which their keys are in the window.
    rises : In(2)
        Which of the deadlines move up, as the queue tells.
    outlived : Out(data.ArrayLayout(count, 2))
        For the ``oldest`` deadline and the ``following`` one, and for each timestamp of the word at
        hand: whether the timestamp is beyond the deadline. Of no meaning unless the deadline is
        valid and a word is at hand.
    """

    def __init__(self, bits, count):
        self.bits = bits
        self.count = count
        self.latency = 0
        super().__init__(
            {
                "coming": In(data.ArrayLayout(bits, count)),
                "fills": In(1),
                "moves": In(1),
                "deadlines": In(data.ArrayLayout(bits + 1, 3)),
                "rises": In(2),
                "outlived": Out(data.ArrayLayout(count, 2)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        spare, next_, at_hand = (
            Signal.like(self.coming, reset_less=True, name=name)
            for name in ("spare", "next_times", "at_hand")
        )
        m.d.comb += next_.eq(Mux(self.fills, self.coming, spare))
        with m.If(self.fills):
            m.d.sync += spare.eq(self.coming)
        with m.If(self.moves):
            m.d.sync += at_hand.eq(next_)

        known = [Signal(self.count, reset_less=True, name=f"beyond_{n}") for n in range(2)]
        staying = [*known, self.beyond(m, at_hand, self.deadlines[2])]
        moving = [self.beyond(m, next_, deadline) for deadline in self.deadlines]
        for n, flags in enumerate(known):
            of_word = [
                Mux(self.rises[n], flags_of[n + 1], flags_of[n]) for flags_of in (staying, moving)
            ]
            m.d.comb += self.outlived[n].eq(flags)
            m.d.sync += flags.eq(Mux(self.moves, of_word[1], of_word[0]))
        return m

    def beyond(self, m, times, deadline):
        """Return for each timestamp whether it is beyond ``deadline``."""
        return Cat(is_below(m, deadline, times[n]) for n in range(self.count))


class DeadlineQueue(wiring.Component):
    """A FIFO of numbers in block RAM, with registers at both ends.

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


class TimeExpiry(wiring.Component):
    """Remove the keys whose lifespan has passed at the timestamp at hand, one per cycle.

    The deadlines of all keys of the span wait in a :class:`DeadlineQueue`. :class:`AgeFlags`
    compares the two oldest deadlines in advance with the timestamps of the words in the region's
    input register. A tuple is settled if the oldest key lives, or if that key leaves in this cycle
    and the following one lives. So the first key that leaves for a tuple costs no cycle.

    Of the two tuples of a word, the second one is settled together with the first one if at most
    one key leaves for both of them. A key that leaves for the second one only leaves between them,
    in the cycle in which both take effect. In that cycle no key leaves for the next word, which
    waits for a cycle if one has to.

    Latency: 0 cycles if at most 1 key is to be removed, otherwise 1 cycle for each key beyond the
    first; 1 more if no key is left then. 2 more when the first key has only just been stored, and
    up to 9 more when the oldest deadline is still on its way into or out of memory. Throughput: 1
    word and 1 key per cycle.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator, which has timestamps.

    Members
    -------
    begin : In(1)
        Begin a time-based window of lifespan ``size``. ``restart`` follows.
    size : In
    restart : In(1)
        Empty the window.
    timed : In(1)
        The window is time-based.
    coming : In(times_layout(parameters))
        Timestamps of the word at the input of the region's input register, in the order of its
        tuples. Where there are two timestamps, a single tuple has its timestamp in both places.
    fills : In(1)
        The region's input register is ready.
    moves : In(1)
        No word is at hand, at the output of that register, or the word at hand leaves the register.
    present : In(1)
        A tuple of either side is at hand.
    store : In(1)
        A key with the timestamp ``arrival`` is stored.
    arrival : In
    vacant : In(1)
        The window holds no key, and none is about to be stored.
    aged : Out(1)
        The oldest key leaves in this cycle, on behalf of the tuple at hand.
    settled : Out(1)
        No key is left after this cycle that has to be removed on behalf of the tuple at hand.
    wrong : Out(1)
        A deadline that was read from memory holds a flipped bit; only with parity.

    If ``parameters.side_by_side``, also:

    rest : In(1)
        Of the word at hand, only the second tuple is left. Then ``settled`` is high anyway.
    between : In(1)
        The tuple at hand is stored, and the second tuple of the word comes after that.
    all_settled : Out(1)
        If ``settled`` as well: no key is left after the next cycle that has to be removed on behalf
        of the last tuple at hand. This takes the key that is stored in between into account: it
        lives at least as long as any key now, if there is one.
    accepted : In(1)
        All tuples at hand are accepted in this cycle.
    parts : Out(1)
        The oldest key leaves in this cycle, between the two tuples that were accepted in the
        previous cycle; from a register.
    """

    def __init__(self, parameters):
        self.parameters = parameters
        self.latency = 0
        super().__init__(
            {
                "begin": In(1),
                "size": In(control_layout(parameters)["value"].shape),
                "restart": In(1),
                "timed": In(1),
                **time_members(parameters),
                "present": In(1),
                "store": In(1),
                "arrival": In(parameters.timestamp_bits),
                "vacant": In(1),
                "aged": Out(1),
                "settled": Out(1),
                **({"wrong": Out(1)} if parameters.engine.parity else {}),
            }
        )

    def elaborate(self, platform):
        m = Module()
        bits = self.parameters.timestamp_bits
        lifespan = Signal(bits)
        with m.If(self.begin):
            m.d.sync += lifespan.eq(self.size)
        emptied = ResetInserter(self.restart)
        m.submodules.deadlines = deadlines = emptied(
            DeadlineQueue(
                bits + 1,
                depth=1 << ceil_log2(self.parameters.window.sub_window),
                parity=self.parameters.engine.parity,
            )
        )
        if self.parameters.engine.parity:
            m.d.comb += self.wrong.eq(deadlines.wrong)
        m.submodules.flags = flags = AgeFlags(bits, self.coming.shape().length)
        m.d.comb += [
            deadlines.add.eq(self.store & self.timed),
            deadlines.last.eq(self.arrival + lifespan),
            Value.cast(flags.deadlines).eq(
                Cat(deadlines.oldest, deadlines.following, deadlines.coming)
            ),
            flags.rises.eq(deadlines.rises),
            *(
                getattr(flags, name).eq(getattr(self, name))
                for name in ("coming", "fills", "moves")
            ),
        ]
        valid, next_valid = (
            bit.replicate(flags.count)
            for bit in (deadlines.oldest_valid, deadlines.following_valid)
        )
        # For each timestamp of the word at hand: the oldest key has to leave, the oldest key lives,
        # the following key lives.
        outlived = flags.outlived[0] & valid
        lives = ~flags.outlived[0] & valid
        next_lives = ~flags.outlived[1] & next_valid
        lasts = self.vacant | ~self.timed
        if self.parameters.side_by_side:
            self.elaborate_both(m, deadlines, lasts, outlived, lives, next_lives)
            return m
        m.d.comb += [
            self.aged.eq(self.present & outlived),
            deadlines.take.eq(self.aged),
            self.settled.eq(lasts | lives | next_lives),
        ]
        return m

    def elaborate_both(self, m, deadlines, lasts, outlived, lives, next_lives):
        """Settle the tuples of a word together, if they can be.

        ``lasts``: no key leaves, whatever the timestamps.
        """
        first_outlived = Mux(self.rest, outlived[1], outlived[0])
        parting, parts = Signal(), Signal(name="parts_now")
        # The window may be about to become time-based, but only together with a restart.
        alone = self.between & (self.vacant | self.restart)
        m.d.sync += parts.eq(parting & ~self.restart)
        m.d.comb += [
            parting.eq(self.accepted & outlived[1] & ~first_outlived),
            self.parts.eq(parts),
            self.aged.eq(self.present & first_outlived & ~parts),
            deadlines.take.eq(self.aged | parting),
            # While a key parts, no other key can leave for the first tuple of the next word.
            self.settled.eq(self.rest | lasts | lives[0] | (next_lives[0] & ~parts)),
            self.all_settled.eq((lasts | lives[1] | next_lives[1]) & ~alone),
        ]


def times_layout(parameters):
    """Return the layout of the timestamps of a region word, in the order of its tuples."""
    return data.ArrayLayout(parameters.timestamp_bits, 2 if parameters.side_by_side else 1)


def time_members(parameters):
    """Return the members of a component that settles the timestamps of a region's words."""
    members = {"coming": In(times_layout(parameters))}
    if not parameters.timestamp_bits:
        return members
    members |= {"fills": In(1), "moves": In(1)}
    if parameters.side_by_side:
        members |= {
            "rest": In(1),
            "between": In(1),
            "all_settled": Out(1),
            "accepted": In(1),
            "parts": Out(1),
        }
    return members

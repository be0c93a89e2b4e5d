# SPDX-License-Identifier: Apache-2.0
"""Which tuples of one side a region holds: storage turns and expiration, without coordination."""

from amaranth import *
from amaranth.lib import fifo, wiring
from amaranth.lib.wiring import In, Out, connect
from amaranth.utils import ceil_log2

from hdl.streams.registers import StreamRegister
from hdl.words.inputs import control_layout
from hdl.words.spans import pointer_layout, span_layout

__all__ = ["WindowTracker"]


class WindowTracker(wiring.Component):
    """Count a side's tuples, take every ``cores``-th, expire the old ones (Algorithms 2 and 4).

    The region's share of the window is always ``span``. A tuple is stored by the region whose turn
    it is, known from its own position and count alone. A count-based window expires passively: once
    ``size`` tuples were seen, each further tuple expires the oldest one, whose owner follows the
    same turns. A time-based window expires actively: every tuple of either side that is presented
    first removes what has outlived ``lifespan`` by its timestamp, one key a cycle, and is
    ``settled`` when nothing is left to remove. (The seed expires on probes alone; expiring on
    stores too makes an overflow exact, and independent of when probes happen to come.)

    ``overflow`` rises when a tuple would have to be stored in a region that is full, and stays
    until ``forget``; the tuple is not stored. A window of at most ``capacity`` tuples never gets
    there, so keys are counted only if there are timestamps.

    Counters come with flags that say, from a register, what they are about to reach: so a tuple's
    fate depends on a few bits. What begins anew does so a cycle after it is asked for: it changes
    every register, and so comes from one.

    Latency: 0 cycles, plus 1 per expired key, plus up to 4 when the oldest timestamp is still on
    its way into or out of memory. Throughput: 1 tuple per cycle.

    Parameters
    ----------
    parameters : JoinParameters
        Of the accelerator.

    Members
    -------
    position : In
        Number of the core, 0 to ``cores - 1``.
    present : In(1)
        A tuple of either side with ``timestamp`` is at hand.
    timestamp : In
        Its timestamp.
    settled : Out(1)
        Expiration on behalf of ``timestamp`` is complete; hold ``present`` until then.
    mine : Out(1)
        The next tuple of the tracked side would be stored here. Known a cycle after reset, as are
        all other outputs.
    store : In(1)
        Take a tuple of the tracked side, for which ``settled`` was seen a cycle ago.
    arrival : In
        Its timestamp.
    stored : Out(1)
        It belongs at ``span.head``, here and now.
    span : Out
        Keys of the window stored here.
    second, stop : Out
        The row after the first one that holds any of them, and after the last one.
    overflow : Out(1)
    begin_count, begin_time : In(1)
        Begin a new, empty window of ``size`` tuples or of lifespan ``size``. No tuple is stored in
        the next cycle, as none is accepted in this one.
    empty : In(1)
        Empty the window; likewise.
    forget : In(1)
        Forget an overflow; likewise.
    size : In
        1 to ``capacity`` for a count-based window.
    """

    def __init__(self, parameters):
        self.parameters = parameters
        self.latency = 0
        super().__init__(
            {
                "position": In(range(max(2, parameters.cores))),
                "present": In(1),
                "timestamp": In(parameters.timestamp_bits),
                "settled": Out(1),
                "mine": Out(1),
                "store": In(1),
                "arrival": In(parameters.timestamp_bits),
                "stored": Out(1),
                "span": Out(span_layout(parameters)),
                "second": Out(pointer_layout(parameters)["row"].shape, init=1),
                "stop": Out(pointer_layout(parameters)["row"].shape),
                "overflow": Out(1),
                "begin_count": In(1),
                "begin_time": In(1),
                "empty": In(1),
                "forget": In(1),
                "size": In(control_layout(parameters)["value"].shape),
            }
        )

    def elaborate(self, platform):
        m = Module()
        timed = Signal()
        # Reset, of two cycles at least, empties the window: so most registers have none themselves.
        empty = Signal(init=1, name="now_empty")
        begin_count, begin_time, forget = (
            Signal(name=name) for name in ("now_count", "now_time", "now_forget")
        )
        m.d.sync += [
            empty.eq(self.begin_count | self.begin_time | self.empty),
            begin_count.eq(self.begin_count),
            begin_time.eq(self.begin_time),
            forget.eq(self.forget),
        ]
        aged = Signal()  # the oldest key leaves because time has passed
        displaced = Signal()  # … because the count-based window is full

        displaces = self.elaborate_size(m, timed, empty, begin_count)
        self.elaborate_turn(m, "turn", self.mine, self.store, empty)
        leaves = aged | displaced
        self.elaborate_span(m, leaves, empty)
        m.d.comb += displaced.eq(self.store & displaces)
        if self.parameters.timestamp_bits:
            full, vacant = self.elaborate_held(m, leaves, empty)
            m.d.comb += self.stored.eq(self.store & self.mine & (~full | displaces))
            with m.If(forget):
                m.d.sync += self.overflow.eq(0)
            with m.Elif(self.store & self.mine & ~self.stored):
                m.d.sync += self.overflow.eq(1)
            with m.If(begin_time):
                m.d.sync += timed.eq(1)
            self.elaborate_aging(m, timed, vacant, empty, aged)
        else:
            m.d.comb += [self.stored.eq(self.store & self.mine), self.settled.eq(1)]
        with m.If(begin_count):
            m.d.sync += timed.eq(0)
        return m

    def elaborate_size(self, m, timed, empty, begin_count):
        """Count a count-based window up to its size, then the turns of its oldest tuples.

        Return whether the next tuple makes the oldest one leave, and that is here.
        """
        capacity = self.parameters.capacity
        counted = self.store & ~timed
        size = Signal(range(capacity + 1), init=capacity)
        left = Signal.like(size, reset_less=True)  # tuples until then
        last_missing, filled = Signal(reset_less=True), Signal(reset_less=True)
        single = Signal(init=capacity == 1)  # it is one
        asked = Signal.like(size, name="asked", reset_less=True)
        asked_single = Signal(reset_less=True)
        m.d.sync += [asked.eq(self.size), asked_single.eq(self.size[: len(size)] == 1)]
        expires, displaces = Signal(), Signal(reset_less=True)
        then = self.elaborate_turn(m, "expire_turn", expires, counted & filled, empty)
        with m.If(empty):
            with m.If(begin_count):
                m.d.sync += [
                    Cat(size, left).eq(Cat(asked, asked)),
                    Cat(single, last_missing).eq(asked_single.replicate(2)),
                ]
            with m.Else():
                m.d.sync += [left.eq(size), last_missing.eq(single)]
            m.d.sync += Cat(filled, displaces).eq(0)
        with m.Elif(counted):
            with m.If(~filled):
                m.d.sync += [left.eq(left - 1), last_missing.eq(left == 2), filled.eq(last_missing)]
            m.d.sync += displaces.eq(Mux(filled, then, last_missing & expires))
        return displaces

    def elaborate_turn(self, m, name, mine, advance, empty):
        """Count turns down to this region's; ``mine`` says, from a register, that it is there.

        Return what it says after an ``advance``.
        """
        last = self.parameters.cores - 1
        if last == 0 and not self.parameters.pipelined:  # a single core's turn is always
            m.d.comb += mine.eq(1)
            return mine
        left = Signal.like(self.position, name=name, reset_less=True)  # turns until then
        here = Signal(reset_less=True, name=f"{name}_here")
        m.d.comb += mine.eq(here)
        then = Mux(here, last == 0, left == 1)
        with m.If(empty):
            m.d.sync += [left.eq(self.position), here.eq(self.position == 0)]
        with m.Elif(advance):
            m.d.sync += [left.eq(Mux(here, last, left - 1)), here.eq(then)]
        return then

    def elaborate_span(self, m, leaves, empty):
        """Move both ends of the span."""
        span, second, stop = (
            Signal.like(member, name=name, reset_less=True)
            for name, member in (("span", self.span), ("second", self.second), ("stop", self.stop))
        )
        m.d.comb += [self.span.eq(span), self.second.eq(second), self.stop.eq(stop)]
        with m.If(self.stored):
            m.d.sync += span.head.eq(self.following(span.head))
            with m.If(span.head.lane == 0):
                m.d.sync += stop.eq(stop + 1)
        with m.If(leaves):
            m.d.sync += span.tail.eq(self.following(span.tail))
            with m.If(span.tail.lane == self.parameters.lanes - 1):
                m.d.sync += second.eq(second + 1)
        with m.If(empty):
            m.d.sync += [Value.cast(span).eq(0), stop.eq(0), second.eq(1)]

    def elaborate_held(self, m, leaves, empty):
        """Count the keys of the span; return whether it is ``full`` and whether ``vacant``."""
        most = self.parameters.sub_window
        # Keys, but for one that came or left in the cycle before.
        held = Signal(range(most + 1), reset_less=True)
        came, left, full, vacant = (
            Signal(reset_less=True, name=name) for name in ("came", "left", "full", "vacant")
        )
        more, fewer = self.stored & ~leaves, ~self.stored & leaves
        m.d.sync += [
            came.eq(more & ~empty),
            left.eq(fewer & ~empty),
            held.eq(held + Mux(left, -1, came)),
        ]

        def are_held(number):
            """Say whether at least so many keys are held now: in a carry chain of registers."""
            difference = Signal(signed(len(held) + 2))
            m.d.comb += difference.eq(
                held + Mux(left, -1 - number, Mux(came, 1 - number, Const(-number)))
            )
            return difference >= 0

        with m.If(more):
            m.d.sync += [full.eq(are_held(most - 1)), vacant.eq(0)]
        with m.If(fewer):
            m.d.sync += [full.eq(0), vacant.eq(~are_held(2))]
        with m.If(empty):
            m.d.sync += [Cat(held, full).eq(0), vacant.eq(1)]
        return full, vacant

    def elaborate_aging(self, m, timed, vacant, empty, aged):
        """Keep until when each key of the span lives; drive ``aged`` and ``settled``."""
        bits = self.parameters.timestamp_bits
        lifespan = Signal(bits)
        with m.If(self.begin_time):
            m.d.sync += lifespan.eq(self.size)

        emptied = ResetInserter(empty)
        m.submodules.deadlines = deadlines = emptied(
            fifo.SyncFIFOBuffered(width=bits + 1, depth=self.parameters.sub_window + 1)
        )
        m.submodules.oldest = oldest = emptied(StreamRegister(bits + 1))
        connect(m, deadlines.r_stream, oldest.i)
        outlived = self.timestamp > oldest.o.payload
        m.d.comb += [
            deadlines.w_data.eq(self.arrival + lifespan),
            deadlines.w_en.eq(self.stored & timed),
            oldest.o.ready.eq(aged),
            aged.eq(self.present & timed & oldest.o.valid & outlived),
            # A first key that is being stored may have to leave before the tuple at hand.
            self.settled.eq(
                ~timed | (vacant & ~(self.store & self.mine)) | (oldest.o.valid & ~outlived)
            ),
        ]

    def following(self, pointer):
        """The ring position after ``pointer``."""
        lanes = self.parameters.lanes
        wraps = pointer.lane == lanes - 1
        lane = Mux(wraps, 0, pointer.lane + 1)[: ceil_log2(lanes)]
        row = (pointer.row + wraps)[: pointer_layout(self.parameters)["row"].width]
        return Cat(lane, row)

# SPDX-License-Identifier: Apache-2.0
"""Which tuples of one side a region holds: storage turns and expiration, without coordination."""

from amaranth import *
from amaranth.lib import fifo, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from .layouts import control_layout, pointer_layout, span_layout

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
    until ``clear``; the tuple is not stored.

    Latency: 0 cycles, plus 1 per expired key, plus up to 2 when the oldest timestamp is still on
    its way out of memory. Throughput: 1 tuple per cycle.

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
        The next tuple of the tracked side would be stored here.
    store : In(1)
        Take a tuple of the tracked side, only while ``settled``.
    stored : Out(1)
        It belongs at ``span.head``, here and now.
    span : Out
        Keys of the window stored here.
    overflow : Out(1)
    begin_count, begin_time : In(1)
        Begin a new, empty window of ``size`` tuples or of lifespan ``size``.
    clear : In(1)
        Empty the window, forget an overflow.
    size : In
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
                "stored": Out(1),
                "span": Out(span_layout(parameters)),
                "overflow": Out(1),
                "begin_count": In(1),
                "begin_time": In(1),
                "clear": In(1),
                "size": In(control_layout(parameters)["value"].shape),
            }
        )

    def elaborate(self, platform):
        m = Module()
        parameters = self.parameters
        last_core = parameters.cores - 1

        turn = Signal.like(self.position)  # whose turn it is to store …
        expire_turn = Signal.like(self.position)  # … and to expire, in a count-based window
        held = Signal(range(parameters.sub_window + 1))  # keys in the span
        full = held == parameters.sub_window
        timed = Signal()
        window_size = Signal(range(parameters.capacity + 1), init=parameters.capacity)
        seen = Signal.like(window_size, init=0)  # tuples in the whole window
        empty = self.begin_count | self.begin_time | self.clear

        aged = Signal()  # the oldest key leaves because time has passed
        displaced = Signal()  # … because the count-based window is full
        m.d.comb += [
            self.mine.eq(turn == self.position),
            displaced.eq(
                self.store & ~timed & (seen == window_size) & (expire_turn == self.position)
            ),
            self.stored.eq(self.store & self.mine & (~full | displaced)),
        ]

        def next_turn(turn):
            return Mux(turn == last_core, 0, turn + 1)

        with m.If(self.store):
            m.d.sync += turn.eq(next_turn(turn))
            with m.If(~timed & (seen == window_size)):
                m.d.sync += expire_turn.eq(next_turn(expire_turn))
            with m.Elif(~timed):
                m.d.sync += seen.eq(seen + 1)
        with m.If(self.store & self.mine & ~self.stored):
            m.d.sync += self.overflow.eq(1)

        with m.If(self.stored):
            m.d.sync += self.span.head.eq(self.following(self.span.head))
        with m.If(aged | displaced):
            m.d.sync += self.span.tail.eq(self.following(self.span.tail))
        m.d.sync += held.eq(held + self.stored - (aged | displaced))

        if parameters.timestamp_bits:
            m.d.comb += self.elaborate_aging(m, timed, held, empty, aged)
        else:
            m.d.comb += self.settled.eq(1)

        with m.If(empty):
            m.d.sync += [
                Cat(turn, expire_turn, held, seen).eq(0),
                Value.cast(self.span).eq(0),
            ]
        with m.If(self.clear):
            m.d.sync += self.overflow.eq(0)
        with m.If(self.begin_count):
            m.d.sync += [timed.eq(0), window_size.eq(self.size)]
        if parameters.timestamp_bits:
            with m.If(self.begin_time):
                m.d.sync += timed.eq(1)
        return m

    def elaborate_aging(self, m, timed, held, empty, aged):
        """Keep the timestamps of the span; return what drives ``aged`` and ``settled``."""
        parameters = self.parameters
        lifespan = Signal(parameters.timestamp_bits)
        with m.If(self.begin_time):
            m.d.sync += lifespan.eq(self.size)

        m.submodules.timestamps = timestamps = ResetInserter(empty)(
            fifo.SyncFIFOBuffered(width=parameters.timestamp_bits, depth=parameters.sub_window + 1)
        )
        oldest = timestamps.r_data
        outlived = (self.timestamp > oldest) & ((self.timestamp - oldest)[:-1] > lifespan)
        return [
            timestamps.w_data.eq(self.timestamp),
            timestamps.w_en.eq(self.stored & timed),
            timestamps.r_en.eq(aged),
            aged.eq(self.present & timed & timestamps.r_rdy & outlived),
            self.settled.eq(~timed | (held == 0) | (timestamps.r_rdy & ~outlived)),
        ]

    def following(self, pointer):
        """The ring position after ``pointer``."""
        lanes = self.parameters.lanes
        wraps = pointer.lane == lanes - 1
        lane = Mux(wraps, 0, pointer.lane + 1)[: ceil_log2(lanes)]
        row = (pointer.row + wraps)[: pointer_layout(self.parameters)["row"].width]
        return Cat(lane, row)

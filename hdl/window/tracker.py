# SPDX-License-Identifier: Apache-2.0
"""Which tuples of one side a region holds: what it stores, and what has expired."""

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from hdl.words.inputs import control_layout
from hdl.words.prepared import pointer_layout, span_layout

from .time_expiry import TimeExpiry, time_members

__all__ = ["MovingSpan", "Occupancy", "Turn", "WindowTracker"]


class MovingSpan(wiring.Component):
    """Move the ends of the span as keys come and leave.

    Latency: 1 cycle. Throughput: 1 key that comes and 1 key that leaves per cycle.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator.

    Members
    -------
    restart : In(1)
        Empty the span, and let it begin in the first row of the ring. A reset of at least two
        cycles has the same effect.
    comes, leaves : In(1)
        A key comes, and is written at ``span.head``; the oldest key leaves.
    span : Out(span_layout(parameters))
        From a register, as are ``second`` and ``stop``.
    second, stop : Out
        The row after the first row that holds keys of the span, and the row after the last such
        row.
    """

    def __init__(self, parameters):
        self.parameters = parameters
        self.latency = 1
        row = pointer_layout(parameters)["row"].shape
        super().__init__(
            {
                "restart": In(1),
                "comes": In(1),
                "leaves": In(1),
                "span": Out(span_layout(parameters)),
                "second": Out(row, init=1),
                "stop": Out(row),
            }
        )

    def elaborate(self, platform):
        m = Module()
        span, second, stop = (
            Signal.like(member, name=f"{name}_now", reset_less=True)
            for name, member in (("span", self.span), ("second", self.second), ("stop", self.stop))
        )
        m.d.comb += [self.span.eq(span), self.second.eq(second), self.stop.eq(stop)]
        with m.If(self.comes):
            m.d.sync += span.head.eq(self.following(span.head))
            with m.If(span.head.lane == 0):
                m.d.sync += stop.eq(stop + 1)
        with m.If(self.leaves):
            m.d.sync += span.tail.eq(self.following(span.tail))
            with m.If(span.tail.lane == self.parameters.engine.lanes - 1):
                m.d.sync += second.eq(second + 1)
        with m.If(self.restart):
            m.d.sync += [Value.cast(span).eq(0), stop.eq(0), second.eq(1)]
        return m

    def following(self, pointer):
        """Return the ring position after ``pointer``."""
        lanes = self.parameters.engine.lanes
        wraps = pointer.lane == lanes - 1
        lane = Mux(wraps, 0, pointer.lane + 1)[: ceil_log2(lanes)]
        row = (pointer.row + wraps)[: pointer_layout(self.parameters)["row"].width]
        return Cat(lane, row)


class Occupancy(wiring.Component):
    """Count the keys of a region, and say whether there are ``sub_window`` of them or none.

    Latency: 1 cycle. Throughput: 1 key that comes and 1 key that leaves per cycle.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator.

    Members
    -------
    restart : In(1)
        Start with no key. A reset of at least two cycles has the same effect.
    comes, leaves : In(1)
        A key comes; the oldest key leaves.
    full, vacant : Out(1)
        The region holds ``sub_window`` keys; it holds none. Both come from registers.
    """

    def __init__(self, parameters):
        self.parameters = parameters
        self.latency = 1
        super().__init__(
            {
                "restart": In(1),
                "comes": In(1),
                "leaves": In(1),
                "full": Out(1),
                "vacant": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        most = self.parameters.window.sub_window
        # Number of keys. A key that came or left in the previous cycle is not counted yet.
        held = Signal(range(most + 1), reset_less=True)
        came, left, full, vacant = (
            Signal(reset_less=True, name=name) for name in ("came", "left", "is_full", "is_vacant")
        )
        more, fewer = self.comes & ~self.leaves, ~self.comes & self.leaves
        m.d.comb += [self.full.eq(full), self.vacant.eq(vacant)]
        m.d.sync += [
            came.eq(more & ~self.restart),
            left.eq(fewer & ~self.restart),
            held.eq(held + Mux(left, -1, came)),
        ]

        def are_held(number):
            """Return whether at least ``number`` keys are held now, by one carry chain."""
            difference = Signal(signed(len(held) + 2))
            m.d.comb += difference.eq(
                held + Mux(left, -1 - number, Mux(came, 1 - number, Const(-number)))
            )
            return difference >= 0

        with m.If(more):
            m.d.sync += [full.eq(are_held(most - 1)), vacant.eq(0)]
        with m.If(fewer):
            m.d.sync += [full.eq(0), vacant.eq(~are_held(2))]
        with m.If(self.restart):
            m.d.sync += [Cat(held, full).eq(0), vacant.eq(1)]
        return m


class Turn(wiring.Component):
    """Say when it is this core's turn. The cores take turns in the order of their numbers.

    A counter holds the number of turns before this core's. A flag in a register says that none is
    left.

    Latency: 1 cycle from ``advance`` to ``mine``. Throughput: 1 turn per cycle.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator.

    Members
    -------
    position : In
        Number of the core, 0 to ``cores - 1``.
    restart : In(1)
        Let core 0 be next. A reset of at least two cycles has the same effect.
    advance : In(1)
        A turn is over.
    mine : Out(1)
        It is this core's turn; from a register.
    then : Out(1)
        The value of ``mine`` after an ``advance``.
    """

    def __init__(self, parameters):
        self.parameters = parameters
        self.latency = 1
        super().__init__(
            {
                "position": In(range(max(2, parameters.cores))),
                "restart": In(1),
                "advance": In(1),
                "mine": Out(1),
                "then": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        last = self.parameters.cores - 1
        left = Signal.like(self.position, reset_less=True)  # turns before this core's
        here = Signal(reset_less=True)  # none is left
        m.d.comb += [self.mine.eq(here), self.then.eq(Mux(here, last == 0, left == 1))]
        with m.If(self.restart):
            m.d.sync += [left.eq(self.position), here.eq(self.position == 0)]
        with m.Elif(self.advance):
            m.d.sync += [left.eq(Mux(here, last, left - 1)), here.eq(self.then)]
        return m


class WindowTracker(wiring.Component):
    """Keep the region's share of a side's window (Algorithms 2 and 4).

    ``span`` is this share when an accepted tuple takes effect, one cycle after it has settled. The
    ingress says of every tuple which region stores it and, for a count-based window that is full,
    which region's oldest tuple leaves for it (:class:`hdl.ingress.storage_turns.SideTurns`).

    A time-based window expires actively. Every tuple of either side that is at hand first removes
    the keys whose lifespan has passed at its timestamp, one key per cycle. ``settled`` is high when
    no such key is left after this cycle, so the last one leaves while the tuple is accepted: the
    tuple before, which takes effect in this cycle, still sees that key. (The seed expires on probes
    alone. Expiring on stores as well makes an overflow exact and independent of when probes happen
    to come.)

    ``overflow`` rises when a tuple would have to be stored in a full region, and stays high until
    ``forget``. The tuple is not stored. A count-based window overflows as well, if the cores that
    store have no room for it. From an overflow on, a region that holds nothing expires nothing.

    Every counter has flags in registers, which announce the value that it is about to reach. So
    what happens to a tuple depends on few bits. A request for a new or empty window takes effect
    one cycle later: it changes every register, so it comes from a register itself.

    Latency: 0 cycles, plus 1 for each expired key beyond the first, plus 1 if no key is left then,
    plus up to 9 when the oldest deadline is still on its way into or out of memory. Throughput: 1
    word per cycle, and 1 expired key with each word.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator.

    Members
    -------
    present : In(1)
        A tuple of either side is at hand.
    settled : Out(1)
        Expiry on behalf of the tuple at hand is complete after this cycle. Hold ``present`` until
        then. If ``parameters.side_by_side``, it is of the first tuple of the word.
    mine, displaces : In(1)
        The tuple of the tracked side is for this region; the oldest key of this region leaves for
        it. Both come from registers.
    store : In(1)
        Take a tuple of the tracked side, for which ``settled`` was high in the previous cycle.
    arrival : In
        Timestamp of that tuple.
    stored : Out(1)
        That tuple is stored here, at ``span.head``, in this cycle.
    span : Out
        The keys of the window that this region holds.
    second, stop : Out
        The row after the first row that holds keys of the span, and the row after the last such
        row.
    overflow : Out(1)
    begin_count, begin_time : In(1)
        Begin a new, empty window: a count-based one, or one of lifespan ``size``. No tuple may be
        accepted in the same cycle, and so none is stored in the next.
    empty : In(1)
        Empty the window, under the same condition.
    forget : In(1)
        Forget an overflow, under the same condition.
    size : In
        Lifespan of the window that ``begin_time`` begins.

    With timestamps, there are also the members of :func:`hdl.window.time_expiry.time_members`: the
    timestamps of the words in the region's input register and, if ``parameters.side_by_side``,
    which of the two tuples at hand comes first.

    With ``clock_requests``, also:

    vacant : Out(1)
        The region holds no key.

    With parity, also:

    wrong : Out(1)
        A deadline that was read from memory holds a flipped bit.

    If ``parameters.side_by_side``, also:

    after : In(1)
        A probe comes after the tuple that is stored in this cycle.
    seen : Out
        The span that the probe sees.
    """

    def __init__(self, parameters):
        self.parameters = parameters
        self.latency = 0
        super().__init__(
            {
                "present": In(1),
                **time_members(parameters),
                "settled": Out(1),
                "mine": In(1),
                "displaces": In(1),
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
                **(self.paired_members() if parameters.side_by_side else {}),
                **({"wrong": Out(1)} if parameters.engine.parity else {}),
                **({"vacant": Out(1)} if parameters.engine.clock_requests else {}),
            }
        )

    def paired_members(self):
        """Return the members that are needed if two tuples may be at hand."""
        return {"after": In(1), "seen": Out(span_layout(self.parameters))}

    def elaborate(self, platform):
        m = Module()
        timed = Signal()
        # `empty` is high after the first cycle of reset and initializes most registers, so these
        # need no reset of their own. Reset lasts at least two cycles.
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
        with m.If(begin_count):
            m.d.sync += timed.eq(0)

        m.submodules.occupancy = occupancy = Occupancy(self.parameters)
        if self.parameters.engine.clock_requests:
            m.d.comb += self.vacant.eq(occupancy.vacant)
        m.submodules.keys = keys = MovingSpan(self.parameters)
        aged = Signal()  # the oldest key leaves because its lifespan has passed
        displaced = Signal()  # the oldest key leaves because another tuple comes
        # The oldest key leaves with the tuples that take effect; it leaves before one is stored.
        left, room = displaced, self.displaces
        if self.parameters.side_by_side and self.parameters.timestamp_bits:
            parts = Signal()  # the oldest key leaves because of its age, between these tuples
            left, room = displaced | parts, self.displaces | (parts & ~self.after)
        m.d.comb += [
            displaced.eq(self.store & self.displaces & ~occupancy.vacant),
            occupancy.restart.eq(empty),
            occupancy.comes.eq(keys.comes),
            occupancy.leaves.eq(aged | left),
            self.stored.eq(self.store & self.mine & (~occupancy.full | room)),
            keys.restart.eq(empty),
            keys.comes.eq(self.stored),
            keys.leaves.eq(aged | left),
            *(getattr(self, name).eq(getattr(keys, name)) for name in ("span", "second", "stop")),
        ]
        if self.parameters.side_by_side:
            self.elaborate_seen(m, keys, left)
        with m.If(forget):
            m.d.sync += self.overflow.eq(0)
        with m.Elif(self.store & self.mine & ~self.stored):
            m.d.sync += self.overflow.eq(1)
        if not self.parameters.timestamp_bits:
            m.d.comb += self.settled.eq(1)
            return m

        with m.If(begin_time):
            m.d.sync += timed.eq(1)
        m.submodules.by_time = by_time = TimeExpiry(self.parameters)
        m.d.comb += [
            by_time.begin.eq(self.begin_time),
            by_time.restart.eq(empty),
            by_time.timed.eq(timed),
            by_time.store.eq(self.stored),
            # A tuple may be about to become the first key, and may have to leave before the tuple
            # at hand.
            by_time.vacant.eq(occupancy.vacant & ~self.store),
            *([self.wrong.eq(by_time.wrong)] if self.parameters.engine.parity else []),
            aged.eq(by_time.aged),
            self.settled.eq(by_time.settled),
            *(
                getattr(by_time, name).eq(getattr(self, name))
                for name in ("size", "present", "arrival")
            ),
        ]
        if self.parameters.side_by_side:
            m.d.comb += parts.eq(by_time.parts)
        for name, member in time_members(self.parameters).items():
            here, there = getattr(self, name), getattr(by_time, name)
            m.d.comb += there.eq(here) if member.flow == In else here.eq(there)
        return m

    def elaborate_seen(self, m, keys, leaves):
        """Show the span before or after the tuple that is stored in this cycle.

        A key that leaves with the second tuple is shown to the first tuple only. One that leaves on
        behalf of the next word is shown to both.
        """
        m.d.comb += self.seen.eq(self.span)
        with m.If(self.after & self.stored):
            m.d.comb += self.seen.head.eq(keys.following(self.span.head))
        with m.If(self.after & leaves):
            m.d.comb += self.seen.tail.eq(keys.following(self.span.tail))

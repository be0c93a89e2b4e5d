# SPDX-License-Identifier: Apache-2.0
"""The windows of a core of a chain: what flows through it, and what has its home there."""

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from hdl.ecp5 import is_below
from hdl.window.time_expiry import DeadlineQueue
from hdl.window.tracker import Turn
from hdl.words.inputs import control_layout

from .layouts import place_shape

__all__ = ["FlowWindow", "HomeWindow", "SideWindow"]


class FlowWindow(wiring.Component):
    """Count the tuples of a side that have come, that have gone, and that are no longer needed.

    All tuples of a side pass all cores in order. So a core knows the number of each by counting,
    and the lowest bits of the number are its row.

    Latency: 1 cycle. Throughput: 1 tuple per cycle.

    Parameters
    ----------
    parameters : JoinParameters
        Of the accelerator.

    Members
    -------
    restart : In(1)
        There is nothing, and numbers begin at zero.
    arrives : In(1)
        A tuple comes; its number is ``head``.
    leaves : In(1)
        The one with the number ``following``, the oldest one that is still here, is sent on or has
        expired.
    releases : In(1)
        The one with the number ``tail`` need not be kept any more.
    head, following, tail : Out
    rows : Out
        Tuples from the tail on.
    held : Out(place_shape(parameters))
        Those of them that have not left.
    readable : Out(1)
        There is one that has been in memory for long enough to be read; from a register.
    """

    def __init__(self, parameters):
        self.parameters = parameters
        self.latency = 1
        tag = unsigned(parameters.arrangement.ordinal_bits)
        super().__init__(
            {
                "restart": In(1),
                "arrives": In(1),
                "leaves": In(1),
                "releases": In(1),
                "head": Out(tag),
                "following": Out(tag),
                "tail": Out(tag),
                "rows": Out(range(parameters.ring_rows + 1)),
                "held": Out(place_shape(parameters)),
                "readable": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.d.comb += [
            self.rows.eq(self.head - self.tail),
            self.held.eq(self.head - self.following),
        ]
        m.d.sync += [
            self.head.eq(self.head + self.arrives),
            self.following.eq(self.following + self.leaves),
            self.tail.eq(self.tail + self.releases),
            # One that comes in this cycle is read two cycles later at the earliest.
            self.readable.eq((self.held > 1) | ((self.held == 1) & ~self.leaves)),
        ]
        with m.If(self.restart):
            m.d.sync += [self.head.eq(0), self.following.eq(0), self.tail.eq(0)]
        return m


class HomeWindow(wiring.Component):
    """Count tuples of a side as they pass, and those of them that this core keeps.

    Homes are assigned round robin. Every core sees all tuples, and all words that expire one, in
    order; so it needs no more than to count them. A word that expires a tuple may come before the
    tuple: then the tail is ahead of the head, and there is nothing to compare with.

    Latency: 1 cycle. Throughput: a tuple that arrives or expires per cycle.

    Parameters
    ----------
    parameters : JoinParameters
        Of the accelerator.

    Members
    -------
    position : In
        Number of the core.
    restart : In(1)
        The window is empty, and numbers begin at zero. Reset does the same.
    arrives, expires : In(1)
        A tuple of the side passes; the oldest one of all cores leaves.
    mine : Out(1)
        The tuple that arrives belongs here, to row ``head``.
    head, tail : Out(place_shape(parameters))
    rows : Out
        Tuples between them.
    oldest : Out
        Number of the tuple at ``tail``.
    arrived, expired : Out
        How many have.
    """

    def __init__(self, parameters):
        self.parameters = parameters
        self.latency = 1
        tag, place = unsigned(parameters.arrangement.ordinal_bits), place_shape(parameters)
        super().__init__(
            {
                "position": In(range(max(2, parameters.cores))),
                "restart": In(1),
                "arrives": In(1),
                "expires": In(1),
                "mine": Out(1),
                "head": Out(place),
                "tail": Out(place),
                "rows": Out(range(parameters.ring_rows + 1)),
                "oldest": Out(tag),
                "arrived": Out(tag),
                "expired": Out(tag),
            }
        )

    def elaborate(self, platform):
        m = Module()
        begins = Signal(init=1)  # in and right after reset
        m.d.sync += begins.eq(0)
        restart = self.restart | begins
        storing, leaving = Turn(self.parameters), Turn(self.parameters)
        m.submodules.storing, m.submodules.leaving = storing, leaving
        for turn, advance in ((storing, self.arrives), (leaving, self.expires)):
            m.d.comb += [
                turn.position.eq(self.position),
                turn.restart.eq(restart),
                turn.advance.eq(advance),
            ]
        held = Signal(signed(len(self.head)))
        m.d.comb += [
            self.mine.eq(storing.mine),
            held.eq(self.head - self.tail),
            self.rows.eq(Mux(held < 0, 0, held)),
        ]
        m.d.sync += [
            self.arrived.eq(self.arrived + self.arrives),
            self.expired.eq(self.expired + self.expires),
            self.head.eq(self.head + (self.arrives & storing.mine)),
        ]
        with m.If(self.expires & leaving.mine):
            m.d.sync += [
                self.tail.eq(self.tail + 1),
                self.oldest.eq(self.oldest + self.parameters.cores),
            ]
        with m.If(restart):
            m.d.sync += [self.arrived.eq(0), self.expired.eq(0), self.oldest.eq(self.position)]
        return m


class SideWindow(wiring.Component):
    """Count the tuples of a side, and say when the oldest one leaves.

    A count-based window loses a tuple when one of its side arrives and it is full, a time-based one
    when a tuple of either side arrives that is later than the oldest one's deadline.

    Latency: 1 cycle from ``add`` or ``drop`` to what is said; with timestamps, what is said is
    ``settled`` only when the oldest deadline is known, up to 10 cycles later. Throughput: 1 tuple
    per cycle.

    Parameters
    ----------
    parameters : JoinParameters
        Of the accelerator.

    Members
    -------
    begin : In(1)
        The window, which is empty, is of ``size`` from here on.
    timed : In(1)
        … which is a lifespan; if not, a number of tuples.
    size : In
    own : In(1)
        The tuple at hand is of this side.
    time : In
        Its timestamp.
    add : In(1)
        It joins the window.
    drop : In(1)
        The oldest tuple leaves.
    settled : Out(1)
        ``due`` is known.
    due : Out(1)
        The oldest tuple leaves before the one at hand is sent.
    full : Out(1)
        There is no room for another tuple.
    empty : Out(1)
    """

    def __init__(self, parameters):
        self.parameters = parameters
        self.latency = 1
        super().__init__(
            {
                "begin": In(1),
                "timed": In(1),
                "size": In(control_layout(parameters)["value"].shape),
                "own": In(1),
                "time": In(parameters.timestamp_bits),
                "add": In(1),
                "drop": In(1),
                "settled": Out(1),
                "due": Out(1),
                "full": Out(1),
                "empty": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        capacity = self.parameters.capacity
        count = Signal(range(capacity + 1))
        size = Signal(range(capacity + 1), init=capacity)
        timed, lifespan = Signal(), Signal(self.parameters.timestamp_bits)
        m.d.sync += count.eq(count + self.add - self.drop)
        with m.If(self.begin):
            m.d.sync += [timed.eq(self.timed), lifespan.eq(self.size)]
            m.d.sync += size.eq(Mux(self.timed, capacity, self.size))
        reached = Signal()
        m.d.comb += [
            reached.eq(count == size),
            self.full.eq(timed & reached),
            self.empty.eq(count == 0),
            self.settled.eq(1),
            self.due.eq(self.own & reached & ~timed),
        ]
        if self.parameters.timestamp_bits:
            self.elaborate_deadlines(m, timed, lifespan)
        return m

    def elaborate_deadlines(self, m, timed, lifespan):
        """Compare the timestamp at hand with the oldest tuple's deadline."""
        m.submodules.deadlines = deadlines = DeadlineQueue(
            self.parameters.timestamp_bits + 1,
            depth=1 << max(1, ceil_log2(self.parameters.capacity)),
        )
        late = is_below(m, deadlines.oldest, self.time)
        m.d.comb += [
            deadlines.add.eq(self.add & timed),
            deadlines.last.eq(self.time + lifespan),
            deadlines.take.eq(self.drop & timed),
        ]
        with m.If(timed):
            m.d.comb += [
                self.settled.eq(self.empty | deadlines.oldest_valid),
                self.due.eq(~self.empty & late),
            ]

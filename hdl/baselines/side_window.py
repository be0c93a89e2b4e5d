# SPDX-License-Identifier: Apache-2.0
"""The window of a side as the coordinator of a chain knows it: which tuples have to leave."""

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from hdl.comparison.order import is_below
from hdl.window.deadline_queue import DeadlineQueue
from hdl.words.inputs import control_layout

__all__ = ["SideWindow"]


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

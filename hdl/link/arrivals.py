# SPDX-License-Identifier: Apache-2.0
"""Which frames are taken, and what the other side is told about them: the receiver of go-back-N."""

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["Arrivals"]

#: Frames that are taken without an acknowledgement while the line is busy.
UNACKNOWLEDGED = 2


class Arrivals(wiring.Component):
    """Take the expected frame, drop every other one, and decide when to acknowledge.

    A frame that is missing is asked for once, and again when the numbers of frames stop rising or a
    whole window of frames has come without it.

    Latency: 1 cycle from an event to what follows from it; ``accept`` comes in the same cycle.
    Throughput: 1 event per cycle.

    Parameters
    ----------
    slots : int
        Frames that there is room for, which the other side sends without an acknowledgement.
    heartbeat_cycles : int
        Cycles without an acknowledgement after which one is sent.

    Members
    -------
    arrived : In(1)
        A frame of words has come.
    sequence : In(8)
        Its number.
    garbled : In(1)
        Something has come that is no frame.
    free : In(range(slots + 1))
        Frames that there is room for.
    nudge : In(1)
        An acknowledgement is due for another reason.
    told : In(1)
        An acknowledgement is made of ``expected``, ``limit`` and ``asking``.
    accept : Out(1)
        The frame that has come is taken.
    expected, limit : Out(8)
        Number of the frame that is expected, and of the first one that there is no room for.
    asking : Out(1)
        Frames must be sent again.
    urgent, due : Out(1)
        An acknowledgement must be sent next; it must be sent when the line is idle.
    """

    def __init__(self, *, slots, heartbeat_cycles):
        self.slots = slots
        self.heartbeat_cycles = heartbeat_cycles
        super().__init__(
            {
                "arrived": In(1),
                "sequence": In(8),
                "garbled": In(1),
                "free": In(range(slots + 1)),
                "nudge": In(1),
                "told": In(1),
                "accept": Out(1),
                "expected": Out(8),
                "limit": Out(8),
                "asking": Out(1),
                "urgent": Out(1),
                "due": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        ahead = Signal(8)
        m.d.comb += [
            ahead.eq(self.sequence - self.expected),
            self.accept.eq(self.arrived & (ahead == 0) & (self.free != 0)),
            self.limit.eq(self.expected + self.free),
        ]
        with m.If(self.accept):
            m.d.sync += self.expected.eq(self.expected + 1)
        self.elaborate_acknowledgement(m, self.elaborate_asking(m, ahead))
        return m

    def elaborate_asking(self, m, ahead):
        """Return whether the expected frame must be asked for in this cycle."""
        newest = Signal(8)  # distance of the frame that came last, since one is missing
        events = Signal(range(self.slots + 2))  # since the frame was asked for; zero: none missing
        early, ask = Signal(), Signal()
        m.d.comb += early.eq(self.arrived & (ahead != 0) & ~ahead[7])
        overdue = (events == 0) | (events == self.slots + 1)
        m.d.comb += ask.eq((self.garbled & overdue) | (early & (overdue | (ahead <= newest))))
        with m.If(self.accept):
            m.d.sync += events.eq(0)
        with m.Elif(early | self.garbled):
            m.d.sync += events.eq(Mux(ask, 1, events + 1))
            with m.If(early):
                m.d.sync += newest.eq(ahead)
            with m.Elif(events == 0):
                m.d.sync += newest.eq(0)
        return ask

    def elaborate_acknowledgement(self, m, ask):
        """Decide when the other side must be told what is expected."""
        owed = Signal(range(UNACKNOWLEDGED + 1))
        news, beat = Signal(), Signal()
        expected, limit = Signal(8), Signal(8)  # what the other side was told
        timer = Signal(range(self.heartbeat_cycles + 1))
        differs = (expected != self.expected) | (limit != self.limit)
        m.d.comb += [
            beat.eq(timer == self.heartbeat_cycles),
            self.urgent.eq(self.asking | beat | (owed == UNACKNOWLEDGED)),
            self.due.eq(news | differs),
        ]
        with m.If(self.told):
            m.d.sync += [
                expected.eq(self.expected),
                limit.eq(self.limit),
                self.asking.eq(0),
                owed.eq(0),
                news.eq(0),
                timer.eq(0),
            ]
        with m.Elif(~beat):
            m.d.sync += timer.eq(timer + 1)
        with m.If(ask):
            m.d.sync += self.asking.eq(1)
        with m.If(self.arrived & ~self.told & (owed != UNACKNOWLEDGED)):
            m.d.sync += owed.eq(owed + 1)
        # A frame that comes again shows that an acknowledgement was lost.
        with m.If((self.arrived & ~ask) | self.nudge):
            m.d.sync += news.eq(1)

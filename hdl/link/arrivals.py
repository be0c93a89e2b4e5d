# SPDX-License-Identifier: Apache-2.0
"""Which frames are taken, and what the other side is told about them: the receiver's numbers."""

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["Arrivals"]

#: Frames that are taken without an acknowledgement while the line is busy.
UNACKNOWLEDGED = 2


class Arrivals(wiring.Component):
    """Take every frame once, in any order, and decide when to acknowledge.

    Frame n belongs into slot ``n % slots``. The slots from ``front`` on are free, but for those of
    the frames from ``front`` up to ``expected``, and of the frames that came early.

    An acknowledgement is sent behind two frames, and before any other frame when something is
    missing: when a frame comes and the one before it has not, or when something is no frame.

    Latency: 1 cycle from an event to what follows from it, and as many more as ``expected`` moves
    on; ``accept`` comes in the same cycle. Throughput: 1 event per cycle.

    Parameters
    ----------
    slots : int
        Frames that there is room for, a power of two.
    heartbeat_cycles : int
        Cycles without an acknowledgement after which one is sent.

    Members
    -------
    begun, arrived : In(1)
        The first byte behind the number of a frame of words comes; the frame has come.
    sequence : In(8)
        Its number, from ``begun`` to ``arrived``.
    garbled : In(1)
        Something has come that is no frame.
    front : In(8)
        Number of the oldest frame of which not all words have left.
    nudge : In(1)
        An acknowledgement is due for another reason.
    told : In(1)
        An acknowledgement is made of ``expected``, ``limit``, ``early`` and ``suspect``.
    fits : Out(1)
        There is room for frame ``sequence``, and was since it began, and it has not come yet.
    accept : Out(1)
        The frame that has come is taken.
    expected, limit : Out(8)
        Number of the frame that is expected, and of the first one that there is no room for.
    early : Out(slots - 1)
        Bit n: frame ``expected + 1 + n`` has come.
    suspect : Out(1)
        Something was no frame since the last acknowledgement.
    urgent, due : Out(1)
        An acknowledgement must be sent next; it must be sent when the line is idle.
    """

    def __init__(self, *, slots, heartbeat_cycles):
        self.slots = slots
        self.heartbeat_cycles = heartbeat_cycles
        super().__init__(
            {
                "begun": In(1),
                "arrived": In(1),
                "sequence": In(8),
                "garbled": In(1),
                "front": In(8),
                "nudge": In(1),
                "told": In(1),
                "fits": Out(1),
                "accept": Out(1),
                "expected": Out(8),
                "limit": Out(8),
                "early": Out(slots - 1),
                "suspect": Out(1),
                "urgent": Out(1),
                "due": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        bits = (self.slots - 1).bit_length()
        here = Signal(self.slots)  # by slot: a frame from ``expected`` on has come
        slot, first = self.sequence[:bits], self.expected[:bits]
        before = (slot - 1)[:bits]
        ahead, room = Signal(8), Signal(8)
        fitted = Signal()  # there was room when the frame began, so all its bytes were stored
        moving = here.bit_select(first, 1)
        m.d.comb += [
            ahead.eq(self.sequence - self.expected),
            self.limit.eq(self.front + self.slots),
            room.eq(self.limit - self.expected),
            self.fits.eq((ahead < room) & ~here.bit_select(slot, 1) & (self.begun | fitted)),
            self.accept.eq(self.arrived & self.fits),
            self.early.eq((Cat(here, here) >> first)[1 : self.slots]),
        ]
        with m.If(self.begun):
            m.d.sync += fitted.eq(self.fits)
        with m.If(moving):
            m.d.sync += [self.expected.eq(self.expected + 1), here.bit_select(first, 1).eq(0)]
        with m.If(self.accept):
            m.d.sync += here.bit_select(slot, 1).eq(1)
        gap = self.accept & (ahead != 0) & ~here.bit_select(before, 1)
        self.elaborate_acknowledgement(m, gap, settled=~moving)
        return m

    def elaborate_acknowledgement(self, m, gap, *, settled):
        """Decide when the other side must be told, of numbers that have ``settled``."""
        owed = Signal(range(UNACKNOWLEDGED + 1))
        news, beat = Signal(), Signal()
        expected, limit = Signal(8), Signal(8)  # what the other side was told
        timer = Signal(range(self.heartbeat_cycles + 1))
        differs = (expected != self.expected) | (limit != self.limit)
        m.d.comb += [
            beat.eq(timer == self.heartbeat_cycles),
            self.urgent.eq(settled & (beat | (owed == UNACKNOWLEDGED))),
            self.due.eq(settled & (news | differs)),
        ]
        with m.If(self.told):
            m.d.sync += [
                expected.eq(self.expected),
                limit.eq(self.limit),
                self.suspect.eq(0),
                owed.eq(0),
                news.eq(0),
                timer.eq(0),
            ]
        with m.Elif(~beat):
            m.d.sync += timer.eq(timer + 1)
        with m.If(self.garbled):
            m.d.sync += self.suspect.eq(1)
        with m.If(self.garbled | gap):
            m.d.sync += owed.eq(UNACKNOWLEDGED)
        with m.Elif(self.arrived):
            m.d.sync += owed.eq(Mux(self.told, 1, Mux(owed == UNACKNOWLEDGED, owed, owed + 1)))
        with m.If(self.arrived | self.nudge):
            m.d.sync += news.eq(1)

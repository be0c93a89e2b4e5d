# SPDX-License-Identifier: Apache-2.0
"""Which frames are sent, sent again, and forgotten: the numbers of go-back-N."""

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from .settings import STEP

__all__ = ["ReplayWindow"]


class ReplayWindow(wiring.Component):
    """Keep the numbers of the frames that are stored, sent and acknowledged, all modulo 256.

    The frames from ``base`` on, up to but without ``head``, are stored. ``cursor`` is the one to be
    sent next.

    Latency: 1 cycle from an event to the numbers. Throughput: 1 event of each kind per cycle.

    Parameters
    ----------
    slots : int
        Frames that are stored, a power of two.
    timeout_cycles : int
        Cycles without progress after which all frames from ``base`` on are sent again.
    payload_bytes : int
        Most bytes of words in a frame.

    Members
    -------
    sealed : In(1)
        Frame ``head`` is complete.
    started : In(1)
        Frame ``cursor`` goes to the line; only while ``sendable``.
    acknowledged, again : In(1)
        The other side expects frame ``expected`` and has no room from frame ``limit`` on. With
        ``again``, frames from ``expected`` on are to be sent again.
    expected, limit : In(8)
    repeat : In(1)
        Send all frames from ``base`` on again.
    head, cursor : Out(8)
    full : Out(1)
        All slots are in use.
    sendable : Out(1)
        Frame ``cursor`` is stored, and the other side has room for it.
    behind : Out(1)
        A frame is stored that was not sent since it was asked for.
    allowed : Out(8)
        Most bytes of words that a new frame should hold.
    repeated, expired : Out(1)
        The frame that starts was sent before; the timeout has passed.
    """

    def __init__(self, *, slots, timeout_cycles, payload_bytes):
        self.slots = slots
        self.timeout_cycles = timeout_cycles
        self.payload_bytes = payload_bytes
        super().__init__(
            {
                "sealed": In(1),
                "started": In(1),
                "acknowledged": In(1),
                "again": In(1),
                "expected": In(8),
                "limit": In(8),
                "repeat": In(1),
                "head": Out(8),
                "cursor": Out(8),
                "full": Out(1),
                "sendable": Out(1),
                "behind": Out(1),
                "allowed": Out(8, init=min(STEP, payload_bytes)),
                "repeated": Out(1),
                "expired": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        base, end = Signal(8), Signal(8)  # ``end``: the first frame without room
        used, gone = Signal(8), Signal(8)
        sent = Signal(8)
        newest = Signal(8)  # the frame after the last one that was ever sent
        known = Signal()  # the acknowledgement is about a frame that is stored, or the next one
        m.d.comb += [
            used.eq(self.head - base),
            self.full.eq(used[: len(used)] >= self.slots),
            self.behind.eq(self.cursor != self.head),
            self.sendable.eq(self.behind & (self.cursor != end)),
            gone.eq(self.expected - base),
            known.eq(self.acknowledged & (gone <= used)),
            sent.eq(self.cursor + self.started),
        ]
        m.d.sync += [
            self.head.eq(self.head + self.sealed),
            newest.eq(newest + (self.started & (self.cursor == newest))),
            self.cursor.eq(sent),
        ]
        with m.If(known):
            m.d.sync += base.eq(self.expected)
            with m.If(self.again | ((sent - base)[:8] < gone)):
                m.d.sync += self.cursor.eq(self.expected)
            room = (self.limit - self.expected)[:8]
            further = (self.limit - end)[:8]
            with m.If(~room[7] & ~further[7]):
                m.d.sync += end.eq(self.limit)
        with m.If(self.repeat | self.expired):
            m.d.sync += self.cursor.eq(Mux(known, self.expected, base))
        self.elaborate_pace(m, base, newest, known, gone)
        return m

    def elaborate_pace(self, m, base, newest, known, gone):
        """Decide when to send again, and how long new frames are."""
        progress, back = Signal(), Signal()
        m.d.comb += [
            progress.eq(known & (gone != 0)),
            back.eq((known & self.again) | self.repeat | self.expired),
            self.repeated.eq(self.started & (self.cursor != newest)),
        ]
        self.elaborate_timer(m, progress, back, outstanding=self.cursor != base)
        self.elaborate_length(m, progress, back, gone)

    def elaborate_timer(self, m, progress, back, *, outstanding):
        """Count the cycles since a frame is outstanding and nothing was acknowledged."""
        timer = Signal(range(self.timeout_cycles))
        m.d.comb += self.expired.eq(outstanding & (timer == self.timeout_cycles - 1))
        with m.If(progress | back | ~outstanding):
            m.d.sync += timer.eq(0)
        with m.Else():
            m.d.sync += timer.eq(timer + 1)

    def elaborate_length(self, m, progress, back, gone):
        """Let frames become shorter when they are sent again, and longer when they arrive."""
        longer = Signal(range(256 + STEP * self.slots))
        m.d.comb += longer.eq(self.allowed + STEP * gone)
        least = min(STEP, self.payload_bytes)
        with m.If(back):
            half = self.allowed >> 1
            m.d.sync += self.allowed.eq(Mux(half < least, least, half))
        with m.Elif(progress):
            most = self.payload_bytes
            m.d.sync += self.allowed.eq(Mux(longer > most, most, longer))

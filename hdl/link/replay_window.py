# SPDX-License-Identifier: Apache-2.0
"""Which frames are sent, sent again, and forgotten: the sender's numbers."""

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from .frame_length import FrameLength

__all__ = ["ReplayWindow"]


class ReplayWindow(wiring.Component):
    """Keep the numbers of the frames that are stored, sent and acknowledged, all modulo 256.

    The frames from ``base`` on, up to but without ``head``, are stored. ``cursor`` is the first one
    that was never sent. A frame is lost, and is sent again, if the other side has a frame that was
    sent later. The other side is known to lack something if it has frames beyond ``base``, or if
    something came to it that was no frame; then the oldest frame is sent once more if nothing else
    can be sent.

    Latency: 1 cycle from an event to the numbers. Throughput: 1 event of each kind per cycle.

    Parameters
    ----------
    slots : int
        Frames that are stored, a power of two.
    timeout_cycles : int
        Cycles without progress after which all frames that the other side lacks are sent again.
    payload_bytes : int
        Most bytes of words in a frame.

    Members
    -------
    sealed : In(1)
        Frame ``head`` is complete.
    started : In(1)
        Frame ``number`` goes to the line; only while ``sendable``.
    acknowledged, garbled : In(1)
        The other side expects frame ``expected``, has no room from frame ``limit`` on, and has the
        ``early`` frames; whether something came to it that was no frame.
    expected, limit : In(8)
    early : In(slots - 1)
        Bit n: the other side has frame ``expected + 1 + n``.
    repeat : In(1)
        Send all frames again that the other side is not known to have.
    head, number : Out(8)
    full : Out(1)
        All slots are in use.
    sendable : Out(1)
        Frame ``number`` is stored, the other side has room for it, and it should be sent.
    allowed : Out(8)
        Most bytes of words that a new frame should hold.
    repeated, expired : Out(1)
        The frame that starts was sent before; the timeout has passed.
    """

    def __init__(self, *, slots, timeout_cycles, payload_bytes):
        self.slots = slots
        self.timeout_cycles = timeout_cycles
        self._length = FrameLength(slots=slots, payload_bytes=payload_bytes)
        super().__init__(
            {
                "sealed": In(1),
                "started": In(1),
                "acknowledged": In(1),
                "garbled": In(1),
                "expected": In(8),
                "limit": In(8),
                "early": In(slots - 1),
                "repeat": In(1),
                "head": Out(8),
                "number": Out(8),
                "full": Out(1),
                "sendable": Out(1),
                "allowed": Out(8),
                "repeated": Out(1),
                "expired": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.length = length = self._length
        base, end, cursor = Signal(8), Signal(8), Signal(8)  # ``end``: the first without room
        # Bit n of a set of frames stands for frame ``base + n``.
        have, lost, repeats = Signal(self.slots), Signal(self.slots), Signal(self.slots)
        spare = Signal()  # the oldest frame may be sent once more
        mark = Signal(8)  # the first frame that was sent after all ``repeats``
        used, gone, outstanding = Signal(8), Signal(8), Signal(8)
        known, is_new = Signal(), Signal()
        lowest, offset = Signal(self.slots), Signal(8)
        m.d.comb += [
            used.eq(self.head - base),
            outstanding.eq(cursor - base),
            self.full.eq(used >= self.slots),
            gone.eq(self.expected - base),
            known.eq(self.acknowledged & (gone <= outstanding)),
            is_new.eq((cursor != self.head) & (cursor != end) & ~lost.any()),
            lowest.eq(Mux(lost.any(), lost & -lost, 1)),
            offset.eq(first_bit(m, lowest)),
            self.number.eq(Mux(is_new, cursor, base + offset)),
            self.sendable.eq(lost.any() | is_new | (spare & (outstanding != 0))),
            self.repeated.eq(self.started & ~is_new),
        ]
        # What the sets are behind the frame that starts.
        sent, pending, passing = Signal(8), Signal(self.slots), Signal(self.slots)
        again = lowest & self.repeated.replicate(self.slots)
        m.d.comb += [
            sent.eq(cursor + (self.started & is_new)),
            pending.eq(lost & ~again),
            passing.eq(repeats | again),
        ]
        m.d.sync += [
            self.head.eq(self.head + self.sealed),
            cursor.eq(sent),
            lost.eq(pending),
            repeats.eq(passing),
        ]
        with m.If(self.repeated):
            m.d.sync += [mark.eq(cursor), spare.eq(spare & lost.any())]
        back = Signal()
        with m.If(known):
            room = (self.limit - self.expected)[:8]
            further = (self.limit - end)[:8]
            with m.If(~room[7] & ~further[7]):
                m.d.sync += end.eq(self.limit)
            since = (Mux(self.repeated, cursor, mark) - self.expected)[:8]
            found, now_passing = self.elaborate_losses(m, passing >> gone, since)
            m.d.sync += [
                base.eq(self.expected),
                have.eq(Cat(0, self.early)),
                lost.eq(((pending >> gone) | found) & ~Cat(0, self.early)),
                repeats.eq(now_passing),
                spare.eq(self.garbled | self.early.any()),
            ]
            m.d.comb += back.eq((found & ~(pending >> gone)).any())
        with m.If(self.repeat | self.expired):
            m.d.comb += back.eq(outstanding != 0)
            left = Mux(known, sent - self.expected, sent - base)[:8]
            those = Mux(known, Cat(0, self.early), have)
            m.d.sync += lost.eq(Cat(n < left for n in range(self.slots)) & ~those)
        progress = known & (gone != 0)
        m.d.comb += [
            length.progress.eq(progress),
            length.gone.eq(gone),
            length.back.eq(back),
            self.allowed.eq(length.allowed),
        ]
        self.elaborate_timer(m, progress | self.repeat | self.expired, outstanding != 0)
        return m

    def elaborate_losses(self, m, passing, since):
        """Return the frames that are lost, and those sent again that may be on their way.

        Parameters
        ----------
        passing : Value
            The frames that were sent again, from the expected one on.
        since : Value, 8 bits
            Distance from the expected frame to the first one that was sent after all of them.
        """
        have = Cat(0, self.early)
        below = Cat(have[n + 1 :].any() for n in range(self.slots - 1))
        evidence, still = Signal(), Signal(self.slots)
        m.d.comb += evidence.eq(since[7] | (have >> since).any())
        m.d.comb += still.eq(Mux(evidence, 0, passing))
        return below & ~have & ~still, still

    def elaborate_timer(self, m, restart, outstanding):
        """Count the cycles since a frame is outstanding and nothing was acknowledged."""
        timer = Signal(range(self.timeout_cycles))
        m.d.comb += self.expired.eq(outstanding & (timer == self.timeout_cycles - 1))
        with m.If(restart | ~outstanding):
            m.d.sync += timer.eq(0)
        with m.Else():
            m.d.sync += timer.eq(timer + 1)


def first_bit(m, one):
    """Return the place of the only bit that is set."""
    place = Signal(range(len(one)))
    m.d.comb += place.eq(Cat(
        Cat(one[n] for n in range(len(one)) if n >> bit & 1).any() for bit in range(len(place))
    ))  # fmt: skip
    return place

# SPDX-License-Identifier: Apache-2.0
"""Finds frames in a byte stream: stuffing, length and CRC."""

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from .crc import CRC_BITS, RESIDUE, crc_step, first_state
from .settings import LEAST_CONTENT, MOST_CONTENT, Kind

__all__ = ["FrameReceiver"]


class FrameReceiver(wiring.Component):
    """Take a byte stream apart into frames.

    The payload of a frame is shown while it arrives, before it is known whether the frame is
    correct, and is followed by the four bytes of the CRC. Reset begins a new frame.

    Latency: 2 cycles from a byte to what follows from it. Throughput: 1 byte per cycle.

    Members
    -------
    i : In(stream.Signature(8, always_ready=True))
        Bytes of the line.
    session : In(32)
        Number of the session. The CRC of all but HELLO begins with it.
    kind, sequence : Out(8)
        Of the frame; valid with ``strobe``, ``good``.
    byte, index : Out(8)
        Byte of the payload or of the CRC behind it, and its place.
    strobe : Out(1)
        A byte of the payload, or of the CRC.
    length : Out(8)
        Bytes of the payload; valid with ``good``.
    good, garbled : Out(1)
        A frame has ended, or something else than a frame; high for one cycle.
    """

    latency = 2

    def __init__(self):
        super().__init__(
            {
                "i": In(stream.Signature(8, always_ready=True)),
                "session": In(32),
                "kind": Out(8),
                "sequence": Out(8),
                "byte": Out(8),
                "index": Out(8),
                "strobe": Out(1),
                "length": Out(8),
                "good": Out(1),
                "garbled": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        byte, present = Signal(8), Signal()  # a byte of the frame, without stuffing
        end, whole = Signal(), Signal()  # the frame has ended, where a part of it ends
        self.elaborate_stuffing(m, byte, present, end, whole)

        place = Signal(range(MOST_CONTENT + 2))  # one more than a frame may have: too long
        state = Signal(CRC_BITS)
        before = Signal(CRC_BITS)
        greeting = byte == Kind.HELLO.value
        first = Mux(greeting, first_state(C(0, CRC_BITS)), first_state(self.session))
        m.d.comb += [
            before.eq(Mux(place == 0, first, state)),
            self.byte.eq(byte),
            self.index.eq(place - 2),
            self.strobe.eq(present & (place >= 2) & (place < MOST_CONTENT)),
            self.length.eq(place - LEAST_CONTENT),
        ]
        correct = whole & (state == RESIDUE)
        fitting = (place >= LEAST_CONTENT) & (place <= MOST_CONTENT)
        m.d.comb += [
            self.good.eq(end & correct & fitting),
            self.garbled.eq(end & ~(correct & fitting)),
        ]
        with m.If(end):
            m.d.sync += place.eq(0)
        with m.Elif(present):
            m.d.sync += state.eq(crc_step(before, byte))
            with m.If(place <= MOST_CONTENT):
                m.d.sync += place.eq(place + 1)
            with m.If(place == 0):
                m.d.sync += self.kind.eq(byte)
            with m.If(place == 1):
                m.d.sync += self.sequence.eq(byte)
        return m

    def elaborate_stuffing(self, m, byte, present, end, whole):
        """Undo the stuffing: a byte in front of each part says how long the part is, plus one."""
        left = Signal(8)  # bytes of the part that are still to come
        begun = Signal()  # a part of this frame has begun
        line = self.i.payload
        m.d.sync += [byte.eq(line), present.eq(0), end.eq(0)]
        with m.If(self.i.valid):
            with m.If(line == 0):
                m.d.sync += [end.eq(begun), whole.eq(left == 0), begun.eq(0), left.eq(0)]
            with m.Elif(left == 0):
                # Between two parts there was a zero.
                m.d.sync += [left.eq(line - 1), begun.eq(1), byte.eq(0), present.eq(begun)]
            with m.Else():
                m.d.sync += [left.eq(left - 1), present.eq(1)]

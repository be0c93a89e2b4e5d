# SPDX-License-Identifier: Apache-2.0
"""Frames of a byte link: length, check sum, both directions."""

from functools import reduce
from operator import xor

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from .settings import LEAST, LEAST_CONTENT, MOST_CONTENT, NOISY_STEP, STEP, Kind

__all__ = [
    "CRC_BITS",
    "RESIDUE",
    "FrameLength",
    "FrameReceiver",
    "FrameWriter",
    "crc_step",
    "first_state",
]


CRC_BITS = 32
POLYNOMIAL = 0xEDB88320
#: State after a frame with its correct CRC, whatever the frame and the first state.
RESIDUE = 0xDEBB20E3


def advanced(state):
    """Return the state of eight steps later, for a number."""
    for _ in range(8):
        state = state >> 1 ^ POLYNOMIAL * (state & 1)
    return state


#: State of eight steps later for each single bit of a state. The step is linear.
_COLUMNS = [advanced(1 << n) for n in range(CRC_BITS)]


def first_state(session):
    """Return the state before the first byte of a frame of a session."""
    return ~session


def crc_step(state, byte):
    """Return the state after ``byte``. The CRC itself is the complement of the last state.

    Parameters
    ----------
    state : Value, 32 bits
    byte : Value, 8 bits
    """
    mixed = [state[n] ^ byte[n] if n < 8 else state[n] for n in range(CRC_BITS)]
    rows = [
        [mixed[n] for n, column in enumerate(_COLUMNS) if column >> row & 1]
        for row in range(CRC_BITS)
    ]
    return Cat(reduce(xor, row) for row in rows)


class FrameLength(wiring.Component):
    """Let new frames become longer when frames arrive, and half as long when frames are lost.

    With additive growth, frames settle near the length that carries most: long frames have less
    overhead, and short ones are less often damaged.

    Latency: 1 cycle. Throughput: 1 event per cycle.

    Parameters
    ----------
    slots : int
        Most frames that are acknowledged at once.
    payload_bytes : int
        Most bytes of words in a frame.

    Members
    -------
    progress : In(1)
        Frames are acknowledged, ``gone`` of them.
    gone : In(8)
    back : In(1)
        Frames are lost.
    allowed : Out(8)
        Most bytes of words that a new frame should hold.
    """

    def __init__(self, *, slots, payload_bytes):
        self.slots = slots
        self.payload_bytes = payload_bytes
        super().__init__(
            {
                "progress": In(1),
                "gone": In(8),
                "back": In(1),
                "allowed": Out(8, init=min(LEAST, payload_bytes)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        least, most = min(LEAST, self.payload_bytes), self.payload_bytes
        noisy = Signal()  # frames have been lost
        longer = Signal(range(256 + STEP * self.slots))
        step = Mux(noisy, NOISY_STEP, STEP)
        half = self.allowed >> 1
        m.d.comb += longer.eq(self.allowed + step * self.gone[: self.slots.bit_length()])
        with m.If(self.back):
            m.d.sync += [noisy.eq(1), self.allowed.eq(Mux(half < least, least, half))]
        with m.Elif(self.progress):
            m.d.sync += self.allowed.eq(Mux(longer > most, most, longer))
        return m


class FrameReceiver(wiring.Component):
    """Frame decoder (COBS, CRC): take a byte stream apart into frames.

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


class FrameWriter(wiring.Component):
    """Write a frame to a slot of a memory.

    In the place of a zero stands how far it is to the next zero. It is written when that is known,
    so each byte is written once, and the slot is complete only with ``done``.
    Reset forgets a frame.

    Latency: a byte is written in the cycle in which it is taken; ``done`` comes 6 cycles after
    ``finish``. Throughput: 1 byte per cycle.

    Members
    -------
    i : In(stream.Signature(8))
        Bytes of the frame without CRC, at most 249.
    seed : In(32)
        Number of the session, or zero; while the first byte is taken.
    finish : In(1)
        End the frame; held until ``done``, while ``i`` is not valid.
    write : Out(1)
        Write ``data`` at ``place``.
    place, data : Out(8)
    done : Out(1)
        The last byte of a frame is written in this cycle.
    """

    def __init__(self):
        super().__init__(
            {
                "i": In(stream.Signature(8)),
                "seed": In(32),
                "finish": In(1),
                "write": Out(1),
                "place": Out(8),
                "data": Out(8),
                "done": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        code = Signal(8)  # where the distance to the next zero will stand
        place = Signal(8, init=1)  # where the next byte goes
        state = Signal(CRC_BITS)
        empty = Signal(init=1)  # no byte of the frame was taken
        left = Signal(range(4))  # bytes of the CRC that follow this one
        distance = (place - code)[:8]

        def put(byte):
            m.d.comb += self.write.eq(1)
            m.d.sync += place.eq(place + 1)
            with m.If(byte == 0):
                m.d.comb += [self.place.eq(code), self.data.eq(distance)]
                m.d.sync += code.eq(place)
            with m.Else():
                m.d.comb += [self.place.eq(place), self.data.eq(byte)]

        begin = [code.eq(0), place.eq(1), empty.eq(1)]
        before = Signal(CRC_BITS)
        m.d.comb += before.eq(Mux(empty, first_state(self.seed), state))
        with m.FSM():
            with m.State("CONTENT"):
                m.d.comb += self.i.ready.eq(1)
                m.d.sync += left.eq(3)
                with m.If(self.i.valid):
                    put(self.i.payload)
                    m.d.sync += [state.eq(crc_step(before, self.i.payload)), empty.eq(0)]
                with m.Elif(self.finish):
                    m.next = "CRC"
            with m.State("CRC"):
                put(~state[:8])
                m.d.sync += [state.eq(state >> 8), left.eq(left - 1)]
                with m.If(left == 0):
                    m.next = "CODE"
            with m.State("CODE"):
                m.d.comb += [self.write.eq(1), self.place.eq(code), self.data.eq(distance)]
                m.next = "ZERO"
            with m.State("ZERO"):
                m.d.comb += [self.write.eq(1), self.place.eq(place), self.done.eq(1)]
                m.d.sync += begin
                m.next = "CONTENT"
        return m

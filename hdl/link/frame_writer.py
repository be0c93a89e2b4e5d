# SPDX-License-Identifier: Apache-2.0
"""Writes frames into a memory as they will go to the line: with CRC, stuffing and final zero."""

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from .crc import CRC_BITS, crc_step, first_state

__all__ = ["FrameWriter"]


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

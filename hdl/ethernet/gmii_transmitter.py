# SPDX-License-Identifier: Apache-2.0
"""Sends frames to a PHY: preamble, padding, checksum and gap."""

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hdl.link.crc import CRC_BITS, crc_step

from .frames import (
    FCS_BYTES,
    GAP_BYTES,
    LEAST_BYTES,
    LONGEST_BYTES,
    PREAMBLE,
    PREAMBLE_BYTES,
    SFD,
    FrameByte,
)

__all__ = ["GmiiTransmitter"]


class GmiiTransmitter(wiring.Component):
    """Send frames to a PHY.

    A frame begins when its first byte is there, and its bytes are taken in successive cycles. Where
    one is missing, ``error`` makes the other side drop the frame. Zeros are added to frames that
    are shorter than 60 bytes.

    Latency: 10 cycles from the first byte of a frame to the same byte at ``data``, behind the
    preamble. Throughput: a frame of n bytes takes ``max(n, 60) + 24`` cycles.

    Members
    -------
    i : In(stream.Signature(FrameByte))
    data : Out(8)
    enable, error : Out(1)
        What the PHY sends, from registers; see :class:`hdl.ethernet.frames.GmiiSignature`.
    """

    latency = 2 + PREAMBLE_BYTES + 1
    #: Cycles that a frame takes besides those of its bytes.
    overhead = PREAMBLE_BYTES + 1 + FCS_BYTES + GAP_BYTES

    def __init__(self):
        super().__init__(
            {
                "i": In(stream.Signature(FrameByte)),
                "data": Out(8),
                "enable": Out(1),
                "error": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        byte = self.i.payload.byte
        left = Signal(range(GAP_BYTES), init=PREAMBLE_BYTES - 1)
        place = Signal(range(LONGEST_BYTES))
        state = Signal(CRC_BITS)
        is_long = Signal()  # the frame needs no padding behind this byte

        def put(byte):
            m.d.sync += [self.data.eq(byte), self.enable.eq(1)]

        def body(byte, done):
            put(byte)
            m.d.sync += [
                state.eq(crc_step(state, byte)), place.eq(place + 1),
                is_long.eq(is_long | (place == LEAST_BYTES - 2)), left.eq(FCS_BYTES - 1),
            ]  # fmt: skip
            with m.If(done):
                m.next = "CHECKSUM"

        m.d.sync += [self.enable.eq(0), self.error.eq(0), self.data.eq(0)]
        with m.FSM():
            with m.State("IDLE"):
                m.d.sync += [left.eq(PREAMBLE_BYTES - 1), place.eq(0), state.eq(~0), is_long.eq(0)]
                with m.If(self.i.valid):
                    m.next = "PREAMBLE"
            with m.State("PREAMBLE"):
                put(PREAMBLE)
                m.d.sync += left.eq(left - 1)
                with m.If(left == 0):
                    m.next = "START"
            with m.State("START"):
                put(SFD)
                m.next = "FRAME"
            with m.State("FRAME"):
                m.d.comb += self.i.ready.eq(1)
                m.d.sync += self.error.eq(~self.i.valid)
                ends = self.i.valid & self.i.payload.last
                with m.If(ends & ~is_long):
                    m.next = "PADDING"
                body(byte, ends & is_long)
            with m.State("PADDING"):
                body(C(0, 8), is_long)
            with m.State("CHECKSUM"):
                put(~state[:8])
                m.d.sync += [state.eq(state >> 8), left.eq(left - 1)]
                with m.If(left == 0):
                    m.d.sync += left.eq(GAP_BYTES - 2)  # the last byte of the gap is IDLE
                    m.next = "GAP"
            with m.State("GAP"):
                m.d.sync += left.eq(left - 1)
                with m.If(left == 0):
                    m.next = "IDLE"
        return m

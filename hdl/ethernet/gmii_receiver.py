# SPDX-License-Identifier: Apache-2.0
"""Finds frames in what a PHY receives: preamble, end, length and checksum."""

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.link.crc import CRC_BITS, RESIDUE, crc_step

from .frames import FCS_BYTES, LEAST_BYTES, LONGEST_BYTES, PREAMBLE, SFD, ReceivedFrame

__all__ = ["GmiiReceiver"]


class GmiiReceiver(wiring.Component):
    """Take frames out of what a PHY receives.

    A PHY may swallow bytes of the preamble, so any number of them is taken. A frame is correct if
    it has 64 to 1,518 bytes, the PHY has read all of them, and the checksum fits. The checksum is
    the CRC of the link's frames (:mod:`hdl.link.crc`). What begins with no preamble is skipped.

    Latency: 2 cycles from a byte to the same byte at ``frame``, and from the first cycle without
    ``valid`` to ``good`` or ``bad``. Throughput: 1 byte per cycle.

    Members
    -------
    data : In(8)
    valid, error : In(1)
        What the PHY receives, see :class:`hdl.ethernet.frames.GmiiSignature`.
    frame : Out(ReceivedFrame())
    """

    latency = 2

    def __init__(self):
        super().__init__(
            {"data": In(8), "valid": In(1), "error": In(1), "frame": Out(ReceivedFrame())}
        )

    def elaborate(self, platform):
        m = Module()
        frame = self.frame
        byte, valid, error = Signal(8), Signal(), Signal()
        state = Signal(CRC_BITS)
        place = Signal.like(frame.index)  # of the byte, where LONGEST_BYTES + FCS_BYTES is too far
        damaged = Signal()
        fits = (place >= LEAST_BYTES + FCS_BYTES) & ~damaged
        m.d.sync += [
            byte.eq(self.data), valid.eq(self.valid), error.eq(self.error),
            frame.byte.eq(byte), frame.strobe.eq(0), frame.good.eq(0), frame.bad.eq(0),
        ]  # fmt: skip
        with m.FSM():
            with m.State("PREAMBLE"):
                m.d.sync += [place.eq(0), state.eq(~0), damaged.eq(0)]
                with m.If(valid & (error | ((byte != PREAMBLE) & (byte != SFD)))):
                    m.next = "SKIP"
                with m.Elif(valid & (byte == SFD)):
                    m.next = "FRAME"
            with m.State("FRAME"):
                with m.If(valid):
                    m.d.sync += [state.eq(crc_step(state, byte)), damaged.eq(damaged | error)]
                    with m.If(place == LONGEST_BYTES + FCS_BYTES):
                        m.d.sync += damaged.eq(1)
                    with m.Else():
                        m.d.sync += [place.eq(place + 1), frame.index.eq(place), frame.strobe.eq(1)]
                with m.Else():
                    good = fits & (state == RESIDUE)
                    m.d.sync += [frame.good.eq(good), frame.bad.eq(~good)]
                    m.next = "PREAMBLE"
            with m.State("SKIP"):
                with m.If(~valid):
                    m.next = "PREAMBLE"
        return m

# SPDX-License-Identifier: Apache-2.0
"""Tells others the board's address in Ethernet when they ask for its IPv4 address."""

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from .field_capture import FieldCapture
from .frames import ARP_BYTES, ETHERNET_BYTES, FrameByte, ReceivedFrame
from .header_match import HeaderMatch, bytes_at
from .header_writer import HeaderWriter
from .layouts import network_bytes

__all__ = ["ArpResponder"]

#: EtherType; then kinds and sizes of addresses: Ethernet with six bytes, IPv4 with four.
ETHERTYPE, KINDS = b"\x08\x06", b"\x00\x01\x08\x00\x06\x04"
REQUEST, REPLY = b"\x00\x01", b"\x00\x02"
#: Places in a frame: type, sender's addresses, the IPv4 address that is asked for.
TYPE, SENDER, TARGET_IP = 12, 22, 38


class ArpResponder(wiring.Component):
    """Answer requests of ARP for the board's IPv4 address.

    Requests come to all or to the board alone. One that comes while another one is being answered
    gets no answer; who asks does so again.

    Latency: 3 cycles from ``frame.good`` to the first byte of the answer. Throughput: one answer at
    a time.

    Parameters
    ----------
    settings : EthernetSettings
        The board's addresses.

    Members
    -------
    frame : In(ReceivedFrame())
    addressed : In(1)
        The frame is for the board or for all; valid with ``frame.good``.
    o : Out(stream.Signature(FrameByte))
    """

    latency = 3

    def __init__(self, settings):
        self.settings = settings
        super().__init__(
            {
                "frame": In(ReceivedFrame()),
                "addressed": In(1),
                "o": Out(stream.Signature(FrameByte)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        settings = self.settings
        m.submodules.match = match = HeaderMatch(
            bytes_at(TYPE, ETHERTYPE + KINDS + REQUEST) | bytes_at(TARGET_IP, settings.ip_bytes)
        )
        m.submodules.fields = fields = FieldCapture({"sender": (SENDER, 10)})
        m.submodules.writer = writer = HeaderWriter(ETHERNET_BYTES + ARP_BYTES)
        for part in (match, fields):
            connect(m, flipped(self.frame), part.frame)
        connect(m, writer.o, flipped(self.o))
        asker = Signal.like(fields.sender)  # addresses of who is being answered
        busy = Signal()
        own = settings.mac_bytes + ETHERTYPE + KINDS + REPLY + settings.mac_bytes
        sender = network_bytes(asker)
        row = [*sender[:6], *own, *settings.ip_bytes, *sender]
        m.d.comb += [cell.eq(byte) for cell, byte in zip(writer.row, row, strict=True)]
        m.d.sync += writer.start.eq(0)
        with m.If(self.frame.good & match.matches & self.addressed & ~busy):
            m.d.sync += [asker.eq(fields.sender), busy.eq(1), writer.start.eq(1)]
        with m.If(self.o.valid & self.o.ready & self.o.payload.last):
            m.d.sync += busy.eq(0)
        return m

# SPDX-License-Identifier: Apache-2.0
"""Frames of datagrams that the board sends."""

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from .checksum import OnesSum
from .frames import (
    DATAGRAM_BYTES,
    HEADER_BYTES,
    IPV4_BYTES,
    NUMBER_BYTES,
    UDP_BYTES,
    FrameByte,
)
from .header_writer import HeaderWriter
from .layouts import Peer, network_bytes

__all__ = ["DatagramSender"]

#: EtherType, and the beginning of the header of IPv4: version, five words, an ordinary service.
IPV4, VERSION = b"\x08\x00", b"\x45\x00"
#: Not to be identified and not to be cut into fragments; 64 routers at most; UDP.
UNCUT, LIFE = b"\x00\x00\x40\x00", b"\x40\x11"
#: UDP over IPv4 may have no checksum. The one of the frame protects the datagram in this network.
NO_CHECKSUM = b"\x00\x00"


def ones_sum(row):
    """Return the sum of 16-bit words in ones' complement."""
    total = sum(int.from_bytes(row[at : at + 2], "big") for at in range(0, len(row), 2))
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return total


class DatagramSender(wiring.Component):
    """Put the headers and a number in front of datagrams.

    A datagram goes to the peer that there was when its frame began. None is sent before there is a
    peer. They are numbered from zero.

    Latency: 8 cycles from ``length`` to the first byte. Throughput: a datagram of n bytes takes
    ``n + HEADER_BYTES + latency`` cycles.

    Parameters
    ----------
    settings : EthernetSettings
        The board's addresses.

    Members
    -------
    length : In(stream.Signature(range(1025)))
        Bytes of the next datagram.
    i : In(stream.Signature(8))
        Bytes of the datagrams, without gaps in a datagram.
    peer : In(Peer)
    known : In(1)
        There is a peer.
    o : Out(stream.Signature(FrameByte))
    """

    latency = 8

    def __init__(self, settings):
        self.settings = settings
        super().__init__(
            {
                "length": In(stream.Signature(range(DATAGRAM_BYTES + 1))),
                "i": In(stream.Signature(8)),
                "peer": In(Peer),
                "known": In(1),
                "o": Out(stream.Signature(FrameByte)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        settings = self.settings
        m.submodules.writer = writer = HeaderWriter(HEADER_BYTES)
        m.submodules.sum = checksum = OnesSum(
            first=ones_sum(VERSION + UNCUT + LIFE + settings.ip_bytes)
        )
        left = Signal(range(DATAGRAM_BYTES + 1))  # bytes that were not sent yet
        peer, number = Signal(Peer), Signal(8 * NUMBER_BYTES)
        udp_length, total_length = Signal(16), Signal(16)
        words = [total_length, peer.ip[16:], peer.ip[:16]]  # what is not constant in the header
        row = [
            *network_bytes(peer.mac), *settings.mac_bytes, *IPV4, *VERSION,
            *network_bytes(total_length), *UNCUT, *LIFE, *network_bytes(~checksum.total),
            *settings.ip_bytes, *network_bytes(peer.ip), *settings.port_bytes,
            *network_bytes(peer.port), *network_bytes(udp_length), *NO_CHECKSUM,
            *(number.word_select(n, 8) for n in range(NUMBER_BYTES)),
        ]  # fmt: skip
        m.d.comb += [cell.eq(byte) for cell, byte in zip(writer.row, row, strict=True)]
        m.d.comb += checksum.clear.eq(self.length.ready)
        step = Signal(range(len(words) + OnesSum.latency))
        with m.FSM():
            with m.State("IDLE"):
                m.d.comb += self.length.ready.eq(self.known)
                m.d.sync += [
                    left.eq(self.length.payload), peer.eq(self.peer), step.eq(0),
                    udp_length.eq(self.length.payload + (UDP_BYTES + NUMBER_BYTES)),
                    total_length.eq(
                        self.length.payload + (IPV4_BYTES + UDP_BYTES + NUMBER_BYTES)
                    ),
                ]  # fmt: skip
                with m.If(self.known & self.length.valid):
                    m.next = "SUM"
            with m.State("SUM"):
                m.d.comb += [
                    checksum.word.eq(Array(words)[step]), checksum.add.eq(step < len(words)),
                ]  # fmt: skip
                m.d.sync += step.eq(step + 1)
                with m.If(step == len(words) + OnesSum.latency - 1):
                    m.d.comb += writer.start.eq(1)
                    m.next = "HEADER"
            with m.State("HEADER"):
                m.d.comb += [
                    self.o.valid.eq(writer.o.valid), self.o.payload.byte.eq(writer.o.payload.byte),
                    writer.o.ready.eq(self.o.ready),
                ]  # fmt: skip
                with m.If(writer.o.valid & writer.o.payload.last & self.o.ready):
                    m.d.sync += number.eq(number + 1)
                    m.next = "BYTES"
            with m.State("BYTES"):
                m.d.comb += [
                    self.o.valid.eq(self.i.valid), self.o.payload.byte.eq(self.i.payload),
                    self.o.payload.last.eq(left == 1), self.i.ready.eq(self.o.ready),
                ]  # fmt: skip
                with m.If(self.i.valid & self.o.ready):
                    m.d.sync += left.eq(left - 1)
                    with m.If(left == 1):
                        m.next = "IDLE"
        return m

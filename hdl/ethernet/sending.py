# SPDX-License-Identifier: Apache-2.0
"""From a byte stream to frames: datagrams that are filled and sent."""

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hdl.streams.queues import PointerQueue

from .frames import (
    DATAGRAM_BYTES,
    HEADER_BYTES,
    IPV4_BYTES,
    NUMBER_BYTES,
    UDP_BYTES,
    FrameByte,
    HeaderWriter,
    OnesSum,
    Peer,
    network_bytes,
)
from .receiving import PacketBuffer

__all__ = ["DatagramPacker", "DatagramSender", "FrameChoice"]


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


#: Datagrams that wait to be sent, at the most.
WAITING = 8


class DatagramPacker(wiring.Component):
    """Collect bytes until a datagram is full, or no byte has come for a while.

    Latency: 2 cycles from the last byte of a full datagram to ``length``; ``idle_cycles`` more for
    one that is not full. Throughput: 1 byte per cycle, less a cycle per datagram.

    Parameters
    ----------
    idle_cycles : int
        Cycles without a byte after which a datagram is closed.
    most : int
        Bytes of a full datagram, a power of two.

    Members
    -------
    i : In(stream.Signature(8))
        The byte stream.
    length : Out(stream.Signature(range(most + 1)))
        Bytes of the next datagram.
    o : Out(stream.Signature(8))
        The bytes of all datagrams. When ``length`` is valid, those of its datagram come in
        successive cycles.
    """

    latency = 2

    def __init__(self, *, idle_cycles, most=DATAGRAM_BYTES):
        if idle_cycles < 1:
            raise ValueError(f"A datagram must wait at least one cycle, not {idle_cycles!r}")
        self.idle_cycles = idle_cycles
        self.most = most
        # One datagram is filled while another one is sent.
        self._buffer = PacketBuffer(depth=2 * most)
        super().__init__(
            {
                "i": In(stream.Signature(8)),
                "length": Out(stream.Signature(range(most + 1))),
                "o": Out(stream.Signature(8)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.buffer = buffer = self._buffer
        m.submodules.lengths = lengths = PointerQueue(range(self.most + 1), depth=WAITING)
        connect(m, buffer.o, flipped(self.o))
        count = Signal(range(self.most + 1))
        quiet = Signal(range(self.idle_cycles + 1))
        closing, close = Signal(), Signal()
        taken = self.i.valid & self.i.ready
        m.d.comb += [
            closing.eq((count == self.most) | ((quiet == self.idle_cycles) & (count != 0))),
            close.eq(closing & (lengths.level != WAITING)),
            self.i.ready.eq(buffer.room & ~closing),
            buffer.write.eq(taken),
            buffer.byte.eq(self.i.payload),
            buffer.commit.eq(close),
            lengths.add.eq(close),
            lengths.last.eq(count),
            lengths.take.eq(self.length.valid & self.length.ready),
            self.length.payload.eq(lengths.first),
            self.length.valid.eq(lengths.filled),
        ]
        with m.If(close):
            m.d.sync += count.eq(0)
        with m.Elif(taken):
            m.d.sync += count.eq(count + 1)
        with m.If(taken | (count == 0)):
            m.d.sync += quiet.eq(0)
        with m.Elif(quiet != self.idle_cycles):
            m.d.sync += quiet.eq(quiet + 1)
        return m


class FrameChoice(wiring.Component):
    """Fixed-priority arbiter of two inputs that sends whole frames.

    An input whose frame is sent keeps the output until its last byte.

    Latency: 0 cycles. Throughput: 1 byte per cycle.

    Members
    -------
    i : In(stream.Signature(FrameByte)).array(2)
    o : Out(stream.Signature(FrameByte))
    """

    def __init__(self):
        super().__init__(
            {
                "i": In(stream.Signature(FrameByte)).array(2),
                "o": Out(stream.Signature(FrameByte)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        held, chosen = Signal(), Signal()  # a frame is under way; which one
        second = Mux(held, chosen, ~self.i[0].valid)
        m.d.comb += [
            self.o.payload.eq(Mux(second, self.i[1].payload, self.i[0].payload)),
            self.o.valid.eq(Mux(second, self.i[1].valid, self.i[0].valid)),
            self.i[0].ready.eq(self.o.ready & ~second),
            self.i[1].ready.eq(self.o.ready & second),
        ]
        with m.If(self.o.valid):
            m.d.sync += [chosen.eq(second), held.eq(~(self.o.ready & self.o.payload.last))]
        return m

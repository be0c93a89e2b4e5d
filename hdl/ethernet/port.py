# SPDX-License-Identifier: Apache-2.0
"""A byte stream in datagrams, between a PHY and a link."""

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from .frames import ArpResponder, GmiiSignature, HeaderMatch, bytes_at
from .phy import GmiiReceiver, GmiiTransmitter
from .receiving import DatagramReceiver
from .sending import DatagramPacker, DatagramSender, FrameChoice

__all__ = ["EthernetPort"]

BROADCAST = b"\xff" * 6


class EthernetPort(wiring.Component):
    """Exchange a byte stream with whoever sends datagrams to the board.

    Datagrams are as in ``docs/link.md``. Besides, the board answers requests of ARP. All other
    frames are ignored, and so are damaged ones. Bytes that are to be sent wait until a peer has
    spoken.

    Latency: from the last byte of a correct frame, that of :class:`GmiiReceiver` and of
    :class:`DatagramReceiver`; to the PHY, that of :class:`DatagramPacker`, :class:`DatagramSender`
    and :class:`GmiiTransmitter`. Throughput: 1 byte per cycle from the PHY; to the PHY, a datagram
    of n bytes takes ``n + HEADER_BYTES + GmiiTransmitter.overhead`` cycles: a full one 1,094.

    Parameters
    ----------
    settings : EthernetSettings
        The board's addresses and buffers.

    Members
    -------
    gmii : Out(GmiiSignature())
        The PHY.
    i : In(stream.Signature(8))
        Bytes to the peer.
    o : Out(stream.Signature(8))
        Bytes from the peer.
    known : Out(1)
        A peer has spoken.
    """

    def __init__(self, settings):
        self.settings = settings
        super().__init__(
            {
                "gmii": Out(GmiiSignature()),
                "i": In(stream.Signature(8)),
                "o": Out(stream.Signature(8)),
                "known": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        settings, gmii = self.settings, self.gmii
        m.submodules.receiver = receiver = GmiiReceiver()
        m.submodules.transmitter = transmitter = GmiiTransmitter()
        m.submodules.to_board = to_board = HeaderMatch(bytes_at(0, settings.mac_bytes))
        m.submodules.to_all = to_all = HeaderMatch(bytes_at(0, BROADCAST))
        m.submodules.arp = arp = ArpResponder(settings)
        m.submodules.datagrams = datagrams = DatagramReceiver(settings)
        m.submodules.packer = packer = DatagramPacker(idle_cycles=settings.idle_cycles)
        m.submodules.sender = sender = DatagramSender(settings)
        m.submodules.choice = choice = FrameChoice()
        for part in (to_board, to_all, arp, datagrams):
            connect(m, receiver.frame, part.frame)
        connect(m, datagrams.o, flipped(self.o))
        connect(m, flipped(self.i), packer.i)
        connect(m, packer.length, sender.length)
        connect(m, packer.o, sender.i)
        connect(m, arp.o, choice.i[0])
        connect(m, sender.o, choice.i[1])
        connect(m, choice.o, transmitter.i)
        m.d.comb += [
            receiver.data.eq(gmii.rx_data),
            receiver.valid.eq(gmii.rx_valid),
            receiver.error.eq(gmii.rx_error),
            gmii.tx_data.eq(transmitter.data),
            gmii.tx_enable.eq(transmitter.enable),
            gmii.tx_error.eq(transmitter.error),
            datagrams.addressed.eq(to_board.matches),
            arp.addressed.eq(to_board.matches | to_all.matches),
            sender.peer.eq(datagrams.peer),
            sender.known.eq(datagrams.known),
            self.known.eq(datagrams.known),
        ]
        return m

# SPDX-License-Identifier: Apache-2.0
"""Frames: their headers, checksums and fields, and the answers to ARP."""

from amaranth import *
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

__all__ = [
    "ARP_BYTES",
    "DATAGRAM_BYTES",
    "ETHERNET_BYTES",
    "FCS_BYTES",
    "GAP_BYTES",
    "HEADER_BYTES",
    "IPV4_BYTES",
    "LEAST_BYTES",
    "LONGEST_BYTES",
    "NUMBER_BYTES",
    "PREAMBLE",
    "PREAMBLE_BYTES",
    "SFD",
    "UDP_BYTES",
    "ArpResponder",
    "FieldCapture",
    "FrameByte",
    "GmiiSignature",
    "HeaderMatch",
    "HeaderWriter",
    "OnesSum",
    "Peer",
    "ReceivedFrame",
    "bytes_at",
    "network_bytes",
]


class OnesSum(wiring.Component):
    """Add 16-bit words in ones' complement.

    A carry is added in the next cycle, so that no sum takes more than one adder.

    Latency: 3 cycles from the last word to ``total``, in which no word comes. Throughput: 1 word
    per cycle.

    Parameters
    ----------
    first : int
        What the sum begins with, 16 bits.

    Members
    -------
    clear : In(1)
        Begin a sum.
    add : In(1)
        Add ``word``, unless a sum begins.
    word : In(16)
    total : Out(16)
    """

    latency = 3

    def __init__(self, *, first=0):
        self.first = first
        super().__init__({"clear": In(1), "add": In(1), "word": In(16), "total": Out(16)})

    def elaborate(self, platform):
        m = Module()
        carry = Signal()
        m.d.sync += Cat(self.total, carry).eq(self.total + carry + Mux(self.add, self.word, 0))
        with m.If(self.clear):
            m.d.sync += Cat(self.total, carry).eq(self.first)
        return m


class Peer(data.Struct):
    """Who datagrams come from and go to."""

    #: UDP port.
    port: 16
    #: IPv4 address.
    ip: 32
    #: Address in Ethernet.
    mac: 48


def network_bytes(value):
    """Return the bytes of a number or field as it is sent, the highest byte first."""
    return [value.word_select(n, 8) for n in reversed(range(len(value) // 8))]


#: Byte of the preamble, number of such bytes, and the byte between them and the frame.
PREAMBLE, PREAMBLE_BYTES, SFD = 0x55, 7, 0xD5
#: Bytes of the checksum at the end of a frame, and of the gap between two frames.
FCS_BYTES, GAP_BYTES = 4, 12
#: Bytes of a frame without its checksum: at the least, and at the most.
LEAST_BYTES, LONGEST_BYTES = 60, 1514
#: Bytes of the headers: of Ethernet, of IPv4 without options, of UDP; and of a message of ARP.
ETHERNET_BYTES, IPV4_BYTES, UDP_BYTES, ARP_BYTES = 14, 20, 8, 28
#: Bytes of a datagram's number, and most bytes of the byte stream behind it (``docs/link.md``).
NUMBER_BYTES, DATAGRAM_BYTES = 4, 1024
#: Bytes of a frame before the byte stream.
HEADER_BYTES = ETHERNET_BYTES + IPV4_BYTES + UDP_BYTES + NUMBER_BYTES


class FrameByte(data.Struct):
    """A byte of a frame that is to be sent, from the destination's address on."""

    #: The byte.
    byte: 8
    #: It is the last one before the padding and the checksum, which are added later.
    last: 1


class ReceivedFrame(wiring.Signature):
    """A frame while it is received, as its receiver sees it.

    Each byte is shown once, before it is known whether the frame is correct. At least four cycles
    pass from ``good`` or ``bad`` to the first byte of the next frame.

    Members
    -------
    byte : Out(8)
        A byte between preamble and end, the four bytes of the checksum among them.
    index : Out(range(1519))
        Its place; 0 is the first byte of the destination's address. It stays behind the last byte.
    strobe : Out(1)
        There is a byte.
    good, bad : Out(1)
        The frame has ended, and was correct or not; high for one cycle.
    """

    def __init__(self):
        super().__init__(
            {
                "byte": Out(8),
                "index": Out(range(LONGEST_BYTES + FCS_BYTES + 1)),
                "strobe": Out(1),
                "good": Out(1),
                "bad": Out(1),
            }
        )


class GmiiSignature(wiring.Signature):
    """The interface between a MAC and its PHY, one byte per cycle, as the MAC sees it.

    Members
    -------
    rx_data : In(8)
    rx_valid : In(1)
        A frame or its preamble is received.
    rx_error : In(1)
        The PHY could not read this byte.
    tx_data : Out(8)
    tx_enable : Out(1)
        A frame or its preamble is sent.
    tx_error : Out(1)
        The byte is damaged on purpose, so that the other side drops the frame.
    """

    def __init__(self):
        super().__init__(
            {
                "rx_data": In(8),
                "rx_valid": In(1),
                "rx_error": In(1),
                "tx_data": Out(8),
                "tx_enable": Out(1),
                "tx_error": Out(1),
            }
        )


class FieldCapture(wiring.Component):
    """Keep fields of a frame until the same fields of the next frame come.

    Latency: 2 cycles from the last byte of a field to the field. Throughput: 1 byte per cycle.

    Parameters
    ----------
    fields : dict of str to tuple of int
        Place of the first byte, and number of bytes, by name.

    Members
    -------
    frame : In(ReceivedFrame())
    NAME : Out(8 * bytes)
        A field; its first byte has the highest bits, as numbers have in a network.
    """

    latency = 2

    def __init__(self, fields):
        self.fields = dict(fields)
        members = {name: Out(8 * size) for name, (_, size) in self.fields.items()}
        super().__init__({"frame": In(ReceivedFrame()), **members})

    def elaborate(self, platform):
        m = Module()
        frame = self.frame
        byte = Signal(8)
        m.d.sync += byte.eq(frame.byte)
        for name, (first, size) in self.fields.items():
            field, now = getattr(self, name), Signal(name=f"{name}_now")
            inside = (frame.index >= first) & (frame.index < first + size)
            m.d.sync += now.eq(frame.strobe & inside)
            with m.If(now):
                m.d.sync += field.eq(Cat(byte, field))
        return m


def bytes_at(first, values):
    """Return what :class:`HeaderMatch` expects if ``values`` stand from byte ``first`` on."""
    return dict(enumerate(values, first))


class HeaderMatch(wiring.Component):
    """Compare bytes of a frame with what they should be.

    Latency: 2 cycles from a byte to ``matches``. Throughput: 1 byte per cycle.

    Parameters
    ----------
    expected : dict of int to (int or tuple of int)
        Values by the place of the byte, which every frame has; or value and mask of the bits that
        are compared.

    Members
    -------
    frame : In(ReceivedFrame())
    matches : Out(1)
        All bytes of the frame so far are as expected.
    """

    latency = 2

    def __init__(self, expected):
        if not expected or max(expected) >= LEAST_BYTES:
            raise ValueError(
                f"Places of expected bytes must be below {LEAST_BYTES}, which every frame has, not "
                f"{sorted(expected)}"
            )
        self.expected = dict(expected)
        super().__init__({"frame": In(ReceivedFrame()), "matches": Out(1)})

    def elaborate(self, platform):
        m = Module()
        frame = self.frame
        byte, value, mask = Signal(8), Signal(8), Signal(8)
        strobe, first = Signal(), Signal()
        m.d.sync += [
            byte.eq(frame.byte), value.eq(0), mask.eq(0),
            strobe.eq(frame.strobe), first.eq(frame.index == 0),
        ]  # fmt: skip
        with m.Switch(frame.index):
            for place, wanted in self.expected.items():
                chosen = wanted if isinstance(wanted, tuple) else (wanted, 0xFF)
                with m.Case(place):
                    m.d.sync += [value.eq(chosen[0]), mask.eq(chosen[1])]
        with m.If(strobe):
            m.d.sync += self.matches.eq((first | self.matches) & (((byte ^ value) & mask) == 0))
        return m


class HeaderWriter(wiring.Component):
    """Send a row of bytes.

    Latency: 2 cycles from ``start`` to the first byte. Throughput: 1 byte per cycle.

    Parameters
    ----------
    count : int
        Bytes.

    Members
    -------
    start : In(1)
        Send the row; while none is sent.
    row : In(data.ArrayLayout(8, count))
        The bytes, the first one to be sent in front; held until the last one has been taken.
    o : Out(stream.Signature(FrameByte))
        ``last`` is high with the last byte.
    """

    latency = 2

    def __init__(self, count):
        self.count = count
        super().__init__(
            {
                "start": In(1),
                "row": In(data.ArrayLayout(8, count)),
                "o": Out(stream.Signature(FrameByte)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        index = Signal(range(self.count))
        busy = Signal()
        last = index == self.count - 1
        with m.If(self.o.ready | ~self.o.valid):
            m.d.sync += [
                self.o.valid.eq(busy), self.o.payload.byte.eq(self.row[index]),
                self.o.payload.last.eq(last),
            ]  # fmt: skip
            with m.If(busy):
                m.d.sync += [index.eq(index + 1), busy.eq(~last)]
        with m.If(self.start):
            m.d.sync += [index.eq(0), busy.eq(1)]
        return m


#: EtherType; then kinds and sizes of addresses: Ethernet with six bytes, IPv4 with four.
ETHERTYPE, KINDS = b"\x08\x06", b"\x00\x01\x08\x00\x06\x04"
REQUEST, REPLY = b"\x00\x01", b"\x00\x02"
#: Places in a frame: type, sender's addresses, the IPv4 address that is asked for.
TYPE, SENDER, TARGET_IP = 12, 22, 38


class ArpResponder(wiring.Component):
    """ARP responder for the board's IPv4 address.

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

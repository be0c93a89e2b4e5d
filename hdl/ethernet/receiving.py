# SPDX-License-Identifier: Apache-2.0
"""From frames to a byte stream: datagrams in their order."""

from amaranth import *
from amaranth.lib import memory, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from .frames import (
    DATAGRAM_BYTES,
    ETHERNET_BYTES,
    FCS_BYTES,
    HEADER_BYTES,
    IPV4_BYTES,
    NUMBER_BYTES,
    UDP_BYTES,
    FieldCapture,
    HeaderMatch,
    OnesSum,
    Peer,
    ReceivedFrame,
    bytes_at,
)

__all__ = ["DatagramOrder", "DatagramReceiver", "PacketBuffer", "UdpCheck"]


class DatagramOrder(wiring.Component):
    """Tell late datagrams from those that are ahead of all before, and remember the peer.

    A datagram is ahead if its number is, by less than 2**31, or is zero, or if it comes from
    another peer than the last one that was taken (``docs/link.md``).

    Latency: 2 cycles from ``number`` and ``sender`` to ``ahead``; 1 cycle from ``take`` to
    ``peer``. Throughput: not applicable.

    Members
    -------
    number : In(32)
    sender : In(Peer)
        Of the datagram.
    ahead : Out(1)
        The datagram is not late.
    take : In(1)
        The datagram is taken; while ``number`` and ``sender`` stand still.
    peer : Out(Peer)
        Who spoke last.
    known : Out(1)
        Somebody has spoken.
    """

    latency = 2

    def __init__(self):
        super().__init__(
            {
                "number": In(32),
                "sender": In(Peer),
                "ahead": Out(1),
                "take": In(1),
                "peer": Out(Peer),
                "known": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        last, distance = Signal(32), Signal(32)
        begins, is_other = Signal(), Signal()
        m.d.sync += [
            distance.eq(self.number - last),
            begins.eq(self.number == 0),
            is_other.eq(
                ~self.known
                | (self.sender.ip != self.peer.ip)
                | (self.sender.port != self.peer.port)
            ),
            self.ahead.eq(begins | is_other | (distance.any() & ~distance[-1])),
        ]
        with m.If(self.take):
            m.d.sync += [last.eq(self.number), self.peer.eq(self.sender), self.known.eq(1)]
        return m


class PacketBuffer(wiring.Component):
    """Packet FIFO: store bytes, and hand out those of complete packets as a stream.

    The bytes of a packet are written while it is not known yet whether they are wanted. With
    ``commit`` they are; with ``begin`` they are forgotten. A packet for which there is no room is
    forgotten as a whole: its ``commit`` has no effect.

    Latency: 2 cycles from ``commit`` to ``o.valid``. Throughput: 1 byte per cycle in
    and out.

    Parameters
    ----------
    depth : int
        Bytes, a power of two.

    Members
    -------
    begin : In(1)
        A packet begins; not in the same cycle as one of its bytes.
    write : In(1)
        Store ``byte``.
    byte : In(8)
    commit : In(1)
        Hand out what was written in earlier cycles.
    room : Out(1)
        A byte that is written in this cycle has room.
    o : Out(stream.Signature(8))
    """

    def __init__(self, *, depth):
        if depth < 2 or depth & (depth - 1):
            raise ValueError(f"Depth of a packet buffer must be a power of two, not {depth!r}")
        self.depth = depth
        self.latency = 2
        super().__init__(
            {
                "begin": In(1),
                "write": In(1),
                "byte": In(8),
                "commit": In(1),
                "room": Out(1),
                "o": Out(stream.Signature(8)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.memory = rows = memory.Memory(shape=8, depth=self.depth, init=[])
        write, read = rows.write_port(), rows.read_port()
        # With a bit more than an address, so that a full buffer differs from an empty one.
        head, committed, tail = (
            Signal(range(2 * self.depth), name=name) for name in ("head", "committed", "tail")
        )
        lost = Signal()  # a byte of this packet had no room
        store = self.write & self.room
        fetch = (tail != committed) & (~self.o.valid | self.o.ready)
        m.d.comb += [
            self.room.eq((head ^ tail) != self.depth),
            write.addr.eq(head), write.data.eq(self.byte), write.en.eq(store),
            read.addr.eq(tail), read.en.eq(fetch),
            self.o.payload.eq(read.data),
        ]  # fmt: skip
        m.d.sync += [
            tail.eq(tail + fetch),
            self.o.valid.eq(fetch | (self.o.valid & ~self.o.ready)),
        ]
        with m.If(self.commit & ~lost):
            m.d.sync += committed.eq(head)
        with m.If(self.begin):
            m.d.sync += [head.eq(committed), lost.eq(0)]
        with m.Else():
            m.d.sync += [head.eq(head + store), lost.eq(lost | (self.write & ~self.room))]
        return m


#: Where the header of UDP begins, and where fields are in a frame.
UDP_START = ETHERNET_BYTES + IPV4_BYTES
TYPE, TOTAL, FLAGS, PROTOCOL, ADDRESSES, TARGET, PORT = 12, 16, 20, 23, 26, 30, 36
FIELDS = {
    "mac": (6, 6), "total": (TOTAL, 2), "ip": (ADDRESSES, 4), "port": (34, 2), "length": (38, 2),
    "checksum": (40, 2), "number": (42, NUMBER_BYTES),
}  # fmt: skip
#: EtherType, then version 4 and a header of five words; protocol UDP.
IPV4, UDP = b"\x08\x00\x45", b"\x11"
#: Bits of the first byte of the flags that are zero in a datagram that is no fragment, and of the
#: second one.
NO_FRAGMENT = {FLAGS: (0, 0xBF), FLAGS + 1: 0}
#: What the sum of UDP begins with: its protocol, less the length of the header of IPv4, because
#: the sum takes the length of UDP from the total length of IPv4.
PSEUDO_HEADER = UDP[0] - IPV4_BYTES + 0xFFFF


class UdpCheck(wiring.Component):
    """Check sums and lengths of a datagram.

    Latency: :attr:`latency` cycles from a byte to the checks. Throughput: 1 byte per cycle.

    Members
    -------
    frame : In(ReceivedFrame())
    total, length, checksum : In(16)
        Fields of the datagram: the length of IPv4, that of UDP, and the checksum of UDP, which is
        zero if there is none.
    inside : Out(1)
        The byte of the frame in this cycle is one of the byte stream.
    correct : Out(1)
        The sums and lengths are right; valid with ``frame.good``.
    """

    latency = 4

    def __init__(self):
        fields = dict.fromkeys(("total", "length", "checksum"), In(16))
        super().__init__(
            {"frame": In(ReceivedFrame()), **fields, "inside": Out(1), "correct": Out(1)}
        )

    def elaborate(self, platform):
        m = Module()
        frame = self.frame
        m.submodules.header = header = OnesSum()
        m.submodules.whole = whole = OnesSum(first=PSEUDO_HEADER)
        # Place behind the datagram, and that of the last byte of the frame, if nothing is missing.
        end, last = Signal(range(1 << 12)), Signal(range(1 << 12))
        sizes = Signal()
        most = UDP_BYTES + NUMBER_BYTES + DATAGRAM_BYTES
        index = frame.index
        before_end = index < end
        m.d.comb += self.inside.eq(frame.strobe & (index >= HEADER_BYTES) & before_end)
        m.d.sync += [
            end.eq(self.length[:11] + UDP_START),
            last.eq(end + (FCS_BYTES - 1)),
            sizes.eq(
                (self.total == self.length + IPV4_BYTES)
                & (self.length >= UDP_BYTES + NUMBER_BYTES)
                & (self.length <= most)
            ),
            header.add.eq(
                frame.strobe & (index >= ETHERNET_BYTES) & (index < UDP_START)
            ),
            whole.add.eq(
                frame.strobe
                & ((index[1:] == TOTAL >> 1)
                   | ((index >= ADDRESSES) & ((index < HEADER_BYTES) | before_end)))
            ),
        ]  # fmt: skip
        for part in (header, whole):
            m.d.sync += [
                part.clear.eq(frame.strobe & (index == 0)),
                part.word.eq(Mux(index[0], frame.byte, frame.byte << 8)),
            ]
        # `index` stays at the last byte of the checksum of the frame.
        m.d.comb += self.correct.eq(
            sizes
            & (index >= last)
            & header.total.all()
            & (whole.total.all() | (self.checksum == 0))
        )
        return m


class DatagramReceiver(wiring.Component):
    """Hand out the bytes of datagrams that are right, for the board, and not late.

    A datagram is right if it comes to the board's addresses and port, is no fragment, has a header
    without options, and lengths and checksums fit; a checksum of zero stands for none. A datagram
    for which the buffer has no room is lost.

    Latency: ``PacketBuffer.latency + 1`` cycles from ``frame.good`` to the first byte. Throughput:
    1 byte per cycle.

    Parameters
    ----------
    settings : EthernetSettings
        The board's addresses and the size of its buffer.

    Members
    -------
    frame : In(ReceivedFrame())
    addressed : In(1)
        The frame is for the board alone; valid with ``frame.good``.
    o : Out(stream.Signature(8))
        The byte stream.
    peer : Out(Peer)
        Who spoke last.
    known : Out(1)
        Somebody has spoken.
    """

    def __init__(self, settings):
        self.settings = settings
        self._buffer = PacketBuffer(depth=settings.receive_bytes)
        self.latency = self._buffer.latency + 1
        super().__init__(
            {
                "frame": In(ReceivedFrame()),
                "addressed": In(1),
                "o": Out(stream.Signature(8)),
                "peer": Out(Peer),
                "known": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        frame, settings = self.frame, self.settings
        m.submodules.match = match = HeaderMatch(
            bytes_at(TYPE, IPV4) | NO_FRAGMENT | bytes_at(PROTOCOL, UDP)
            | bytes_at(TARGET, settings.ip_bytes) | bytes_at(PORT, settings.port_bytes)
        )  # fmt: skip
        m.submodules.fields = fields = FieldCapture(FIELDS)
        m.submodules.check = check = UdpCheck()
        m.submodules.order = order = DatagramOrder()
        m.submodules.buffer = buffer = self._buffer
        for part in (match, fields, check):
            connect(m, flipped(frame), part.frame)
        connect(m, buffer.o, flipped(self.o))
        number = [fields.number.word_select(n, 8) for n in reversed(range(NUMBER_BYTES))]
        m.d.comb += [
            *(getattr(check, name).eq(getattr(fields, name))
              for name in ("total", "length", "checksum")),
            *(order.sender[name].eq(getattr(fields, name)) for name in ("mac", "ip", "port")),
            order.number.eq(Cat(number)),  # its lowest byte came first
            buffer.commit.eq(order.take),
            self.peer.eq(order.peer),
            self.known.eq(order.known),
        ]  # fmt: skip
        m.d.sync += [
            buffer.begin.eq(frame.strobe & (frame.index == 0)),
            buffer.write.eq(check.inside),
            buffer.byte.eq(frame.byte),
            order.take.eq(
                frame.good & self.addressed & match.matches & check.correct & order.ahead
            ),
        ]
        return m

# SPDX-License-Identifier: Apache-2.0
"""A buffer of bytes that can be taken back until it is known that they are right."""

from amaranth import *
from amaranth.lib import memory, stream, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["PacketBuffer"]


class PacketBuffer(wiring.Component):
    """Store the bytes of packets, and hand out those of complete packets as a stream.

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

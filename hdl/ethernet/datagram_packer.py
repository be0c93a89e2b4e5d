# SPDX-License-Identifier: Apache-2.0
"""Cuts a byte stream into datagrams."""

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hdl.streams.pointer_queue import PointerQueue

from .frames import DATAGRAM_BYTES
from .packet_buffer import PacketBuffer

__all__ = ["DatagramPacker"]

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

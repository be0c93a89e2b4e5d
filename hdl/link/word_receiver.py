# SPDX-License-Identifier: Apache-2.0
"""Stores the words of frames as they arrive, and gives out those of correct frames."""

from amaranth import *
from amaranth.lib import memory, stream, wiring
from amaranth.lib.wiring import In, Out

from .settings import SLOT_BYTES

__all__ = ["WordReceiver"]


class WordReceiver(wiring.Component):
    """A ring of bytes, of which those up to the last correct frame are words.

    Payload and CRC of a frame are written behind the words; with ``accept``, the payload becomes
    words. As at least one slot is free whenever something is written, nothing is overwritten.

    Reset forgets all words.

    Latency: ``word_bytes + 2`` cycles from ``accept`` to a word. Throughput: 1 byte written per
    cycle, 1 word per ``word_bytes + 1`` cycles.

    Parameters
    ----------
    settings : LinkSettings
        What can be chosen.

    Members
    -------
    byte, index : In(8)
        Byte of a payload or CRC, and its place.
    strobe : In(1)
        It belongs to a frame of words.
    accept : In(1)
        The frame is correct and the expected one.
    length : In(8)
        Bytes of its payload.
    free : Out(range(receive_slots + 1))
        Frames that there is room for.
    o : Out(stream.Signature(input_bits))
        Words.
    """

    def __init__(self, settings):
        self.settings = settings
        self.latency = settings.input_bytes + 2
        super().__init__(
            {
                "byte": In(8),
                "index": In(8),
                "strobe": In(1),
                "accept": In(1),
                "length": In(8),
                "free": Out(range(settings.receive_slots + 1)),
                "o": Out(stream.Signature(settings.input_bits)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        depth = self.settings.receive_slots * SLOT_BYTES
        m.submodules.rows = rows = memory.Memory(shape=8, depth=depth, init=[])
        write, read = rows.write_port(), rows.read_port()
        end, begin = (Signal(range(2 * depth)) for _ in range(2))  # with a wrap bit
        level = Signal(range(2 * depth))
        m.d.comb += [
            level.eq(end - begin),
            self.free.eq((depth - level) >> SLOT_BYTES.bit_length() - 1),
            write.addr.eq(end + self.index),
            write.data.eq(self.byte),
            write.en.eq(self.strobe & (self.free != 0)),
            read.addr.eq(begin),
        ]
        with m.If(self.accept):
            m.d.sync += end.eq(end + self.length)
        self.elaborate_words(m, read, begin, waiting=begin != end)
        return m

    def elaborate_words(self, m, read, begin, *, waiting):
        """Put the bytes of the ring together to words, the lowest byte first."""
        size = self.settings.input_bytes
        parts = Signal(8 * size)
        asked = Signal(range(size + 1))  # bytes of the word that were read
        coming = Signal()  # the memory shows one that is not in the word yet
        ask = Signal()
        m.d.comb += [
            ask.eq(waiting & ((asked != size) | (self.o.valid & self.o.ready))),
            self.o.payload.eq(parts),
            self.o.valid.eq((asked == size) & ~coming),
        ]
        m.d.sync += coming.eq(ask)
        with m.If(coming):
            m.d.sync += parts.eq(Cat(parts, read.data)[8:])
        with m.If(ask):
            m.d.sync += begin.eq(begin + 1)
        with m.If(self.o.valid & self.o.ready):
            m.d.sync += asked.eq(ask)
        with m.Elif(ask):
            m.d.sync += asked.eq(asked + 1)

# SPDX-License-Identifier: Apache-2.0
"""Stores the words of frames as they arrive, and gives them out in the order of the frames."""

from amaranth import *
from amaranth.lib import memory, stream, wiring
from amaranth.lib.wiring import In, Out

from .settings import SLOT_BYTES

__all__ = ["WordReceiver"]


class WordReceiver(wiring.Component):
    """Slots of frames, which are read in the order of their numbers.

    Payload and CRC of frame n are written to slot ``n % receive_slots`` while it arrives. Nobody
    reads the slot before the frame was accepted, so a frame that turns out to be damaged has
    changed nothing.

    Reset forgets all words.

    Latency: ``word_bytes + 1`` cycles from ``expected`` to the first word of the frame before it.
    Throughput: 1 byte written per cycle, 1 word per ``word_bytes + 1`` cycles, and 1 cycle more per
    frame.

    Parameters
    ----------
    settings : LinkSettings
        What can be chosen.

    Members
    -------
    byte, index : In(8)
        Byte of a payload or CRC, and its place.
    sequence : In(8)
        Number of its frame.
    strobe : In(1)
        It belongs to a frame of words that has not come yet, and for which there is room.
    accept : In(1)
        The frame is correct.
    length : In(8)
        Bytes of its payload.
    expected : In(8)
        The first frame that has not been accepted.
    front : Out(8)
        Number of the oldest frame of which not all words have left.
    o : Out(stream.Signature(input_bits))
        Words.
    """

    def __init__(self, settings):
        self.settings = settings
        self.latency = settings.input_bytes + 1
        super().__init__(
            {
                "byte": In(8),
                "index": In(8),
                "sequence": In(8),
                "strobe": In(1),
                "accept": In(1),
                "length": In(8),
                "expected": In(8),
                "front": Out(8),
                "o": Out(stream.Signature(settings.input_bits)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        slots = self.settings.receive_slots
        bits = (slots - 1).bit_length()
        m.submodules.rows = rows = memory.Memory(shape=8, depth=slots * SLOT_BYTES, init=[])
        m.submodules.lengths = lengths = memory.Memory(shape=8, depth=slots, init=[])
        write, read = rows.write_port(), rows.read_port()
        note, known = lengths.write_port(), lengths.read_port(domain="comb")
        place = Signal(8)  # of the byte that is read next
        ask = Signal()
        present, all_read = Signal(), Signal()
        m.d.comb += [
            write.addr.eq(Cat(self.index, self.sequence[:bits])),
            write.data.eq(self.byte),
            write.en.eq(self.strobe),
            note.addr.eq(self.sequence[:bits]),
            note.data.eq(self.length),
            note.en.eq(self.accept),
            known.addr.eq(self.front[:bits]),
            read.addr.eq(Cat(place, self.front[:bits])),
            present.eq(self.front != self.expected),
            all_read.eq(place == known.data),
        ]
        with m.If(ask):
            m.d.sync += place.eq(place + 1)
        with m.If(present & all_read):
            m.d.sync += [place.eq(0), self.front.eq(self.front + 1)]
        self.elaborate_words(m, read, ask, waiting=present & ~all_read)
        return m

    def elaborate_words(self, m, read, ask, *, waiting):
        """Put the bytes of frames together to words, the lowest byte first."""
        size = self.settings.input_bytes
        parts = Signal(8 * size)
        asked = Signal(range(size + 1))  # bytes of the word that were read
        coming = Signal()  # the memory shows one that is not in the word yet
        m.d.comb += [
            ask.eq(waiting & ((asked != size) | (self.o.valid & self.o.ready))),
            self.o.payload.eq(parts),
            self.o.valid.eq((asked == size) & ~coming),
        ]
        m.d.sync += coming.eq(ask)
        with m.If(coming):
            m.d.sync += parts.eq(Cat(parts, read.data)[8:])
        with m.If(self.o.valid & self.o.ready):
            m.d.sync += asked.eq(ask)
        with m.Elif(ask):
            m.d.sync += asked.eq(asked + 1)

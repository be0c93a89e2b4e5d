# SPDX-License-Identifier: Apache-2.0
"""Words that arrive over a link, and what is asked for again."""

from amaranth import *
from amaranth.lib import memory, stream, wiring
from amaranth.lib.wiring import In, Out

from hdl.registers.bus import RegisterBus

from .settings import SLOT_BYTES, Kind

__all__ = ["Arrivals", "Requests", "WordReceiver"]


#: Frames that are taken without an acknowledgement while the line is busy.
UNACKNOWLEDGED = 2


class Arrivals(wiring.Component):
    """Take every frame once, in any order, and decide when to acknowledge.

    Frame n belongs into slot ``n % slots``. The slots from ``front`` on are free, but for those of
    the frames from ``front`` up to ``expected``, and of the frames that came early.

    An acknowledgement is sent behind two frames, and before any other frame when something is
    missing: when a frame comes and the one before it has not, or when something is no frame.

    Latency: 1 cycle from an event to what follows from it, and as many more as ``expected`` moves
    on; ``accept`` comes in the same cycle. Throughput: 1 event per cycle.

    Parameters
    ----------
    slots : int
        Frames that there is room for, a power of two.
    heartbeat_cycles : int
        Cycles without an acknowledgement after which one is sent.

    Members
    -------
    begun, arrived : In(1)
        The first byte behind the number of a frame of words comes; the frame has come.
    sequence : In(8)
        Its number, from ``begun`` to ``arrived``.
    garbled : In(1)
        Something has come that is no frame.
    front : In(8)
        Number of the oldest frame of which not all words have left.
    nudge : In(1)
        An acknowledgement is due for another reason.
    told : In(1)
        An acknowledgement is made of ``expected``, ``limit``, ``early`` and ``suspect``.
    fits : Out(1)
        There is room for frame ``sequence``, and was since it began, and it has not come yet.
    accept : Out(1)
        The frame that has come is taken.
    expected, limit : Out(8)
        Number of the frame that is expected, and of the first one that there is no room for.
    early : Out(slots - 1)
        Bit n: frame ``expected + 1 + n`` has come.
    suspect : Out(1)
        Something was no frame since the last acknowledgement.
    urgent, due : Out(1)
        An acknowledgement must be sent next; it must be sent when the line is idle.
    """

    def __init__(self, *, slots, heartbeat_cycles):
        self.slots = slots
        self.heartbeat_cycles = heartbeat_cycles
        super().__init__(
            {
                "begun": In(1),
                "arrived": In(1),
                "sequence": In(8),
                "garbled": In(1),
                "front": In(8),
                "nudge": In(1),
                "told": In(1),
                "fits": Out(1),
                "accept": Out(1),
                "expected": Out(8),
                "limit": Out(8),
                "early": Out(slots - 1),
                "suspect": Out(1),
                "urgent": Out(1),
                "due": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        bits = (self.slots - 1).bit_length()
        here = Signal(self.slots)  # by slot: a frame from ``expected`` on has come
        slot, first = self.sequence[:bits], self.expected[:bits]
        before = (slot - 1)[:bits]
        ahead, room = Signal(8), Signal(8)
        fitted = Signal()  # there was room when the frame began, so all its bytes were stored
        moving = here.bit_select(first, 1)
        m.d.comb += [
            ahead.eq(self.sequence - self.expected),
            self.limit.eq(self.front + self.slots),
            room.eq(self.limit - self.expected),
            self.fits.eq((ahead < room) & ~here.bit_select(slot, 1) & (self.begun | fitted)),
            self.accept.eq(self.arrived & self.fits),
            self.early.eq((Cat(here, here) >> first)[1 : self.slots]),
        ]
        with m.If(self.begun):
            m.d.sync += fitted.eq(self.fits)
        with m.If(moving):
            m.d.sync += [self.expected.eq(self.expected + 1), here.bit_select(first, 1).eq(0)]
        with m.If(self.accept):
            m.d.sync += here.bit_select(slot, 1).eq(1)
        gap = self.accept & (ahead != 0) & ~here.bit_select(before, 1)
        self.elaborate_acknowledgement(m, gap, settled=~moving)
        return m

    def elaborate_acknowledgement(self, m, gap, *, settled):
        """Decide when the other side must be told, of numbers that have ``settled``."""
        owed = Signal(range(UNACKNOWLEDGED + 1))
        news, beat = Signal(), Signal()
        expected, limit = Signal(8), Signal(8)  # what the other side was told
        timer = Signal(range(self.heartbeat_cycles + 1))
        differs = (expected != self.expected) | (limit != self.limit)
        m.d.comb += [
            beat.eq(timer == self.heartbeat_cycles),
            self.urgent.eq(settled & (beat | (owed == UNACKNOWLEDGED))),
            self.due.eq(settled & (news | differs)),
        ]
        with m.If(self.told):
            m.d.sync += [
                expected.eq(self.expected),
                limit.eq(self.limit),
                self.suspect.eq(0),
                owed.eq(0),
                news.eq(0),
                timer.eq(0),
            ]
        with m.Elif(~beat):
            m.d.sync += timer.eq(timer + 1)
        with m.If(self.garbled):
            m.d.sync += self.suspect.eq(1)
        with m.If(self.garbled | gap):
            m.d.sync += owed.eq(UNACKNOWLEDGED)
        with m.Elif(self.arrived):
            m.d.sync += owed.eq(Mux(self.told, 1, Mux(owed == UNACKNOWLEDGED, owed, owed + 1)))
        with m.If(self.arrived | self.nudge):
            m.d.sync += news.eq(1)


class WordReceiver(wiring.Component):
    """Reorder buffer: slots of frames, which are read in the order of their numbers.

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


class Requests(wiring.Component):
    """Register requests of a link: execute each number once, and answer the last one again.

    A request that comes while one is executed is dropped; the host sends it again.

    Latency: 1 cycle from ``arrived`` to the request on the bus. Throughput: 1 request at a time.

    A session that begins while a request is executed does not withdraw the request, but gets no
    answer to it.

    Members
    -------
    begin : In(1)
        A session begins, whose requests are numbered from zero.
    arrived : In(1)
        A frame has come.
    kind, number, length : In(8)
        Its kind, number, and bytes of its payload.
    fields : In(64)
        The first eight bytes of its payload.
    registers : Out(RegisterBus())
    respond : Out(1)
        An answer is due.
    responded : In(1)
        It has been made.
    last : Out(8)
        Number of the last request.
    refused : Out(1)
    answer : Out(32)
        Answer to it.
    """

    def __init__(self):
        super().__init__(
            {
                "begin": In(1),
                "arrived": In(1),
                "kind": In(8),
                "number": In(8),
                "length": In(8),
                "fields": In(64),
                "registers": Out(RegisterBus()),
                "respond": Out(1),
                "responded": In(1),
                "last": Out(8, init=0xFF),
                "refused": Out(1),
                "answer": Out(32),
            }
        )

    def elaborate(self, platform):
        m = Module()
        bus = self.registers
        busy, some = Signal(), Signal()  # a request is executed; one of this session has been
        mine = Signal()  # the one that is executed is of this session
        is_read = (self.kind == Kind.READ.value) & (self.length == 2)
        is_write = (self.kind == Kind.WRITE.value) & (self.length == 7)
        asked = self.arrived & (is_read | is_write) & ~busy
        with m.If(self.responded):
            m.d.sync += self.respond.eq(0)
        with m.If(asked & (self.number == (self.last + 1)[:8])):
            m.d.sync += [
                busy.eq(1),
                mine.eq(1),
                some.eq(1),
                self.last.eq(self.number),
                self.respond.eq(0),
                bus.read.eq(is_read),
                bus.write.eq(is_write),
                bus.address.eq(self.fields[: len(bus.address)]),
                bus.data.eq(self.fields[16:48]),
                bus.strobe.eq(self.fields[48:52]),
            ]
        with m.Elif(asked & (self.number == self.last) & some):
            m.d.sync += self.respond.eq(1)
        with m.If(busy & bus.done):
            m.d.sync += [
                busy.eq(0),
                bus.read.eq(0),
                bus.write.eq(0),
                self.refused.eq(bus.refused),
                self.answer.eq(Mux(bus.read & ~bus.refused, bus.answer, 0)),
                self.respond.eq(mine),
            ]
        with m.If(self.begin):
            m.d.sync += [self.last.eq(self.last.init), some.eq(0), mine.eq(0), self.respond.eq(0)]
        return m

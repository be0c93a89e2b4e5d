# SPDX-License-Identifier: Apache-2.0
"""Words that are sent over a link, and kept until they have arrived."""

from amaranth import *
from amaranth.lib import memory, stream, wiring
from amaranth.lib.wiring import In, Out

from .frames import FrameLength, FrameWriter
from .settings import SLOT_BYTES, VERSION, Kind

__all__ = ["ControlSender", "ReplayWindow", "SlotReader", "WordSender"]


class ReplayWindow(wiring.Component):
    """Retransmission window: which frames are stored, sent and acknowledged, modulo 256.

    The frames from ``base`` on, up to but without ``head``, are stored. ``cursor`` is the first one
    that was never sent. A frame is lost, and is sent again, if the other side has a frame that was
    sent later. The other side is known to lack something if it has frames beyond ``base``, or if
    something came to it that was no frame; then the oldest frame is sent once more if nothing else
    can be sent.

    Latency: 1 cycle from an event to the numbers. Throughput: 1 event of each kind per cycle.

    Parameters
    ----------
    slots : int
        Frames that are stored, a power of two.
    timeout_cycles : int
        Cycles without progress after which all frames that the other side lacks are sent again.
    payload_bytes : int
        Most bytes of words in a frame.

    Members
    -------
    sealed : In(1)
        Frame ``head`` is complete.
    started : In(1)
        Frame ``number`` goes to the line; only while ``sendable``.
    acknowledged, garbled : In(1)
        The other side expects frame ``expected``, has no room from frame ``limit`` on, and has the
        ``early`` frames; whether something came to it that was no frame.
    expected, limit : In(8)
    early : In(slots - 1)
        Bit n: the other side has frame ``expected + 1 + n``.
    repeat : In(1)
        Send all frames again that the other side is not known to have.
    head, number : Out(8)
    full : Out(1)
        All slots are in use.
    sendable : Out(1)
        Frame ``number`` is stored, the other side has room for it, and it should be sent.
    allowed : Out(8)
        Most bytes of words that a new frame should hold.
    repeated, expired : Out(1)
        The frame that starts was sent before; the timeout has passed.
    """

    def __init__(self, *, slots, timeout_cycles, payload_bytes):
        self.slots = slots
        self.timeout_cycles = timeout_cycles
        self._length = FrameLength(slots=slots, payload_bytes=payload_bytes)
        super().__init__(
            {
                "sealed": In(1),
                "started": In(1),
                "acknowledged": In(1),
                "garbled": In(1),
                "expected": In(8),
                "limit": In(8),
                "early": In(slots - 1),
                "repeat": In(1),
                "head": Out(8),
                "number": Out(8),
                "full": Out(1),
                "sendable": Out(1),
                "allowed": Out(8),
                "repeated": Out(1),
                "expired": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.length = length = self._length
        base, end, cursor = Signal(8), Signal(8), Signal(8)  # ``end``: the first without room
        # Bit n of a set of frames stands for frame ``base + n``.
        have, lost, repeats = Signal(self.slots), Signal(self.slots), Signal(self.slots)
        spare = Signal()  # the oldest frame may be sent once more
        mark = Signal(8)  # the first frame that was sent after all ``repeats``
        used, gone, outstanding = Signal(8), Signal(8), Signal(8)
        known, is_new = Signal(), Signal()
        lowest, offset = Signal(self.slots), Signal(8)
        m.d.comb += [
            used.eq(self.head - base),
            outstanding.eq(cursor - base),
            self.full.eq(used >= self.slots),
            gone.eq(self.expected - base),
            known.eq(self.acknowledged & (gone <= outstanding)),
            is_new.eq((cursor != self.head) & (cursor != end) & ~lost.any()),
            lowest.eq(Mux(lost.any(), lost & -lost, 1)),
            offset.eq(first_bit(m, lowest)),
            self.number.eq(Mux(is_new, cursor, base + offset)),
            self.sendable.eq(lost.any() | is_new | (spare & (outstanding != 0))),
            self.repeated.eq(self.started & ~is_new),
        ]
        # What the sets are behind the frame that starts.
        sent, pending, passing = Signal(8), Signal(self.slots), Signal(self.slots)
        again = lowest & self.repeated.replicate(self.slots)
        m.d.comb += [
            sent.eq(cursor + (self.started & is_new)),
            pending.eq(lost & ~again),
            passing.eq(repeats | again),
        ]
        m.d.sync += [
            self.head.eq(self.head + self.sealed),
            cursor.eq(sent),
            lost.eq(pending),
            repeats.eq(passing),
        ]
        with m.If(self.repeated):
            m.d.sync += [mark.eq(cursor), spare.eq(spare & lost.any())]
        back = Signal()
        with m.If(known):
            room = (self.limit - self.expected)[:8]
            further = (self.limit - end)[:8]
            with m.If(~room[7] & ~further[7]):
                m.d.sync += end.eq(self.limit)
            since = (Mux(self.repeated, cursor, mark) - self.expected)[:8]
            found, now_passing = self.elaborate_losses(m, passing >> gone, since)
            m.d.sync += [
                base.eq(self.expected),
                have.eq(Cat(0, self.early)),
                lost.eq(((pending >> gone) | found) & ~Cat(0, self.early)),
                repeats.eq(now_passing),
                spare.eq(self.garbled | self.early.any()),
            ]
            m.d.comb += back.eq((found & ~(pending >> gone)).any())
        with m.If(self.repeat | self.expired):
            m.d.comb += back.eq(outstanding != 0)
            left = Mux(known, sent - self.expected, sent - base)[:8]
            those = Mux(known, Cat(0, self.early), have)
            m.d.sync += lost.eq(Cat(n < left for n in range(self.slots)) & ~those)
        progress = known & (gone != 0)
        m.d.comb += [
            length.progress.eq(progress),
            length.gone.eq(gone),
            length.back.eq(back),
            self.allowed.eq(length.allowed),
        ]
        self.elaborate_timer(m, progress | self.repeat | self.expired, outstanding != 0)
        return m

    def elaborate_losses(self, m, passing, since):
        """Return the frames that are lost, and those sent again that may be on their way.

        Parameters
        ----------
        passing : Value
            The frames that were sent again, from the expected one on.
        since : Value, 8 bits
            Distance from the expected frame to the first one that was sent after all of them.
        """
        have = Cat(0, self.early)
        below = Cat(have[n + 1 :].any() for n in range(self.slots - 1))
        evidence, still = Signal(), Signal(self.slots)
        m.d.comb += evidence.eq(since[7] | (have >> since).any())
        m.d.comb += still.eq(Mux(evidence, 0, passing))
        return below & ~have & ~still, still

    def elaborate_timer(self, m, restart, outstanding):
        """Count the cycles since a frame is outstanding and nothing was acknowledged."""
        timer = Signal(range(self.timeout_cycles))
        m.d.comb += self.expired.eq(outstanding & (timer == self.timeout_cycles - 1))
        with m.If(restart | ~outstanding):
            m.d.sync += timer.eq(0)
        with m.Else():
            m.d.sync += timer.eq(timer + 1)


def first_bit(m, one):
    """Return the place of the only bit that is set."""
    place = Signal(range(len(one)))
    m.d.comb += place.eq(Cat(
        Cat(one[n] for n in range(len(one)) if n >> bit & 1).any() for bit in range(len(place))
    ))  # fmt: skip
    return place


class SlotReader(wiring.Component):
    """Send the bytes of a slot of 256 bytes, from the first one to the first zero.

    Latency: 2 cycles from ``start`` to the first byte. Throughput: 1 byte per cycle.

    Parameters
    ----------
    slots : int
        Number of slots of the memory, a power of two.

    Members
    -------
    start : In(1)
        Begin with ``slot``; only while not ``busy``.
    slot : In(range(slots))
    busy : Out(1)
        A frame is being sent.
    reading : Out(range(slots))
        Slot that is being sent, while ``busy``.
    address : Out(range(slots * 256))
        To the read port of the memory, whose data come in the next cycle.
    data : In(8)
    o : Out(stream.Signature(8))
        Bytes of the frame, with the zero.
    """

    def __init__(self, *, slots):
        self.slots = slots
        self.latency = 2
        super().__init__(
            {
                "start": In(1),
                "slot": In(range(slots)),
                "busy": Out(1),
                "reading": Out(range(slots)),
                "address": Out(range(slots * 256)),
                "data": In(8),
                "o": Out(stream.Signature(8)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        place, following = Signal(8), Signal(8)
        read = Signal()  # the memory shows the byte at ``place``
        taken = self.o.valid & self.o.ready
        m.d.comb += [
            self.o.valid.eq(read),
            self.o.payload.eq(self.data),
            following.eq(place + taken),
            self.address.eq(Cat(following, self.reading)),
        ]
        m.d.sync += [place.eq(following), read.eq(self.busy)]
        with m.If(self.start):
            m.d.sync += [self.busy.eq(1), self.reading.eq(self.slot), place.eq(0)]
        with m.If(taken & (self.data == 0)):
            m.d.sync += [self.busy.eq(0), read.eq(0)]
        return m


#: Bytes of the longest frame, stuffed, rounded up to a power of two.
DEPTH = 64


class ControlSender(wiring.Component):
    """Make one frame at a time, and send it when the line is free.

    Of several frames that are due, a greeting comes first, then an acknowledgement, then an answer.

    Latency: ``bytes + 11`` cycles from a frame that is due to its first byte. Throughput: one frame
    after the other.

    Parameters
    ----------
    settings : LinkSettings
        What can be chosen.

    Members
    -------
    session : In(32)
    welcome, acknowledge, respond : In(1)
        A frame of this kind is due.
    expected, limit : In(8)
    early : In(receive_slots - 1)
    suspect : In(1)
        See :class:`hdl.link.receiving.Arrivals`.
    number : In(8)
    refused : In(1)
    answer : In(32)
        See :class:`hdl.link.receiving.Requests`.
    welcomed, told, responded : Out(1)
        A frame of this kind has been made of what is there in this cycle.
    sendable : Out(1)
        A frame can be started.
    start : In(1)
        Start it.
    o : Out(stream.Signature(8))
        Bytes of the frame that was started, up to its zero.
    """

    def __init__(self, settings):
        self.settings = settings
        super().__init__(
            {
                "session": In(32),
                "welcome": In(1),
                "acknowledge": In(1),
                "respond": In(1),
                "expected": In(8),
                "limit": In(8),
                "early": In(settings.receive_slots - 1),
                "suspect": In(1),
                "number": In(8),
                "refused": In(1),
                "answer": In(32),
                "welcomed": Out(1),
                "told": Out(1),
                "responded": Out(1),
                "sendable": Out(1),
                "start": In(1),
                "o": Out(stream.Signature(8)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.writer = writer = FrameWriter()
        m.submodules.reader = reader = SlotReader(slots=1)
        m.submodules.rows = rows = memory.Memory(shape=8, depth=DEPTH, init=[])
        write, read = rows.write_port(), rows.read_port()
        wiring.connect(m, reader.o, wiring.flipped(self.o))
        m.d.comb += [
            write.addr.eq(writer.place),
            write.data.eq(writer.data),
            write.en.eq(writer.write),
            read.addr.eq(reader.address),
            reader.data.eq(read.data),
            reader.start.eq(self.start),
        ]
        small = Signal(8 * 7)  # an acknowledgement or answer
        greeting = Signal()
        at, last = Signal(range(DEPTH)), Signal(range(DEPTH))
        welcome = self.greeting_bytes()
        content = Mux(greeting, welcome.word_select(at, 8), small.word_select(at[:3], 8))
        m.d.comb += [writer.i.payload.eq(content), writer.seed.eq(Mux(greeting, 0, self.session))]
        with m.FSM():
            with m.State("IDLE"):
                m.d.sync += [at.eq(0), greeting.eq(self.welcome)]
                with m.If(self.welcome):
                    m.d.comb += self.welcomed.eq(1)
                    m.d.sync += last.eq(len(welcome) // 8 - 1)
                    m.next = "CONTENT"
                with m.Elif(self.acknowledge):
                    m.d.comb += self.told.eq(1)
                    kind = Mux(self.suspect, C(Kind.NAK.value, 8), C(Kind.ACK.value, 8))
                    m.d.sync += small.eq(Cat(kind, self.expected, self.limit, self.early))
                    m.d.sync += last.eq(2)
                    for n in range(0, len(self.early), 8):  # without the bytes that are zero
                        with m.If(self.early[n:].any()):
                            m.d.sync += last.eq(3 + n // 8)
                    m.next = "CONTENT"
                with m.Elif(self.respond):
                    m.d.comb += self.responded.eq(1)
                    head = Cat(C(Kind.ANSWER.value, 8), self.number, self.refused, C(0, 7))
                    m.d.sync += [small.eq(Cat(head, self.answer)), last.eq(6)]
                    m.next = "CONTENT"
            with m.State("CONTENT"):
                m.d.comb += writer.i.valid.eq(1)
                m.d.sync += at.eq(at + 1)
                with m.If(at == last):
                    m.next = "END"
            with m.State("END"):
                m.d.comb += writer.finish.eq(1)
                with m.If(writer.done):
                    m.next = "MADE"
            with m.State("MADE"):
                m.d.comb += self.sendable.eq(1)
                with m.If(self.start):
                    m.next = "SENT"
            with m.State("SENT"):
                with m.If(~reader.busy):
                    m.next = "IDLE"
        return m

    def greeting_bytes(self):
        """Return WELCOME without its CRC, as one value, the first byte lowest."""
        settings = self.settings
        sizes = [
            settings.input_bytes,
            settings.result_bytes,
            settings.payload_bytes,
            settings.receive_slots,
            settings.send_slots,
            *settings.hash,
        ]
        fixed = Cat(C(size, 8) for size in sizes)
        return Cat(C(Kind.WELCOME.value, 8), C(VERSION, 8), self.session, fixed)


class WordSender(wiring.Component):
    """Selective-repeat sender: words in frames, and frames again until the other side has them.

    A frame ends when it is as long as it may be, or when no word waits and the line is idle. So a
    lone word leaves at once, and words that come while the line is busy share a frame.

    Reset forgets all words; a session begins with it.

    Latency: ``word_bytes + 13`` cycles from a lone word to its first byte. Throughput: 1 byte per
    cycle; a frame takes 10 cycles besides its words.

    Parameters
    ----------
    settings : LinkSettings
        What can be chosen.

    Members
    -------
    i : In(stream.Signature(result_bits))
        Words.
    session : In(32)
    idle : In(1)
        Nothing is being sent.
    acknowledged, garbled : In(1)
    expected, limit : In(8)
    early : In(send_slots - 1)
    repeat : In(1)
        See :class:`hdl.link.sending.ReplayWindow`.
    sendable : Out(1)
        A frame can be started.
    start : In(1)
        Start it.
    o : Out(stream.Signature(8))
        Bytes of the frame that was started, up to its zero.
    started, repeated, expired : Out(1)
        A frame starts; it was sent before; the timeout has passed.
    """

    def __init__(self, settings):
        self.settings = settings
        self.latency = settings.result_bytes + 13
        self.window = ReplayWindow(
            slots=settings.send_slots,
            timeout_cycles=settings.timeout_cycles,
            payload_bytes=settings.payload_bytes,
        )
        super().__init__(
            {
                "i": In(stream.Signature(settings.result_bits)),
                "session": In(32),
                "idle": In(1),
                "acknowledged": In(1),
                "garbled": In(1),
                "expected": In(8),
                "limit": In(8),
                "early": In(settings.send_slots - 1),
                "repeat": In(1),
                "sendable": Out(1),
                "start": In(1),
                "o": Out(stream.Signature(8)),
                "started": Out(1),
                "repeated": Out(1),
                "expired": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        slots = self.settings.send_slots
        m.submodules.window = window = self.window
        m.submodules.writer = writer = FrameWriter()
        m.submodules.reader = reader = SlotReader(slots=slots)
        m.submodules.rows = rows = memory.Memory(shape=8, depth=slots * SLOT_BYTES, init=[])
        write, read = rows.write_port(), rows.read_port()
        slot = window.head[: len(reader.slot)]
        wiring.connect(m, reader.o, wiring.flipped(self.o))
        m.d.comb += [
            write.addr.eq(Cat(writer.place, slot)),
            write.data.eq(writer.data),
            write.en.eq(writer.write),
            read.addr.eq(reader.address),
            reader.data.eq(read.data),
            reader.start.eq(self.start),
            reader.slot.eq(window.number[: len(reader.slot)]),
            window.started.eq(self.start),
            window.sealed.eq(writer.done),
            window.repeat.eq(self.repeat),
            writer.seed.eq(self.session),
            self.sendable.eq(window.sendable & ~reader.busy),
            self.started.eq(window.started),
            self.repeated.eq(window.repeated),
            self.expired.eq(window.expired),
        ]
        for name in ("acknowledged", "garbled", "expected", "limit", "early"):
            m.d.comb += getattr(window, name).eq(getattr(self, name))
        # A frame that is acknowledged while it is sent again keeps its slot until it is sent.
        busy = reader.busy & (reader.reading == slot)
        self.elaborate_frames(m, writer, window, free=~window.full & ~busy)
        return m

    def elaborate_frames(self, m, writer, window, *, free):
        """Write a header, then words while there are some and the frame may grow."""
        size, most = self.settings.result_bytes, self.settings.payload_bytes
        at = Signal(range(size))  # byte of the word
        filled = Signal(range(most + size + 1))  # bytes of words in the frame
        parts = Cat(self.i.payload, C(0, 8 * size - len(self.i.payload)))
        last = at == size - 1
        grown = filled + size
        fits = (grown <= window.allowed) | (filled == 0)
        alone = self.idle & ~window.sendable
        with m.FSM():
            with m.State("KIND"):
                m.d.comb += [writer.i.payload.eq(Kind.DATA), writer.i.valid.eq(self.i.valid & free)]
                m.d.sync += [at.eq(0), filled.eq(0)]
                with m.If(writer.i.valid & writer.i.ready):
                    m.next = "NUMBER"
            with m.State("NUMBER"):
                m.d.comb += [writer.i.payload.eq(window.head), writer.i.valid.eq(1)]
                with m.If(writer.i.ready):
                    m.next = "WORDS"
            with m.State("WORDS"):
                more = (at != 0) | fits
                m.d.comb += [
                    writer.i.payload.eq(parts.word_select(at, 8)),
                    writer.i.valid.eq(self.i.valid & more),
                    self.i.ready.eq(last & more & writer.i.ready),
                ]
                with m.If(writer.i.valid & writer.i.ready):
                    m.d.sync += at.eq(Mux(last, 0, at + 1))
                    with m.If(last):
                        m.d.sync += filled.eq(grown)
                with m.If((at == 0) & (filled != 0) & (~fits | (~self.i.valid & alone))):
                    m.next = "END"
            with m.State("END"):
                m.d.comb += writer.finish.eq(1)
                with m.If(writer.done):
                    m.next = "KIND"

# SPDX-License-Identifier: Apache-2.0
"""Makes frames of words, stores them, and sends them until they are acknowledged."""

from amaranth import *
from amaranth.lib import memory, stream, wiring
from amaranth.lib.wiring import In, Out

from .frame_writer import FrameWriter
from .replay_window import ReplayWindow
from .settings import SLOT_BYTES, Kind
from .slot_reader import SlotReader

__all__ = ["WordSender"]


class WordSender(wiring.Component):
    """Send words in frames, and frames again until the other side has them.

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
        See :class:`hdl.link.replay_window.ReplayWindow`.
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

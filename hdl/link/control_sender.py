# SPDX-License-Identifier: Apache-2.0
"""Sends the frames that are no words: greetings, acknowledgements, answers."""

from amaranth import *
from amaranth.lib import memory, stream, wiring
from amaranth.lib.wiring import In, Out

from .frame_writer import FrameWriter
from .settings import VERSION, Kind
from .slot_reader import SlotReader

__all__ = ["ControlSender"]

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
        See :class:`hdl.link.arrivals.Arrivals`.
    number : In(8)
    refused : In(1)
    answer : In(32)
        See :class:`hdl.link.requests.Requests`.
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

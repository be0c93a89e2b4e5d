# SPDX-License-Identifier: Apache-2.0
"""The board's end of a byte link, and its sessions."""

from amaranth import *
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hdl.registers.bus import RegisterBus

from .frames import FrameReceiver
from .receiving import Arrivals, Requests, WordReceiver
from .sending import ControlSender, WordSender
from .settings import Kind

__all__ = ["COUNTER_NAMES", "BoardEndpoint", "Sessions"]


class Sessions(wiring.Component):
    """Begin or resume a session when the host greets.

    Latency: 1 cycle from ``arrived`` to the session; ``begin`` and ``resume`` come in the same
    cycle. Throughput: 1 greeting per cycle.

    Members
    -------
    arrived : In(1)
        A frame has come.
    kind, length : In(8)
        Its kind, and bytes of its payload.
    fields : In(64)
        The first eight bytes of its payload.
    welcomed : In(1)
        The greeting has been answered.
    session : Out(32)
        Number of the session; zero if none has begun.
    open : Out(1)
        A session has begun.
    begin, resume : Out(1)
        A session begins in this cycle, or the host resumes the one that there is.
    welcome : Out(1)
        A greeting must be answered.
    """

    def __init__(self):
        super().__init__(
            {
                "arrived": In(1),
                "kind": In(8),
                "length": In(8),
                "fields": In(64),
                "welcomed": In(1),
                "session": Out(32),
                "open": Out(1),
                "begin": Out(1),
                "resume": Out(1),
                "welcome": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        wanted = self.fields[:32]
        hello = Signal()
        m.d.comb += [
            hello.eq(self.arrived & (self.kind == Kind.HELLO.value) & (self.length == 5)),
            self.resume.eq(hello & self.open & (wanted == self.session)),
            self.begin.eq(hello & ~self.resume & self.fields[32] & (wanted != 0)),
        ]
        with m.If(self.welcomed):
            m.d.sync += self.welcome.eq(0)
        with m.If(hello & (wanted != 0)):
            m.d.sync += self.welcome.eq(1)
        with m.If(self.begin):
            m.d.sync += [self.session.eq(wanted), self.open.eq(1)]
        return m


#: What is counted, modulo 2**32, from reset on.
COUNTER_NAMES = (
    "frames_in",  # frames of words taken
    "frames_out",  # frames of words sent
    "repeated",  # frames of words among them that were sent before
    "timeouts",  # times that the timeout has passed
    "garbled",  # pieces of the byte stream that were no frame
    "dropped",  # frames of words that came again or found no room
    "asked",  # times that the host was told that something was no frame
    "resumed",  # times that the session was resumed
)
COUNTER_BITS = 32


class BoardEndpoint(wiring.Component):
    """Exchange words with a host over a line that loses, doubles, changes and inserts bytes.

    Words come once and in order in both directions (``docs/link.md``). While no session has begun,
    no words leave, and only greetings are read. When a session begins, all words are forgotten.

    Latency: ``FrameReceiver.latency + 2 + WordReceiver.latency`` cycles from the last byte of the
    expected frame to its first word, and ``WordSender.latency`` cycles from a word to the first
    byte of its frame, when the line is idle. Throughput: 1 byte per cycle in both directions, less
    3 cycles per frame between frames that are sent.

    Parameters
    ----------
    settings : LinkSettings
        What can be chosen.

    Members
    -------
    i : In(stream.Signature(8, always_ready=True))
        Bytes from the host.
    o : Out(stream.Signature(8))
        Bytes to the host.
    results : In(stream.Signature(result_bits))
        Words to the host.
    words : Out(stream.Signature(input_bits))
        Words from the host.
    registers : Out(RegisterBus())
    begin : Out(1)
        A session begins: high for one cycle, in which words may be withdrawn.
    open : Out(1)
        A session has begun.
    counters : Out(data.StructLayout)
        What :data:`COUNTER_NAMES` lists, 32 bits each.
    """

    def __init__(self, settings):
        self.settings = settings
        layout = data.StructLayout(dict.fromkeys(COUNTER_NAMES, COUNTER_BITS))
        super().__init__(
            {
                "i": In(stream.Signature(8, always_ready=True)),
                "o": Out(stream.Signature(8)),
                "results": In(stream.Signature(settings.result_bits)),
                "words": Out(stream.Signature(settings.input_bits)),
                "registers": Out(RegisterBus()),
                "begin": Out(1),
                "open": Out(1),
                "counters": Out(layout),
            }
        )

    def elaborate(self, platform):
        m = Module()
        settings = self.settings
        frames, sessions = FrameReceiver(), Sessions()
        receiver, sender = WordReceiver(settings), WordSender(settings)
        arrivals = Arrivals(
            slots=settings.receive_slots, heartbeat_cycles=settings.heartbeat_cycles
        )
        requests, control = Requests(), ControlSender(settings)
        m.submodules.frames, m.submodules.sessions = frames, sessions
        m.submodules.control, m.submodules.requests = control, requests
        # A session begins with the reset of everything that belongs to one.
        for name, part in [
            ("receiver", receiver),
            ("sender", sender),
            ("arrivals", arrivals),
        ]:
            m.submodules[name] = ResetInserter(self.begin)(part)
        wiring.connect(m, wiring.flipped(self.i), frames.i)
        wiring.connect(m, receiver.o, wiring.flipped(self.words))
        wiring.connect(m, wiring.flipped(self.results), sender.i)
        wiring.connect(m, requests.registers, wiring.flipped(self.registers))
        with m.If(~sessions.open):
            m.d.comb += [sender.i.valid.eq(0), self.results.ready.eq(0)]
        idle = self.elaborate_line(m, control, sender)
        self.elaborate_frames(m, frames, sessions, requests)
        arrived = frames.good & sessions.open
        acknowledged = (frames.kind == Kind.ACK.value) | (frames.kind == Kind.NAK.value)
        words = frames.kind == Kind.DATA.value
        m.d.comb += [
            self.begin.eq(sessions.begin),
            self.open.eq(sessions.open),
            frames.session.eq(sessions.session),
            receiver.byte.eq(frames.byte),
            receiver.index.eq(frames.index),
            receiver.sequence.eq(frames.sequence),
            receiver.strobe.eq(frames.strobe & words & arrivals.fits),
            receiver.accept.eq(arrivals.accept),
            receiver.length.eq(frames.length),
            receiver.expected.eq(arrivals.expected),
            arrivals.begun.eq(frames.strobe & words & (frames.index == 0)),
            arrivals.arrived.eq(arrived & words),
            arrivals.sequence.eq(frames.sequence),
            arrivals.garbled.eq(frames.garbled & sessions.open),
            arrivals.front.eq(receiver.front),
            arrivals.nudge.eq(sessions.resume),
            arrivals.told.eq(control.told),
            sender.session.eq(sessions.session),
            sender.idle.eq(idle),
            sender.repeat.eq(sessions.resume),
            sender.acknowledged.eq(arrived & acknowledged & (frames.length != 0)),
            sender.garbled.eq(frames.kind == Kind.NAK.value),
            sender.expected.eq(frames.sequence),
            sender.limit.eq(requests.fields[:8]),
            sender.early.eq(early_frames(requests.fields, frames.length, len(sender.early))),
            control.session.eq(sessions.session),
            control.welcome.eq(sessions.welcome),
            sessions.welcomed.eq(control.welcomed),
            control.respond.eq(requests.respond & sessions.open),
            requests.responded.eq(control.responded),
            control.number.eq(requests.last),
            control.refused.eq(requests.refused),
            control.answer.eq(requests.answer),
            control.expected.eq(arrivals.expected),
            control.limit.eq(arrivals.limit),
            control.early.eq(arrivals.early),
            control.suspect.eq(arrivals.suspect),
            control.acknowledge.eq(
                sessions.open & (arrivals.urgent | (arrivals.due & idle & ~sender.sendable))
            ),
        ]
        self.elaborate_counters(
            m,
            frames_in=arrivals.accept,
            frames_out=sender.started,
            repeated=sender.repeated,
            timeouts=sender.expired,
            garbled=frames.garbled,
            dropped=arrivals.arrived & ~arrivals.accept,
            asked=control.told & arrivals.suspect,
            resumed=sessions.resume,
        )
        return m

    def elaborate_line(self, m, control, sender):
        """Send one frame after the other, control frames first; return whether none is sent."""
        busy, is_control = Signal(), Signal()
        cut = Signal()  # a frame was forgotten while it was sent, and only its zero is missing
        chosen = Signal(8)
        m.d.comb += [
            chosen.eq(Mux(cut, 0, Mux(is_control, control.o.payload, sender.o.payload))),
            self.o.payload.eq(chosen),
            self.o.valid.eq(busy & (cut | Mux(is_control, control.o.valid, sender.o.valid))),
            control.o.ready.eq(busy & is_control & self.o.ready),
            sender.o.ready.eq(busy & ~is_control & self.o.ready),
            control.start.eq(~busy & control.sendable),
            sender.start.eq(~busy & ~control.sendable & sender.sendable & ~self.begin),
        ]
        with m.If(control.start | sender.start):
            m.d.sync += [busy.eq(1), is_control.eq(control.start)]
        with m.If(self.o.valid & self.o.ready & (chosen == 0)):
            m.d.sync += [busy.eq(0), cut.eq(0)]
        with m.Elif(self.begin & busy & ~is_control):
            m.d.sync += cut.eq(1)
        return ~busy

    def elaborate_frames(self, m, frames, sessions, requests):
        """Keep the first bytes of the payload, and show frames to those who execute them."""
        fields = Signal(64)
        with m.If(frames.strobe & (frames.index < 8)):
            m.d.sync += fields.word_select(frames.index[:3], 8).eq(frames.byte)
        m.d.comb += [
            sessions.arrived.eq(frames.good),
            sessions.kind.eq(frames.kind),
            sessions.length.eq(frames.length),
            sessions.fields.eq(fields),
            requests.begin.eq(sessions.begin),
            requests.arrived.eq(frames.good & sessions.open),
            requests.kind.eq(frames.kind),
            requests.number.eq(frames.sequence),
            requests.length.eq(frames.length),
            requests.fields.eq(fields),
        ]

    def elaborate_counters(self, m, **events):
        """Count events."""
        for name in COUNTER_NAMES:
            m.d.sync += self.counters[name].eq(self.counters[name] + events[name])


def early_frames(fields, length, bits):
    """Return which frames an acknowledgement names as early; bytes that it lacks are zero."""
    last = -(-bits // 8)
    told = [
        fields.word_select(1 + n, 8) & (length > 1 + n).replicate(8) for n in range(last)
    ]  # fmt: skip
    return Cat(told)[:bits]

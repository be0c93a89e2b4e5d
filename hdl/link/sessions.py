# SPDX-License-Identifier: Apache-2.0
"""The session that a board is in."""

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from .settings import Kind

__all__ = ["Sessions"]


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

# SPDX-License-Identifier: Apache-2.0
"""Executes register requests of the host, each once."""

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.registers.bus import RegisterBus

from .settings import Kind

__all__ = ["Requests"]


class Requests(wiring.Component):
    """Execute a request whose number follows that of the last one, and answer the last one again.

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

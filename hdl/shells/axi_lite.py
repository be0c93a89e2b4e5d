# SPDX-License-Identifier: Apache-2.0
"""An AXI4-Lite slave in front of a register file."""

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.registers.bus import ADDRESS_BITS, DATA_BITS, RegisterBus

from .axi_signatures import OKAY, SLVERR, AxiLite

__all__ = ["AxiLiteSlave"]


class AxiLiteSlave(wiring.Component):
    """Turn AXI4-Lite transfers into accesses to registers, one after the other.

    One write and one read are held at a time. The address and the data of a write come in any
    order. When both a write and a read wait, the write is first. They take turns all the same: the
    next write is not there yet when the first one is done. What the register file refuses is
    answered with SLVERR, everything else with OKAY. The lowest two bits of an address are ignored,
    because ``wstrb`` says which bytes are written; so are ``awprot`` and ``arprot``.

    Every output comes from a register. Reset withdraws every answer and forgets every request.

    Latency: 4 cycles from a request to ``bvalid`` or ``rvalid`` with a register file that answers
    in the next cycle and no other access before. Throughput: one access per 4 cycles with that
    register file, if answers are taken at once.

    Members
    -------
    axi : In(AxiLite())
    bus : Out(RegisterBus())
    """

    def __init__(self):
        self.latency = 4
        super().__init__({"axi": In(AxiLite()), "bus": Out(RegisterBus())})

    def elaborate(self, platform):
        m = Module()
        axi, bus = self.axi, self.bus
        write_address, read_address = (Signal(ADDRESS_BITS - 2, name=f"{n}_word") for n in "wr")
        data, strobe = Signal(DATA_BITS), Signal(DATA_BITS // 8)
        addressed, filled, asked = Signal(), Signal(), Signal()  # AW, W and AR are held
        writing, reading = Signal(), Signal()  # the access that is under way
        answer, read_refused = Signal(DATA_BITS), Signal()
        write_refused, written, was_read = Signal(), Signal(), Signal()
        m.d.comb += [
            axi.awready.eq(~addressed),
            axi.wready.eq(~filled),
            axi.arready.eq(~asked),
            axi.bvalid.eq(written),
            axi.bresp.eq(Mux(write_refused, SLVERR, OKAY)),
            axi.rvalid.eq(was_read),
            axi.rresp.eq(Mux(read_refused, SLVERR, OKAY)),
            axi.rdata.eq(answer),
            bus.write.eq(writing),
            bus.read.eq(reading),
            bus.address.eq(Cat(C(0, 2), Mux(reading, read_address, write_address))),
            bus.data.eq(data),
            bus.strobe.eq(strobe),
        ]
        wrote, has_read = bus.done & writing, bus.done & reading
        may_write = addressed & filled & ~written
        may_read = asked & ~was_read
        with m.If(~addressed):
            m.d.sync += [addressed.eq(axi.awvalid), write_address.eq(axi.awaddr[2:])]
        with m.If(~filled):
            m.d.sync += [filled.eq(axi.wvalid), data.eq(axi.wdata), strobe.eq(axi.wstrb)]
        with m.If(~asked):
            m.d.sync += [asked.eq(axi.arvalid), read_address.eq(axi.araddr[2:])]
        with m.If(written & axi.bready):
            m.d.sync += written.eq(0)
        with m.If(was_read & axi.rready):
            m.d.sync += was_read.eq(0)
        with m.If(~writing & ~reading):
            m.d.sync += [
                writing.eq(may_write),
                reading.eq(may_read & ~may_write),
            ]
        with m.If(wrote):
            m.d.sync += [
                *(flag.eq(0) for flag in (writing, addressed, filled)),
                written.eq(1),
                write_refused.eq(bus.refused),
            ]
        with m.If(has_read):
            m.d.sync += [
                *(flag.eq(0) for flag in (reading, asked)),
                was_read.eq(1),
                read_refused.eq(bus.refused),
                answer.eq(bus.answer),
            ]
        return m

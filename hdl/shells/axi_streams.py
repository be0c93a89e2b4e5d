# SPDX-License-Identifier: Apache-2.0
"""AXI4-Lite and AXI4-Stream: signatures and their ends."""

from amaranth import *
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect

from hdl.families.family import is_mark
from hdl.registers.bus import ADDRESS_BITS, DATA_BITS, RegisterBus
from hdl.registers.table import word_bytes
from hdl.streams.registers import StreamRegister

__all__ = [
    "OKAY",
    "SLVERR",
    "AxiLite",
    "AxiLiteSlave",
    "AxiStream",
    "AxiStreamInput",
    "AxiStreamOutput",
    "PacketEnds",
]


#: Responses of AXI: done, and refused.
OKAY, SLVERR = 0, 2


class AxiLite(wiring.Signature):
    """AXI4-Lite with 32 bits of data, as the master sees it."""

    def __init__(self):
        super().__init__(
            {
                "awaddr": Out(ADDRESS_BITS),
                "awprot": Out(3),
                "awvalid": Out(1),
                "awready": In(1),
                "wdata": Out(DATA_BITS),
                "wstrb": Out(DATA_BITS // 8),
                "wvalid": Out(1),
                "wready": In(1),
                "bresp": In(2),
                "bvalid": In(1),
                "bready": Out(1),
                "araddr": Out(ADDRESS_BITS),
                "arprot": Out(3),
                "arvalid": Out(1),
                "arready": In(1),
                "rdata": In(DATA_BITS),
                "rresp": In(2),
                "rvalid": In(1),
                "rready": Out(1),
            }
        )


class AxiStream(wiring.Signature):
    """AXI4-Stream with data in whole bytes, as the master sees it.

    Parameters
    ----------
    size : int
        Bytes of ``tdata``.
    """

    def __init__(self, size):
        self.size = size
        super().__init__(
            {
                "tdata": Out(8 * size),
                "tkeep": Out(size),
                "tlast": Out(1),
                "tvalid": Out(1),
                "tready": In(1),
            }
        )


class AxiLiteSlave(wiring.Component):
    """AXI4-Lite subordinate: turn transfers into accesses to registers, one after the other.

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


class AxiStreamInput(wiring.Component):
    """AXI4-Stream sink: turn transfers into input words.

    A word is in the lowest bits of ``tdata``; bits above it are ignored. ``tlast`` has no meaning,
    since a word says itself what it is. All bits of ``tkeep`` must be set. A transfer with any
    other ``tkeep`` is taken and dropped, and ``dropped`` is high for one cycle.

    ``tready`` depends on registers alone, and data goes directly into a register. Reset empties
    that register. While ``open`` is low, nothing is taken at the pins.

    Latency: 1 cycle. Throughput: 1 word per cycle.

    Parameters
    ----------
    layout : data.Layout
        Layout of an input word.
    is_row : bool
        See :func:`~hdl.registers.table.word_bytes`.

    Members
    -------
    axis : In(AxiStream(word_bytes(layout.size, is_row=is_row)))
    o : Out(stream.Signature(layout))
    open : In(1)
        Words are taken. Comes from a register.
    dropped : Out(1)
    """

    def __init__(self, layout, *, is_row=False):
        self.layout = layout
        self.size = word_bytes(layout.size, is_row=is_row)
        self.latency = 1
        super().__init__(
            {
                "axis": In(AxiStream(self.size)),
                "o": Out(stream.Signature(layout)),
                "open": In(1),
                "dropped": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        shape = data.StructLayout({"word": self.layout.size, "keep": self.size})
        m.submodules.register = register = StreamRegister(shape)
        is_whole = register.o.payload.keep.all()
        m.d.comb += [
            self.axis.tready.eq(register.i.ready & self.open),
            register.i.valid.eq(self.axis.tvalid & self.open),
            register.i.payload.word.eq(self.axis.tdata),
            register.i.payload.keep.eq(self.axis.tkeep),
            Value.cast(self.o.payload).eq(register.o.payload.word),
            self.o.valid.eq(register.o.valid & is_whole),
            register.o.ready.eq(self.o.ready | ~is_whole),
            self.dropped.eq(register.o.valid & ~is_whole),
        ]
        return m


def ending(layout):
    """Return the shape of a word, as bits, with a flag that says that it ends its packet."""
    return data.StructLayout({"word": layout.size, "last": 1})


class PacketEnds(wiring.Component):
    """Hold each word until it is known whether it is the last one of its packet.

    A packet ends with a word that has ``last`` at the input, with its last possible word, and with
    a word behind which no other one has come for as many cycles as a packet has words. So a DMA
    has a buffer that no transfer exceeds, and keeps no word from its host for want of the next one.

    Latency: 1 cycle for a word that ends a packet by what it is, or that another one follows at
    once; at most ``packet + 1`` cycles. Throughput: 1 word per cycle.

    Parameters
    ----------
    layout : data.Layout
        Layout of a word.
    packet : int
        Most words of a packet, at least two.

    Members
    -------
    i : In(stream.Signature(ending(layout)))
    o : Out(stream.Signature(ending(layout)))
        A word that is offered stays, but may be withdrawn if the next word is.
    """

    def __init__(self, layout, *, packet):
        if packet < 2:
            raise ValueError(f"Packet must have at least two words, not {packet!r}")
        self.packet = packet
        self.latency = 1
        shape = ending(layout)
        super().__init__({"i": In(stream.Signature(shape)), "o": Out(stream.Signature(shape))})

    def elaborate(self, platform):
        m = Module()
        i, o = self.i, self.o
        held, full, is_last = Signal(i.payload.word.shape(), reset_less=True), Signal(), Signal()
        place = Signal(range(self.packet))  # of the held word, or the next one, in its packet
        silence = Signal(range(self.packet))  # cycles without another word that are left
        leaves, takes = Signal(), Signal()
        after = Mux(leaves, Mux(is_last, 0, place + 1), place)
        m.d.comb += [
            i.ready.eq(~full | o.ready),
            o.valid.eq(full & (is_last | i.valid)),
            o.payload.word.eq(held),
            o.payload.last.eq(is_last),
            takes.eq(i.valid & i.ready),
            leaves.eq(o.valid & o.ready),
        ]
        m.d.sync += [full.eq(takes | (full & ~leaves)), place.eq(after)]
        with m.If(takes):
            m.d.sync += [
                held.eq(i.payload.word),
                is_last.eq(i.payload.last | (after == self.packet - 1)),
                silence.eq(self.packet - 1),
            ]
        with m.Elif(~i.valid):
            m.d.sync += [silence.eq(silence - (silence != 0)), is_last.eq(is_last | (silence == 0))]
        return m


class AxiStreamOutput(wiring.Component):
    """AXI4-Stream source: turn result words into transfers.

    A word is in the lowest bits of ``tdata``; bits above it are zero. All bits of ``tkeep`` are
    set. ``tlast`` is set on a word that is a mark, so a DMA ends its transfer at an
    answer.

    With ``packet``, :class:`PacketEnds` sets ``tlast`` on more words.

    All outputs come directly from registers. Reset empties them. ``closed`` does not: a word that
    is offered at the pins stays until it is taken.

    Latency: 1 cycle, and that of :class:`PacketEnds`. Throughput: 1 word per cycle.

    Parameters
    ----------
    layout : data.Layout
        Layout of a result word, whose ``kind`` is an enumeration with MARK.
    packet : int
        Most words of a packet, at least two, or zero for all words up to a mark. With packets, a
        word has the bytes of ``is_row`` of :func:`~hdl.registers.table.word_bytes`.

    Members
    -------
    i : In(stream.Signature(layout))
    axis : Out(AxiStream(word_bytes(layout.size, is_row=packet > 0)))
    closed : In(1)
        Take nothing, whatever ``i`` shows.
    """

    def __init__(self, layout, *, packet=0):
        self.layout = layout
        self.packet = packet
        self.size = word_bytes(layout.size, is_row=packet > 0)
        self.latency = 2 if packet else 1
        super().__init__(
            {
                "i": In(stream.Signature(layout)),
                "axis": Out(AxiStream(self.size)),
                "closed": In(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.register = register = StreamRegister(
            ending(self.layout), early=("word", "last")
        )
        m.d.comb += [
            self.axis.tdata.eq(register.o.payload.word),
            self.axis.tlast.eq(register.o.payload.last),
            self.axis.tkeep.eq(~0),
            self.axis.tvalid.eq(register.o.valid),
            register.o.ready.eq(self.axis.tready),
        ]
        taken = register
        if self.packet:
            m.submodules.packets = taken = PacketEnds(self.layout, packet=self.packet)
            connect(m, taken.o, register.i)
        m.d.comb += [
            taken.i.valid.eq(self.i.valid & ~self.closed),
            self.i.ready.eq(taken.i.ready & ~self.closed),
            taken.i.payload.word.eq(Value.cast(self.i.payload)),
            taken.i.payload.last.eq(is_mark(self.i.payload)),
        ]
        return m

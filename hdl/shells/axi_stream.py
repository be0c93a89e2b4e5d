# SPDX-License-Identifier: Apache-2.0
"""AXI4-Stream on both sides of an accelerator."""

from amaranth import *
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hdl.families.family import is_mark
from hdl.registers.shell_table import word_bytes
from hdl.streams.registers import StreamRegister

from .axi_signatures import AxiStream

__all__ = ["AxiStreamInput", "AxiStreamOutput"]


class AxiStreamInput(wiring.Component):
    """Turn transfers of AXI4-Stream into input words.

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

    Members
    -------
    axis : In(AxiStream(word_bytes(layout)))
    o : Out(stream.Signature(layout))
    open : In(1)
        Words are taken. Comes from a register.
    dropped : Out(1)
    """

    def __init__(self, layout):
        self.layout = layout
        self.size = word_bytes(layout)
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


class AxiStreamOutput(wiring.Component):
    """Turn result words into transfers of AXI4-Stream.

    A word is in the lowest bits of ``tdata``; bits above it are zero. All bits of ``tkeep`` are
    set. ``tlast`` is set on a word that is a mark, so a DMA ends its transfer at an
    answer.

    All outputs come directly from registers. Reset empties them. ``closed`` does not: a word that
    is offered at the pins stays until it is taken.

    Latency: 1 cycle. Throughput: 1 word per cycle.

    Parameters
    ----------
    layout : data.Layout
        Layout of a result word, whose ``kind`` is an enumeration with MARK.

    Members
    -------
    i : In(stream.Signature(layout))
    axis : Out(AxiStream(word_bytes(layout)))
    closed : In(1)
        Take nothing, whatever ``i`` shows.
    """

    def __init__(self, layout):
        self.layout = layout
        self.size = word_bytes(layout)
        self.latency = 1
        super().__init__(
            {
                "i": In(stream.Signature(layout)),
                "axis": Out(AxiStream(self.size)),
                "closed": In(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        shape = data.StructLayout({"word": self.layout.size, "last": 1})
        m.submodules.register = register = StreamRegister(shape, early=("word", "last"))
        m.d.comb += [
            register.i.valid.eq(self.i.valid & ~self.closed),
            self.i.ready.eq(register.i.ready & ~self.closed),
            register.i.payload.word.eq(Value.cast(self.i.payload)),
            register.i.payload.last.eq(is_mark(self.i.payload)),
            self.axis.tdata.eq(register.o.payload.word),
            self.axis.tlast.eq(register.o.payload.last),
            self.axis.tkeep.eq(~0),
            self.axis.tvalid.eq(register.o.valid),
            register.o.ready.eq(self.axis.tready),
        ]
        return m

# SPDX-License-Identifier: Apache-2.0
"""Reads a frame out of a memory, up to the zero that ends it."""

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["SlotReader"]


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

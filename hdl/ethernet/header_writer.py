# SPDX-License-Identifier: Apache-2.0
"""Sends the bytes of a header one after the other."""

from amaranth import *
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from .frames import FrameByte

__all__ = ["HeaderWriter"]


class HeaderWriter(wiring.Component):
    """Send a row of bytes.

    Latency: 2 cycles from ``start`` to the first byte. Throughput: 1 byte per cycle.

    Parameters
    ----------
    count : int
        Bytes.

    Members
    -------
    start : In(1)
        Send the row; while none is sent.
    row : In(data.ArrayLayout(8, count))
        The bytes, the first one to be sent in front; held until the last one has been taken.
    o : Out(stream.Signature(FrameByte))
        ``last`` is high with the last byte.
    """

    latency = 2

    def __init__(self, count):
        self.count = count
        super().__init__(
            {
                "start": In(1),
                "row": In(data.ArrayLayout(8, count)),
                "o": Out(stream.Signature(FrameByte)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        index = Signal(range(self.count))
        busy = Signal()
        last = index == self.count - 1
        with m.If(self.o.ready | ~self.o.valid):
            m.d.sync += [
                self.o.valid.eq(busy), self.o.payload.byte.eq(self.row[index]),
                self.o.payload.last.eq(last),
            ]  # fmt: skip
            with m.If(busy):
                m.d.sync += [index.eq(index + 1), busy.eq(~last)]
        with m.If(self.start):
            m.d.sync += [index.eq(0), busy.eq(1)]
        return m

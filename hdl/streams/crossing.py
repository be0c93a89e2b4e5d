# SPDX-License-Identifier: Apache-2.0
"""A stream between two clocks."""

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.fifo import AsyncFIFO
from amaranth.lib.wiring import In, Out

__all__ = ["StreamCrossing"]


class StreamCrossing(wiring.Component):
    """Hand payloads on from one clock domain to another one.

    The clocks need not have anything to do with each other. Both domains are reset together.

    Latency: more than 2 and at most 3 cycles of ``o_domain``. Throughput: 1 payload per cycle
    of the slower clock with 16 entries.

    Parameters
    ----------
    shape : shape-like
        Shape of the payload.
    i_domain, o_domain : str
        Clock domains of the two sides.
    depth : int
        Entries, a power of two of at least 4.

    Members
    -------
    i : In(stream.Signature(shape))
        In ``i_domain``.
    o : Out(stream.Signature(shape))
        In ``o_domain``.
    """

    def __init__(self, shape, *, i_domain, o_domain, depth=16):
        if depth < 4 or depth & (depth - 1):
            raise ValueError(f"Depth of a crossing must be a power of two from 4 on, not {depth!r}")
        self.shape = shape
        self.i_domain, self.o_domain = i_domain, o_domain
        self.depth = depth
        super().__init__({"i": In(stream.Signature(shape)), "o": Out(stream.Signature(shape))})

    def elaborate(self, platform):
        m = Module()
        m.submodules.fifo = fifo = AsyncFIFO(
            width=Shape.cast(self.shape).width, depth=self.depth,
            w_domain=self.i_domain, r_domain=self.o_domain,
        )  # fmt: skip
        m.d.comb += [
            fifo.w_data.eq(Value.cast(self.i.payload)),
            fifo.w_en.eq(self.i.valid),
            self.i.ready.eq(fifo.w_rdy),
            Value.cast(self.o.payload).eq(fifo.r_data),
            self.o.valid.eq(fifo.r_rdy),
            fifo.r_en.eq(self.o.ready),
        ]
        return m

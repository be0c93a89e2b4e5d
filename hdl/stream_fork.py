# SPDX-License-Identifier: Apache-2.0
"""One stream to several consumers, each of which may take a payload at another time."""

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from .local_reset import reset_nearby

__all__ = ["StreamFork"]


class StreamFork(wiring.Component):
    """Offer every payload to all outputs, until each has taken it.

    An output that can take a payload need not wait for the others: so what it does in a cycle
    depends on no other's ``ready``. A payload is done with when the last one takes it.

    Latency: 0 cycles. Throughput: 1 payload per cycle.

    Parameters
    ----------
    shape : shape-like
        Shape of the payload.
    outputs : int
        At least one.
    pipelined : bool
        Whether reset comes through registers of its own.

    Members
    -------
    i : In(stream.Signature(shape))
    o : Out(stream.Signature(shape)).array(outputs)
    reset : In(1)
        If ``pipelined``.
    """

    def __init__(self, shape, *, outputs, pipelined):
        if outputs < 1:
            raise ValueError(f"A fork needs at least one output, not {outputs!r}")
        self.outputs = outputs
        self.pipelined = pipelined
        self.latency = 0
        super().__init__(
            {
                "i": In(stream.Signature(shape)),
                "o": Out(stream.Signature(shape)).array(outputs),
                "reset": In(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        taken = Signal(self.outputs)  # by this one already, while another one could not
        done = taken | Cat(o.ready for o in self.o)
        m.d.comb += self.i.ready.eq(done.all())
        m.d.sync += taken.eq(done & (self.i.valid & ~self.i.ready).replicate(self.outputs))
        for n, o in enumerate(self.o):
            m.d.comb += [o.payload.eq(self.i.payload), o.valid.eq(self.i.valid & ~taken[n])]
        return reset_nearby(m, platform, pipelined=self.pipelined, reset=self.reset)

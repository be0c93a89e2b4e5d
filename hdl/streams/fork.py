# SPDX-License-Identifier: Apache-2.0
"""One stream to several consumers, each of which may take a payload at another time."""

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["StreamFork"]


class StreamFork(wiring.Component):
    """Offer every payload to all outputs, until each has taken it.

    An output that can take a payload need not wait for the others: so what it does in a cycle
    depends on no other's ``ready``. A payload is done with when the last one takes it. What has
    taken it is forgotten whenever there is none, so reset is that of whatever comes before.

    Latency: 0 cycles. Throughput: 1 payload per cycle.

    Parameters
    ----------
    shape : shape-like
        Shape of the payload.
    outputs : int
        At least one.

    Members
    -------
    i : In(stream.Signature(shape))
    o : Out(stream.Signature(shape)).array(outputs)
    """

    def __init__(self, shape, *, outputs):
        if outputs < 1:
            raise ValueError(f"A fork needs at least one output, not {outputs!r}")
        self.shape = shape
        self.outputs = outputs
        self.latency = 0
        super().__init__(
            {
                "i": In(stream.Signature(shape)),
                "o": Out(stream.Signature(shape)).array(outputs),
            }
        )

    def elaborate(self, platform):
        m = Module()
        # By this one already, while another one could not.
        taken = Signal(self.outputs, reset_less=True)
        done = taken | Cat(o.ready for o in self.o)
        m.d.comb += self.i.ready.eq(done.all())
        m.d.sync += taken.eq(done & (self.i.valid & ~self.i.ready).replicate(self.outputs))
        for n, o in enumerate(self.o):
            m.d.comb += [o.payload.eq(self.i.payload), o.valid.eq(self.i.valid & ~taken[n])]
        return m

# SPDX-License-Identifier: Apache-2.0
"""A fork: one input stream, several outputs that may take a payload in different cycles."""

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["StreamFork"]


class StreamFork(wiring.Component):
    """Offer every payload to all outputs until each output has taken it.

    An output does not wait for the other outputs: its ``valid`` does not depend on their ``ready``.
    The input advances in the cycle in which the last output takes the payload.

    While ``i.valid`` is low, the fork clears its record of the outputs that have taken a payload. A
    reset of the preceding stage therefore resets the fork as well.

    Latency: 0 cycles. Throughput: 1 payload per cycle.

    Parameters
    ----------
    shape : shape-like
        Shape of the payload.
    outputs : int
        Number of outputs, at least one.

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
        # Outputs that took the current payload in an earlier cycle.
        taken = Signal(self.outputs, reset_less=True)
        done = taken | Cat(o.ready for o in self.o)
        m.d.comb += self.i.ready.eq(done.all())
        m.d.sync += taken.eq(done & (self.i.valid & ~self.i.ready).replicate(self.outputs))
        for n, o in enumerate(self.o):
            m.d.comb += [o.payload.eq(self.i.payload), o.valid.eq(self.i.valid & ~taken[n])]
        return m

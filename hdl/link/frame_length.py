# SPDX-License-Identifier: Apache-2.0
"""How long new frames are: shorter where frames get lost."""

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from .settings import LEAST, NOISY_STEP, STEP

__all__ = ["FrameLength"]


class FrameLength(wiring.Component):
    """Let new frames become longer when frames arrive, and half as long when frames are lost.

    With additive growth, frames settle near the length that carries most: long frames have less
    overhead, and short ones are less often damaged.

    Latency: 1 cycle. Throughput: 1 event per cycle.

    Parameters
    ----------
    slots : int
        Most frames that are acknowledged at once.
    payload_bytes : int
        Most bytes of words in a frame.

    Members
    -------
    progress : In(1)
        Frames are acknowledged, ``gone`` of them.
    gone : In(8)
    back : In(1)
        Frames are lost.
    allowed : Out(8)
        Most bytes of words that a new frame should hold.
    """

    def __init__(self, *, slots, payload_bytes):
        self.slots = slots
        self.payload_bytes = payload_bytes
        super().__init__(
            {
                "progress": In(1),
                "gone": In(8),
                "back": In(1),
                "allowed": Out(8, init=min(LEAST, payload_bytes)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        least, most = min(LEAST, self.payload_bytes), self.payload_bytes
        noisy = Signal()  # frames have been lost
        longer = Signal(range(256 + STEP * self.slots))
        step = Mux(noisy, NOISY_STEP, STEP)
        half = self.allowed >> 1
        m.d.comb += longer.eq(self.allowed + step * self.gone[: self.slots.bit_length()])
        with m.If(self.back):
            m.d.sync += [noisy.eq(1), self.allowed.eq(Mux(half < least, least, half))]
        with m.Elif(self.progress):
            m.d.sync += self.allowed.eq(Mux(longer > most, most, longer))
        return m

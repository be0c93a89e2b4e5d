# SPDX-License-Identifier: Apache-2.0
"""Which tuples of a side are in a core of the handshake join."""

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from .layouts import place_shape

__all__ = ["FlowWindow"]


class FlowWindow(wiring.Component):
    """Count the tuples of a side that have come, that have gone, and that are no longer needed.

    All tuples of a side pass all cores in order. So a core knows the number of each by counting,
    and the lowest bits of the number are its row.

    Latency: 1 cycle. Throughput: 1 tuple per cycle.

    Parameters
    ----------
    parameters : JoinParameters
        Of the accelerator.

    Members
    -------
    restart : In(1)
        There is nothing, and numbers begin at zero.
    arrives : In(1)
        A tuple comes; its number is ``head``.
    leaves : In(1)
        The one with the number ``following``, the oldest one that is still here, is sent on or has
        expired.
    releases : In(1)
        The one with the number ``tail`` need not be kept any more.
    head, following, tail : Out
    rows : Out
        Tuples from the tail on.
    held : Out(place_shape(parameters))
        Those of them that have not left.
    readable : Out(1)
        There is one that has been in memory for long enough to be read; from a register.
    """

    def __init__(self, parameters):
        self.parameters = parameters
        self.latency = 1
        tag = unsigned(parameters.ordinal_bits)
        super().__init__(
            {
                "restart": In(1),
                "arrives": In(1),
                "leaves": In(1),
                "releases": In(1),
                "head": Out(tag),
                "following": Out(tag),
                "tail": Out(tag),
                "rows": Out(range(parameters.ring_rows + 1)),
                "held": Out(place_shape(parameters)),
                "readable": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.d.comb += [
            self.rows.eq(self.head - self.tail),
            self.held.eq(self.head - self.following),
        ]
        m.d.sync += [
            self.head.eq(self.head + self.arrives),
            self.following.eq(self.following + self.leaves),
            self.tail.eq(self.tail + self.releases),
            # One that comes in this cycle is read two cycles later at the earliest.
            self.readable.eq((self.held > 1) | ((self.held == 1) & ~self.leaves)),
        ]
        with m.If(self.restart):
            m.d.sync += [self.head.eq(0), self.following.eq(0), self.tail.eq(0)]
        return m

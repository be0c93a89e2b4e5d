# SPDX-License-Identifier: Apache-2.0
"""Which tuples of a side a core of the low-latency handshake join is home to."""

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.window.turn import Turn

from .layouts import place_shape

__all__ = ["HomeWindow"]


class HomeWindow(wiring.Component):
    """Count tuples of a side as they pass, and those of them that this core keeps.

    Homes are assigned round robin. Every core sees all tuples, and all words that expire one, in
    order; so it needs no more than to count them. A word that expires a tuple may come before the
    tuple: then the tail is ahead of the head, and there is nothing to compare with.

    Latency: 1 cycle. Throughput: a tuple that arrives or expires per cycle.

    Parameters
    ----------
    parameters : JoinParameters
        Of the accelerator.

    Members
    -------
    position : In
        Number of the core.
    restart : In(1)
        The window is empty, and numbers begin at zero. Reset does the same.
    arrives, expires : In(1)
        A tuple of the side passes; the oldest one of all cores leaves.
    mine : Out(1)
        The tuple that arrives belongs here, to row ``head``.
    head, tail : Out(place_shape(parameters))
    rows : Out
        Tuples between them.
    oldest : Out
        Number of the tuple at ``tail``.
    arrived, expired : Out
        How many have.
    """

    def __init__(self, parameters):
        self.parameters = parameters
        self.latency = 1
        tag, place = unsigned(parameters.ordinal_bits), place_shape(parameters)
        super().__init__(
            {
                "position": In(range(max(2, parameters.cores))),
                "restart": In(1),
                "arrives": In(1),
                "expires": In(1),
                "mine": Out(1),
                "head": Out(place),
                "tail": Out(place),
                "rows": Out(range(parameters.ring_rows + 1)),
                "oldest": Out(tag),
                "arrived": Out(tag),
                "expired": Out(tag),
            }
        )

    def elaborate(self, platform):
        m = Module()
        begins = Signal(init=1)  # in and right after reset
        m.d.sync += begins.eq(0)
        restart = self.restart | begins
        storing, leaving = Turn(self.parameters), Turn(self.parameters)
        m.submodules.storing, m.submodules.leaving = storing, leaving
        for turn, advance in ((storing, self.arrives), (leaving, self.expires)):
            m.d.comb += [
                turn.position.eq(self.position),
                turn.restart.eq(restart),
                turn.advance.eq(advance),
            ]
        held = Signal(signed(len(self.head)))
        m.d.comb += [
            self.mine.eq(storing.mine),
            held.eq(self.head - self.tail),
            self.rows.eq(Mux(held < 0, 0, held)),
        ]
        m.d.sync += [
            self.arrived.eq(self.arrived + self.arrives),
            self.expired.eq(self.expired + self.expires),
            self.head.eq(self.head + (self.arrives & storing.mine)),
        ]
        with m.If(self.expires & leaving.mine):
            m.d.sync += [
                self.tail.eq(self.tail + 1),
                self.oldest.eq(self.oldest + self.parameters.cores),
            ]
        with m.If(restart):
            m.d.sync += [self.arrived.eq(0), self.expired.eq(0), self.oldest.eq(self.position)]
        return m

# SPDX-License-Identifier: Apache-2.0
"""The turns of the cores, which each core counts for itself (Algorithm 2)."""

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["Turn"]


class Turn(wiring.Component):
    """Say when it is this core's turn. The cores take turns in the order of their numbers.

    A counter holds the number of turns before this core's. A flag in a register says that none is
    left.

    Latency: 1 cycle from ``advance`` to ``mine``. Throughput: 1 turn per cycle.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator.

    Members
    -------
    position : In
        Number of the core, 0 to ``cores - 1``.
    restart : In(1)
        Let core 0 be next. A reset of at least two cycles has the same effect.
    advance : In(1)
        A turn is over.
    mine : Out(1)
        It is this core's turn; from a register.
    then : Out(1)
        The value of ``mine`` after an ``advance``.
    """

    def __init__(self, parameters):
        self.parameters = parameters
        self.latency = 1
        super().__init__(
            {
                "position": In(range(max(2, parameters.cores))),
                "restart": In(1),
                "advance": In(1),
                "mine": Out(1),
                "then": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        last = self.parameters.cores - 1
        left = Signal.like(self.position, reset_less=True)  # turns before this core's
        here = Signal(reset_less=True)  # none is left
        m.d.comb += [self.mine.eq(here), self.then.eq(Mux(here, last == 0, left == 1))]
        with m.If(self.restart):
            m.d.sync += [left.eq(self.position), here.eq(self.position == 0)]
        with m.Elif(self.advance):
            m.d.sync += [left.eq(Mux(here, last, left - 1)), here.eq(self.then)]
        return m

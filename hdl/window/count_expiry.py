# SPDX-License-Identifier: Apache-2.0
"""Expiry of count-based windows: which tuple leaves when another one comes (Algorithm 4)."""

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.words.inputs import control_layout

from .turn import Turn

__all__ = ["CountExpiry"]


class CountExpiry(wiring.Component):
    """Say whether the next tuple expires the oldest tuple of this core.

    A count-based window expires passively. Once it holds ``size`` tuples, each further tuple
    expires the oldest tuple of all cores. Cores expire tuples in the same turns in which they
    stored them.

    Latency: 1 cycle from ``advance`` to ``displaces``. Throughput: 1 tuple per cycle.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator.

    Members
    -------
    position : In
        Number of the core, 0 to ``cores - 1``.
    size : In
        Number of tuples in the window that ``begin`` begins, 1 to ``capacity``; given one cycle
        before ``begin``.
    restart : In(1)
        Empty the window. A reset of at least two cycles has the same effect.
    begin : In(1)
        With ``restart``: the new window has another size. After reset, the size is the largest one.
    advance : In(1)
        A tuple of the tracked side comes.
    displaces : Out(1)
        The next tuple of the tracked side expires the oldest one of this core; from a register.
    """

    def __init__(self, parameters):
        self.parameters = parameters
        self.latency = 1
        super().__init__(
            {
                "position": In(range(max(2, parameters.cores))),
                "size": In(control_layout(parameters)["value"].shape),
                "restart": In(1),
                "begin": In(1),
                "advance": In(1),
                "displaces": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        capacity = self.parameters.capacity
        size = Signal(range(capacity + 1), init=capacity)
        single = Signal(init=capacity == 1)  # the size is one
        left = Signal.like(size, reset_less=True)  # tuples until the window is full
        last_missing, filled = Signal(reset_less=True), Signal(reset_less=True)
        displaces = Signal(reset_less=True)
        asked = Signal.like(size, name="asked", reset_less=True)
        asked_single = Signal(reset_less=True)
        m.d.sync += [asked.eq(self.size), asked_single.eq(self.size[: len(size)] == 1)]
        m.submodules.turn = turn = Turn(self.parameters)
        m.d.comb += [
            turn.position.eq(self.position),
            turn.restart.eq(self.restart),
            turn.advance.eq(self.advance & filled),
            self.displaces.eq(displaces),
        ]
        with m.If(self.restart):
            with m.If(self.begin):
                m.d.sync += [
                    Cat(size, left).eq(Cat(asked, asked)),
                    Cat(single, last_missing).eq(asked_single.replicate(2)),
                ]
            with m.Else():
                m.d.sync += [left.eq(size), last_missing.eq(single)]
            m.d.sync += Cat(filled, displaces).eq(0)
        with m.Elif(self.advance):
            with m.If(~filled):
                m.d.sync += [left.eq(left - 1), last_missing.eq(left == 2), filled.eq(last_missing)]
            m.d.sync += displaces.eq(Mux(filled, turn.then, last_missing & turn.mine))
        return m

# SPDX-License-Identifier: Apache-2.0
"""Whether results come in rounds, and in which, from a word on."""

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.words.rounds import rounds_shape

__all__ = ["RoundMode"]


class RoundMode(wiring.Component):
    """Keep the size of rounds that INNER has set (:mod:`hdl.words.rounds`).

    Rounds of different cores belong together as long as the cores have stored in the same turns. A
    segment that begins when a window has received tuples gives them other turns. So SEGMENT ends
    the rounds then, and until that window has been emptied, INNER sets the outer order.

    Latency: 0 cycles. Throughput: 1 word per cycle.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator; with rounds.

    Members
    -------
    advance : In(1)
        The word at hand is taken.
    tuples : In(2)
        Sides of the tuples at hand.
    set_precision : In(1)
        The word at hand is PRECISION or INNER.
    wanted : In(rounds_shape(parameters))
        The size of rounds that it asks for, as a code.
    segment : In(1)
        The word at hand begins a segment.
    empties : In(2)
        Sides whose windows the word at hand empties.
    rounds : Out(rounds_shape(parameters))
        The size of rounds from the word at hand on, as a code.
    """

    def __init__(self, parameters):
        self.parameters = parameters
        self.latency = 0
        shape = rounds_shape(parameters)
        super().__init__(
            {
                "advance": In(1),
                "tuples": In(2),
                "set_precision": In(1),
                "wanted": In(shape),
                "segment": In(1),
                "empties": In(2),
                "rounds": Out(shape),
            }
        )

    def elaborate(self, platform):
        m = Module()
        rounds = Signal.like(self.rounds, name="rounds_now")
        received = Signal(2)  # sides whose windows have received tuples since they were emptied
        drifted = Signal(2)  # sides whose windows may hold tuples of two segments
        m.d.comb += self.rounds.eq(rounds)
        with m.If(self.segment & received.any()):
            m.d.comb += self.rounds.eq(0)
        with m.Elif(self.set_precision):
            m.d.comb += self.rounds.eq(Mux(drifted.any(), 0, self.wanted))
        with m.If(self.advance):
            m.d.sync += [
                rounds.eq(self.rounds),
                received.eq((received | self.tuples) & ~self.empties),
                drifted.eq((drifted | (received & self.segment.replicate(2))) & ~self.empties),
            ]
        return m

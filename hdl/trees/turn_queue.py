# SPDX-License-Identifier: Apache-2.0
"""Queue that shows the next two turns of the sides, where two turns can end in one cycle."""

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["TurnQueue"]


class TurnQueue(wiring.Component):
    """Expand the order in which groups closed into turns of one side each, and show the next two.

    Turns are held in registers and move up as turns end. There are five places, so that two turns
    can end in every cycle while an entry of two turns comes in every cycle.

    Latency: 1 cycle. Throughput: 1 entry per cycle, and 2 turns per cycle.

    Members
    -------
    i : In(stream.Signature(3))
        Sides whose groups closed, at least one: bit 0 for R, bit 1 for S. If both closed, R comes
        first unless bit 2 is set (:func:`hdl.words.results.turns_shape`).
    first : Out(2)
        Side whose turn it is: bit 0 for R, bit 1 for S. Zero while no turn waits.
    second : Out(2)
        Side whose turn is the next one, in the same form.
    ended : In(2)
        Bit 0: the first turn ends in this cycle. Bit 1: the second turn ends as well; only together
        with bit 0.
    """

    PLACES = 5

    def __init__(self):
        self.latency = 1
        super().__init__(
            {
                "i": In(stream.Signature(3)),
                "first": Out(2),
                "second": Out(2),
                "ended": In(2),
            }
        )

    def elaborate(self, platform):
        m = Module()
        turns = [Signal(2, name=f"turn_{n}") for n in range(self.PLACES)]
        # Two turns must fit, even if no turn ends in this cycle.
        m.d.comb += [
            self.i.ready.eq(turns[-2] == 0),
            self.first.eq(turns[0]),
            self.second.eq(turns[1]),
        ]
        sides, s_first = self.i.payload[:2], self.i.payload[2]
        is_s = ~sides[0] | (sides.all() & s_first)
        transfer = self.i.valid & self.i.ready
        leader, follower = Signal(2), Signal(2)
        with m.If(transfer):
            m.d.comb += leader.eq(Cat(~is_s, is_s))
            with m.If(sides.all()):
                m.d.comb += follower.eq(Cat(is_s, ~is_s))

        none = Const(0, 2)
        left = []  # content of each place after the turns that end have left
        # Whether each place is occupied then. The constants stand for two places before the first.
        taken = [Const(0), Const(1)]
        for place in range(self.PLACES):
            now, one, two = [*turns[place:], none, none][:3]
            left.append(Mux(self.ended[1], two, Mux(self.ended[0], one, now)))
            taken.append(Mux(self.ended[1], two.any(), Mux(self.ended[0], one.any(), now.any())))
        for place, turn in enumerate(turns):
            before_last, last, own = taken[place : place + 3]
            entering = Mux(last, leader, Mux(before_last, follower, 0))
            m.d.sync += turn.eq(Mux(own, left[place], entering))
        return m

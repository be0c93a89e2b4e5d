# SPDX-License-Identifier: Apache-2.0
"""The end of the result gathering network where a word holds two results."""

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hdl.local_reset import reset_nearby
from hdl.streams.registers import StreamRegister
from hdl.tree import tree_levels
from hdl.words.results import ResultKind, node_result, result_word, turns_shape

from .result_pairing import ResultPairing
from .turn_queue import TurnQueue

__all__ = ["DualCombiner"]


class DualCombiner(wiring.Component):
    """Join the results of R's probes and of S's probes, two results a word.

    The sequence of results is that of :class:`hdl.trees.combiner.Combiner`. In order, a word holds
    two results of the side whose turn it is, if two wait; or the star that ends a turn and the
    star that is all of the other side's next one. While order is free, a word holds a result of
    each side, or two of one side, which then lets the other one go first. Marks are merged into
    one, which is alone in its word.

    Latency: 2 cycles; the entry of ``order`` comes with the first result of its side, or before.
    Throughput: 1 word per cycle. Two results per cycle while order is free and both sides deliver
    one per cycle, and where groups of both sides that are one star each close in turn. In order, a
    turn of n results takes ``ceil(n / 2)`` cycles if they wait when it begins, for which there is
    room in :class:`hdl.trees.result_pairing.ResultPairing`; a cycle each otherwise.

    Parameters
    ----------
    parameters : JoinParameters
        Of the accelerator.

    Members
    -------
    i : In(stream.Signature(node_result(parameters, levels))).array(2)
        Results of the probes of R and of S.
    order : In(stream.Signature(turns_shape(parameters)))
    o : Out(stream.Signature(result_word(parameters)))
    """

    def __init__(self, parameters):
        self.parameters = parameters
        self.latency = 2
        levels = len(tree_levels(parameters.cores, parameters.fan_in))
        super().__init__(
            {
                "i": In(stream.Signature(node_result(parameters, levels))).array(2),
                "order": In(stream.Signature(turns_shape(parameters))),
                "o": Out(stream.Signature(result_word(parameters))),
            }
        )

    def elaborate(self, platform):
        m = Module()
        self.elaborate_sides(m)
        return reset_nearby(m, platform)

    def elaborate_sides(self, m):
        """Serve one row, two rows of one result each that follow one another, or two marks."""
        m.submodules.output = output_register = StreamRegister(result_word(self.parameters))
        connect(m, output_register.o, flipped(self.o))
        output = output_register.i
        m.submodules.turns = turns = TurnQueue()
        connect(m, flipped(self.order), turns.i)
        rows = []
        for n, name in enumerate(("side_r", "side_s")):
            m.submodules[name] = pairing = ResultPairing(self.parameters, side=n)
            connect(m, flipped(self.i[n]), pairing.i)
            rows.append(pairing.o)
        r, s = (row.payload for row in rows)

        # Every decision by itself, from bits that come out of registers.
        free, s_goes_first = Signal(), Signal()
        r_turn, s_turn = turns.first
        r_leads, s_leads = Signal(), Signal()  # its row is served, at `one`
        both, both_marks = Signal(), Signal()  # sides are served
        s_follows = r.star & s.lone & r_turn & turns.second[1]
        r_follows = s.star & r.lone & s_turn & turns.second[0]
        together = free & r.lone & s.lone
        m.d.comb += [
            r_leads.eq(r.result & Mux(free, ~(s.result & s_goes_first), r_turn)),
            s_leads.eq(s.result & Mux(free, ~r.result | s_goes_first, s_turn)),
            both.eq(together | s_follows | r_follows),
            both_marks.eq(r.mark & s.mark),
            output.valid.eq(r_leads | s_leads | both_marks),
            rows[0].ready.eq(output.ready & (r_leads | both | both_marks)),
            rows[1].ready.eq(output.ready & (s_leads | both | both_marks)),
            turns.ended[0].eq(output.ready & ~free & ((r_turn & r.ends) | (s_turn & s.ends))),
            turns.ended[1].eq(
                output.ready & ~free & r.star & s.star & (turns.first & turns.second[::-1]).any()
            ),
        ]
        with m.If(output.ready & both_marks):
            m.d.sync += free.eq(r.free)
        with m.If(output.ready & (r_leads | s_leads)):
            m.d.sync += s_goes_first.eq(r_leads)
        self.elaborate_word(m, output.payload, (r, s), s_leads, both, both_marks)

    def elaborate_word(self, m, word, rows, s_leads, both, both_marks):
        """Pass on the row of one side, or the results of ``both``; or merge marks."""
        r, s = rows
        with m.If(both_marks):
            overflow = [row.one.body.punctuation.overflow for row in rows]
            m.d.comb += [
                word.one.eq(r.one),
                word.one.body.punctuation.overflow.eq(overflow[0] | overflow[1]),
                word.two.kind.eq(ResultKind.NONE),
            ]
        with m.Else():
            m.d.comb += word.one.eq(Mux(s_leads, s.one, r.one))
            with m.If(both):
                m.d.comb += word.two.eq(Mux(s_leads, r.one, s.one))
            with m.Else():
                m.d.comb += word.two.eq(Mux(s_leads, s.two, r.two))

# SPDX-License-Identifier: Apache-2.0
"""The end of the result gathering network, for words of two results."""

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
    """Merge the results of R's probes and of S's probes, up to two results per word.

    The sequence of results is that of :class:`hdl.trees.combiner.Combiner`.

    While results are in order, a word holds two results of the side whose turn it is, if two wait.
    If only the star that ends the turn waits, the word holds this star and the first result of the
    other side's turn, provided that the other side is next and only one of its results waits.

    While order is free, a word holds one result of each side, or two of one side. After a word of
    one side, the other side goes first. Marks are taken from both sides at once and leave as one,
    which is alone in its word.

    Latency: 2 cycles, if the entry of ``order`` comes with the first result of its side or earlier.
    Throughput: 1 word per cycle. The combiner emits two results per cycle while order is free and
    both sides deliver one result per cycle. It also does so where groups that consist of a star
    alone close alternately on both sides. In order, a turn of n results takes ``ceil(n / 2)``
    cycles if its results wait when it begins. :class:`hdl.trees.result_pairing.ResultPairing` has
    the room for that. Otherwise each result takes one cycle.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator.

    Members
    -------
    i : In(stream.Signature(node_result(parameters, levels))).array(2)
        Results of the probes of R and of S.
    order : In(stream.Signature(turns_shape(parameters)))
        Sides whose groups closed.
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
        """Serve the row of one side, one result of each side, or the marks of both sides."""
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

        # Each decision is made separately, from bits that come from registers.
        free, s_goes_first = Signal(), Signal()
        r_turn, s_turn = turns.first
        # The row of this side is served, and its first result is `one`.
        r_leads, s_leads = Signal(), Signal()
        both, both_marks = Signal(), Signal()  # rows of both sides are served: of results, of marks
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
        """Put the row of one side, the results of ``both`` sides, or merged marks into a word."""
        r, s = rows
        with m.If(both_marks):
            overflow = [row.one.body.punctuation.overflow for row in rows]
            m.d.comb += [
                word.one.eq(r.one),
                word.one.body.punctuation.overflow.eq(overflow[0] | overflow[1]),
                word.two.kind.eq(ResultKind.NONE),
            ]
            if self.parameters.has_gates:
                of_r, of_s = (row.one.body.punctuation for row in rows)
                m.d.comb += [
                    word.one.body.punctuation.failed.eq(of_r.failed | of_s.failed),
                    word.one.body.punctuation.failed_core.eq(
                        Mux(of_r.failed, of_r.failed_core, of_s.failed_core)
                    ),
                ]
                if self.parameters.parity:
                    m.d.comb += word.one.body.punctuation.failed_parity.eq(
                        Mux(of_r.failed, of_r.failed_parity, of_s.failed_parity)
                    )
        with m.Else():
            m.d.comb += word.one.eq(Mux(s_leads, s.one, r.one))
            with m.If(both):
                m.d.comb += word.two.eq(Mux(s_leads, r.one, s.one))
            with m.Else():
                m.d.comb += word.two.eq(Mux(s_leads, s.two, r.two))

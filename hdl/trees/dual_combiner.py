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
    turn of n results takes ``ceil(n / 2)`` cycles if they wait when it begins, of which there are
    up to twice :attr:`ResultPairing.DEPTH <hdl.trees.result_pairing.ResultPairing.DEPTH>`; a cycle
    each otherwise.

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
        return reset_nearby(m, platform, pipelined=True)

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

        free, s_goes_first = Signal(), Signal()
        is_s = Signal()  # the side that is served, or that would be if it had a result
        served, follows, both_marks = Signal(), Signal(), Signal()
        turn_is_there = (turns.first & Cat(r.result, s.result)).any()
        lone, others_lone = Mux(is_s, s.lone, r.lone), Mux(is_s, r.lone, s.lone)
        ends, others_end = Mux(is_s, s.ends, r.ends), Mux(is_s, r.ends, s.ends)
        others_turn = ends & (turns.second & Cat(is_s, ~is_s)).any()
        m.d.comb += [
            is_s.eq(Mux(free, s.result & (s_goes_first | ~r.result), turns.first[1])),
            served.eq(Mux(free, r.result | s.result, turn_is_there)),
            follows.eq(served & lone & others_lone & (free | others_turn)),
            both_marks.eq(r.mark & s.mark),
            output.valid.eq(served | both_marks),
            rows[0].ready.eq(output.ready & ((served & ~is_s) | follows | both_marks)),
            rows[1].ready.eq(output.ready & ((served & is_s) | follows | both_marks)),
            turns.ended[0].eq(output.ready & ~free & served & ends),
            turns.ended[1].eq(output.ready & ~free & follows & others_end),
        ]
        with m.If(output.ready & both_marks):
            m.d.sync += free.eq(r.free)
        with m.If(output.ready & served):
            m.d.sync += s_goes_first.eq(~is_s)
        self.elaborate_word(m, output.payload, (r, s), is_s, follows, both_marks)

    def elaborate_word(self, m, word, rows, is_s, follows, both_marks):
        """Pass on the row of one side, with that of the other if it ``follows``; or merge marks."""
        r, s = rows
        with m.If(both_marks):
            overflow = [row.one.body.punctuation.overflow for row in rows]
            m.d.comb += [
                word.one.eq(r.one),
                word.one.body.punctuation.overflow.eq(overflow[0] | overflow[1]),
                word.two.kind.eq(ResultKind.NONE),
            ]
        with m.Else():
            m.d.comb += word.one.eq(Mux(is_s, s.one, r.one))
            with m.If(follows):
                m.d.comb += word.two.eq(Mux(is_s, r.one, s.one))
            with m.Else():
                m.d.comb += word.two.eq(Mux(is_s, s.two, r.two))

# SPDX-License-Identifier: Apache-2.0
"""Combiners of the results of both sides."""

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hdl.local_reset import reset_nearby
from hdl.streams.registers import StreamRegister, flagged_register
from hdl.tree import tree_levels
from hdl.words.results import ResultKind, node_result, result_word, turns_shape

from .order_queue import TurnQueue, Turns
from .result_pairing import ResultPairing

__all__ = ["Combiner", "DualCombiner"]


def side_flags(side):
    """Return the flags of a side's word that the combiner decides by; zero while it is invalid.

    The star of a round is none that a turn ends with.
    """
    kind, punctuation = side.payload.kind, side.payload.body.punctuation
    inner = punctuation.inner if "inner" in punctuation.shape().members else Const(0)
    return {
        "result": side.valid & (kind != ResultKind.MARK),
        "pair": side.valid & (kind == ResultKind.PAIR),
        "star": side.valid & (kind == ResultKind.STAR) & ~inner,
        "mark": side.valid & (kind == ResultKind.MARK),
    }


class Combiner(wiring.Component):
    """Merge the results of R's probes and of S's probes, and flag every result with its side.

    While results are in order, the combiner serves a side up to its next star. ``order`` says which
    side comes next. It holds the order in which groups closed at the ingress, so stalls do not
    change the output stream. While order is free (see :class:`hdl.trees.merger.Merger`), the
    combiner passes on any result that is there. Marks are taken from both sides at once, and leave
    as one.

    The inputs have registers as well, because the trees that end there are far apart. The side
    whose turn it is (:class:`hdl.trees.order_queue.Turns`) also comes from a register. So there is
    little logic between the registers.

    Latency: 2 cycles, if the entry of ``order`` comes with the first word of its side or earlier.
    Throughput: 1 word per cycle, also if all words are stars.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator.

    Members
    -------
    i : In(stream.Signature(node_result(parameters, levels))).array(2)
        Results of the probes of R and of S.
    order : In(stream.Signature(turns_shape(parameters)))
        Sides whose groups closed (:func:`hdl.words.results.turns_shape`).
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
        """Serve the side whose turn it is.

        While order is free, serve R if it has a result, and S otherwise. If both sides show a mark,
        take both marks. A turn is zero while there is none, so it needs no ``valid`` beside it.
        """
        m.submodules.output = output_register = StreamRegister(
            result_word(self.parameters), early=["kind"]
        )
        m.submodules.turns = turns = Turns()
        connect(m, output_register.o, flipped(self.o))
        connect(m, flipped(self.order), turns.i)
        output = output_register.i
        inputs = [
            flagged_register(m, f"side_{n}", i, flags=side_flags) for n, i in enumerate(self.i)
        ]
        r, s = (i.payload for i in inputs)

        free = Signal()
        allowed = Signal(2)  # sides that would be served if they had a word
        served = Signal(2)
        both_marks = Signal()
        m.d.comb += [
            allowed.eq(Mux(free, Cat(1, ~r.result), turns.o.payload)),
            served.eq(allowed & Cat(r.result, s.result)),
            both_marks.eq(r.mark & s.mark),
            output.valid.eq(served.any() | both_marks),
            *(i.ready.eq(output.ready & (served[n] | both_marks)) for n, i in enumerate(inputs)),
            turns.o.ready.eq(output.ready & ~free & (turns.o.payload & Cat(r.star, s.star)).any()),
        ]
        self.elaborate_word(m, output.payload, (r, s), allowed[1], both_marks)
        with m.If(output.ready & both_marks):
            m.d.sync += free.eq(r.word.body.punctuation.free)

    def elaborate_word(self, m, chosen, shown, side, both_marks):
        """Choose the word of ``side``, or merge two marks.

        While the output is invalid, its payload may be anything.
        """
        words = [payload.word for payload in shown]
        punctuation = [word.body.punctuation for word in words]
        m.d.comb += [
            chosen.kind.eq(Mux(side, words[1].kind, words[0].kind)),
            chosen.side.eq(side & ~both_marks),
        ]
        with m.If(Mux(side, shown[1].pair, shown[0].pair)):
            m.d.comb += chosen.body.pair.eq(Mux(side, words[1].body.pair, words[0].body.pair))
        with m.Else():
            # The results of one side's probes report an overflow of the other side's window.
            m.d.comb += [
                chosen.body.punctuation.overflow[0].eq(
                    punctuation[1].overflow & (side | both_marks)
                ),
                chosen.body.punctuation.overflow[1].eq(
                    punctuation[0].overflow & (~side | both_marks)
                ),
                *(
                    chosen.body.punctuation[fault].eq(
                        Mux(side, punctuation[1][fault], punctuation[0][fault])
                    )
                    for fault in ("disorder", "illegal")
                ),
            ]
            if self.parameters.engine.rounds:
                m.d.comb += chosen.body.punctuation.inner.eq(
                    Mux(side, punctuation[1].inner, punctuation[0].inner) & ~both_marks
                )
            if self.parameters.has_gates:
                r, s = punctuation
                r_failed = r.failed & (~side | both_marks)
                s_failed = s.failed & (side | both_marks)
                m.d.comb += [
                    chosen.body.punctuation.failed.eq(r_failed | s_failed),
                    # A side that shows a pair has other bits in the place of the core.
                    chosen.body.punctuation.failed_core.eq(
                        Mux(r_failed, r.failed_core, Mux(s_failed, s.failed_core, 0))
                    ),
                ]
                if self.parameters.engine.parity:
                    m.d.comb += chosen.body.punctuation.failed_parity.eq(
                        Mux(r_failed, r.failed_parity, Mux(s_failed, s.failed_parity, 0))
                    )


class DualCombiner(Combiner):
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
                if self.parameters.engine.parity:
                    m.d.comb += word.one.body.punctuation.failed_parity.eq(
                        Mux(of_r.failed, of_r.failed_parity, of_s.failed_parity)
                    )
        with m.Else():
            m.d.comb += word.one.eq(Mux(s_leads, s.one, r.one))
            with m.If(both):
                m.d.comb += word.two.eq(Mux(s_leads, r.one, s.one))
            with m.Else():
                m.d.comb += word.two.eq(Mux(s_leads, s.two, r.two))

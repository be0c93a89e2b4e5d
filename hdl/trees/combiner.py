# SPDX-License-Identifier: Apache-2.0
"""The end of the result gathering network, where two sides become one stream (Figure 9)."""

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hdl.local_reset import reset_nearby
from hdl.streams.registers import StreamRegister, flagged_register
from hdl.tree import tree_levels
from hdl.words.results import ResultKind, node_result, result_word

from .turns import Turns

__all__ = ["Combiner"]


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
    whose turn it is (:class:`hdl.trees.turns.Turns`) also comes from a register. So there is little
    logic between the registers.

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
    order : In(stream.Signature(2))
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
                "order": In(stream.Signature(2)),
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
            if self.parameters.rounds:
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
                if self.parameters.parity:
                    m.d.comb += chosen.body.punctuation.failed_parity.eq(
                        Mux(r_failed, r.failed_parity, Mux(s_failed, s.failed_parity, 0))
                    )

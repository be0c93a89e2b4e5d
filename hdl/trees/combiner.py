# SPDX-License-Identifier: Apache-2.0
"""The end of the result gathering network: two sides become one stream (Figure 9)."""

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
    """Return what the combiner wants to know of the word of a side, if there is one."""
    kind = side.payload.kind
    return {
        "result": side.valid & (kind != ResultKind.MARK),
        "pair": side.valid & (kind == ResultKind.PAIR),
        "star": side.valid & (kind == ResultKind.STAR),
        "mark": side.valid & (kind == ResultKind.MARK),
    }


class Combiner(wiring.Component):
    """Join the results of R's probes and of S's probes, stars flagged with their side.

    In order, sides are served up to their star as ``order`` says, which is the order in which their
    groups closed at the ingress; the stream is the same whatever the stalls. While order is free
    (see :class:`Merger`), whatever is there is passed on. Marks are merged into one.

    Registers stand at the inputs too, for the trees that end there are far apart; whose turn it is
    (:class:`hdl.trees.turns.Turns`) comes out of a register as well. So it is served after few
    decisions.

    Latency: 2 cycles; the entry of ``order`` comes with the first word of
    its side, or before. Throughput: 1 word per cycle, also if all are stars.

    Parameters
    ----------
    parameters : JoinParameters
        Of the accelerator.

    Members
    -------
    i : In(stream.Signature(node_result(parameters, levels))).array(2)
        Results of the probes of R and of S.
    order : In(stream.Signature(2))
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
        """Serve the side whose turn it is, the lowest that has a word, or both if they show marks.

        As a turn is zero while there is none, it says by itself which side may be served.
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
        """Pass on the word of ``side``, or merge two marks; what is not valid may be anything."""
        words = [payload.word for payload in shown]
        punctuation = [word.body.punctuation for word in words]
        m.d.comb += [
            chosen.kind.eq(Mux(side, words[1].kind, words[0].kind)),
            chosen.side.eq(side & ~both_marks),
        ]
        with m.If(Mux(side, shown[1].pair, shown[0].pair)):
            m.d.comb += chosen.body.pair.eq(Mux(side, words[1].body.pair, words[0].body.pair))
        with m.Else():
            # The probes of one side know of the other side's window.
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

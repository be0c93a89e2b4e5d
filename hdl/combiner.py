# SPDX-License-Identifier: Apache-2.0
"""The end of the result gathering network: two sides become one stream (Figure 9)."""

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from .layouts import ResultKind, node_result, result_word, tree_levels
from .streams import StreamRegister

__all__ = ["Combiner"]


class Combiner(wiring.Component):
    """Join the results of R's probes and of S's probes, stars flagged with their side.

    In order, sides are served up to their star as ``order`` says, which is the order in which their
    groups closed at the ingress; the stream is the same whatever the stalls. While order is free
    (see :class:`Merger`), whatever is there is passed on. Marks are merged into one.

    Latency: 1 cycle. Throughput: 1 word per cycle.

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
        self.latency = 1
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
        m.submodules.output = output_register = StreamRegister(result_word(self.parameters))
        connect(m, output_register.o, flipped(self.o))
        output = output_register.i

        free = Signal()
        first_done = Signal()  # of the two sides at the head of `order`, R has had its star
        turn = Signal()  # the side to serve
        m.d.comb += turn.eq(~self.order.payload[0] | first_done)

        marks = [i.valid & (i.payload.kind == ResultKind.MARK) for i in self.i]
        words = [i.valid & (i.payload.kind != ResultKind.MARK) for i in self.i]
        stars = [i.payload.kind == ResultKind.STAR for i in self.i]
        serve = [
            Mux(free, words[0], words[0] & self.order.valid & ~turn),
            Mux(free, words[1] & ~words[0], words[1] & self.order.valid & turn),
        ]

        with m.If(marks[0] & marks[1]):
            punctuation = [i.payload.body.punctuation for i in self.i]
            m.d.comb += [
                output.valid.eq(1),
                output.payload.kind.eq(ResultKind.MARK),
                # The probes of one side know of the other side's window.
                output.payload.body.punctuation.overflow.eq(
                    Cat(punctuation[1].overflow, punctuation[0].overflow)
                ),
                output.payload.body.punctuation.disorder.eq(punctuation[0].disorder),
                *(i.ready.eq(output.ready) for i in self.i),
            ]
            with m.If(output.ready):
                m.d.sync += free.eq(punctuation[0].free)
        for side, i in enumerate(self.i):
            with m.If(serve[side]):
                m.d.comb += [
                    output.valid.eq(1),
                    output.payload.kind.eq(i.payload.kind),
                    output.payload.side.eq(side),
                    i.ready.eq(output.ready),
                ]
                with m.If(stars[side]):
                    m.d.comb += [
                        output.payload.body.punctuation.overflow[1 - side].eq(
                            i.payload.body.punctuation.overflow
                        ),
                        output.payload.body.punctuation.disorder.eq(
                            i.payload.body.punctuation.disorder
                        ),
                    ]
                    with m.If(output.ready & ~free):
                        both = self.order.payload.all() & ~first_done
                        m.d.sync += first_done.eq(both)
                        m.d.comb += self.order.ready.eq(~both)
                with m.Else():
                    m.d.comb += output.payload.body.pair.eq(i.payload.body.pair)
        return m

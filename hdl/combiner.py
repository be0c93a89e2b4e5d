# SPDX-License-Identifier: Apache-2.0
"""The end of the result gathering network: two sides become one stream (Figure 9)."""

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from .layouts import ResultKind, node_result, result_word, tree_levels
from .streams import input_registers, stream_register

__all__ = ["Combiner"]


class Combiner(wiring.Component):
    """Join the results of R's probes and of S's probes, stars flagged with their side.

    In order, sides are served up to their star as ``order`` says, which is the order in which their
    groups closed at the ingress; the stream is the same whatever the stalls. While order is free
    (see :class:`Merger`), whatever is there is passed on. Marks are merged into one.

    Registers stand at the inputs too, for the trees that end there are far apart.

    Latency: 2 cycles, 1 if not ``pipelined``. Throughput: 1 word per cycle.

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
        self.latency = 1 + parameters.pipelined
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
        pipelined = self.parameters.pipelined
        m.submodules.output = output_register = stream_register(
            result_word(self.parameters), pipelined=pipelined
        )
        connect(m, output_register.o, flipped(self.o))
        output = output_register.i
        inputs = input_registers(m, "side", self.i, pipelined=pipelined, early=["kind"])

        free = Signal()
        first_done = Signal()  # of the two sides at the head of `order`, R has had its star
        turn = Signal()  # the side to serve
        m.d.comb += turn.eq(~self.order.payload[0] | first_done)

        marks = [i.valid & (i.payload.kind == ResultKind.MARK) for i in inputs]
        words = [i.valid & (i.payload.kind != ResultKind.MARK) for i in inputs]
        side = Signal()  # which side's word it is, if it is one
        serve = Signal()
        both_marks = marks[0] & marks[1]
        m.d.comb += [
            side.eq(Mux(free, ~words[0], turn)),
            serve.eq(Mux(side, words[1], words[0]) & (free | self.order.valid)),
            output.valid.eq(serve | both_marks),
            *(
                i.ready.eq(output.ready & (both_marks | (serve & (side == n))))
                for n, i in enumerate(inputs)
            ),
        ]
        self.elaborate_word(m, output.payload, inputs, side, both_marks)
        with m.If(output.ready & both_marks):
            m.d.sync += free.eq(inputs[0].payload.body.punctuation.free)
        star = Mux(side, *(i.payload.kind == ResultKind.STAR for i in reversed(inputs)))
        with m.If(output.ready & serve & star & ~free):
            both = self.order.payload.all() & ~first_done
            m.d.sync += first_done.eq(both)
            m.d.comb += self.order.ready.eq(~both)
        return m

    def elaborate_word(self, m, word, inputs, side, both_marks):
        """Pass on the word of ``side``, or merge two marks; what is not valid may be anything."""
        payloads = [i.payload for i in inputs]
        pair = Mux(side, *(payload.body.pair for payload in reversed(payloads)))
        kind = Mux(side, *(payload.kind for payload in reversed(payloads)))
        m.d.comb += [word.kind.eq(kind), word.side.eq(side & ~both_marks)]
        punctuation = [payload.body.punctuation for payload in payloads]
        with m.If(kind == ResultKind.PAIR):
            m.d.comb += word.body.pair.eq(pair)
        with m.Else():
            # The probes of one side know of the other side's window.
            m.d.comb += [
                word.body.punctuation.overflow[0].eq(punctuation[1].overflow & (side | both_marks)),
                word.body.punctuation.overflow[1].eq(
                    punctuation[0].overflow & (~side | both_marks)
                ),
                word.body.punctuation.disorder.eq(
                    Mux(side, punctuation[1].disorder, punctuation[0].disorder)
                ),
            ]

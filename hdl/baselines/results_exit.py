# SPDX-License-Identifier: Apache-2.0
"""The end of the results of a chain: pairs as they come, and marks when the coordinator says."""

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hdl.local_reset import reset_nearby
from hdl.streams.registers import StreamRegister, flagged_register
from hdl.words.results import ResultKind, faults_layout, result_word

from .gathering import port_flags
from .layouts import chain_result

__all__ = ["ResultsExit"]


class ResultsExit(wiring.Component):
    """Turn pairs into result words; tell the coordinator of a mark that fences have left.

    The coordinator sends a mark of its own only when no pair can be under way.

    Latency: 2 cycles. Throughput: 1 word per cycle.

    Parameters
    ----------
    parameters : JoinParameters
        Of the accelerator.

    Members
    -------
    i : In(stream.Signature(chain_result(parameters)))
    settled : Out(1)
        The mark of a fence has come; from a register.
    marks : In(stream.Signature(faults_layout(parameters)))
    o : Out(stream.Signature(result_word(parameters)))
    """

    def __init__(self, parameters):
        self.parameters = parameters
        self.latency = 2
        super().__init__(
            {
                "i": In(stream.Signature(chain_result(parameters))),
                "settled": Out(1),
                "marks": In(stream.Signature(faults_layout(parameters))),
                "o": Out(stream.Signature(result_word(parameters))),
            }
        )

    def elaborate(self, platform):
        m = Module()
        shape = result_word(self.parameters)
        m.submodules.output = output = StreamRegister(shape, early=["kind"])
        connect(m, output.o, flipped(self.o))
        results = flagged_register(m, "input", self.i, flags=port_flags)
        result, word = results.payload, output.i.payload
        m.d.comb += [
            results.ready.eq(output.i.ready),
            self.marks.ready.eq(output.i.ready & ~result.pair),
            output.i.valid.eq(result.pair | self.marks.valid),
            word.kind.eq(Mux(result.pair, ResultKind.PAIR, ResultKind.MARK)),
            word.side.eq(result.pair & result.word.side),
        ]
        with m.If(result.pair):
            m.d.comb += word.body.pair.eq(result.word.pair)
        with m.Else():
            m.d.comb += [
                word.body.punctuation[name].eq(self.marks.payload[name])
                for name, _ in faults_layout(self.parameters)
            ]
        m.d.sync += self.settled.eq(result.mark & output.i.ready)
        return reset_nearby(m, platform)

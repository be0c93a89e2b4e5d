# SPDX-License-Identifier: Apache-2.0
"""The end of the result gathering network of one side, which has a port of its own."""

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hdl.local_reset import reset_nearby
from hdl.streams.registers import StreamRegister
from hdl.tree import tree_levels
from hdl.words.results import node_result, result_layout, result_word

from . import side_result
from .result_pairing import ResultPairing

__all__ = ["SideExit"]


class SideExit(wiring.Component):
    """Emit the results of one side's probes, whatever the other side does.

    It does for one side what a :class:`hdl.trees.combiner.Combiner` does for both: it flags every
    result with its side, and a star or mark reports an overflow of the window that the side reads.
    The sequence of results is that of the gathering tree, so it does not depend on stalls while
    results are in order. With two results per word, results that wait share words
    (:class:`hdl.trees.result_pairing.ResultPairing`).

    The output has a register, because the tree that ends here is far from the port.

    Latency: 1 cycle. Throughput: 1 word per cycle.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator.
    side : int
        Side of the probes: 0 for R, 1 for S.

    Members
    -------
    i : In(stream.Signature(node_result(parameters, levels)))
        Results of the side's probes.
    o : Out(stream.Signature(result_word(parameters)))
    """

    def __init__(self, parameters, *, side):
        self.parameters = parameters
        self.side = side
        self.latency = 1
        levels = len(tree_levels(parameters.cores, parameters.fan_in))
        super().__init__(
            {
                "i": In(stream.Signature(node_result(parameters, levels))),
                "o": Out(stream.Signature(result_word(parameters))),
            }
        )

    def elaborate(self, platform):
        m = Module()
        if self.parameters.tuples_per_word == 2:
            self.elaborate_rows(m)
        else:
            self.elaborate_results(m)
        return reset_nearby(m, platform)

    def elaborate_results(self, m):
        """Put a register behind the converted results."""
        m.submodules.output = output = StreamRegister(result_layout(self.parameters))
        connect(m, output.o, flipped(self.o))
        m.d.comb += [
            output.i.valid.eq(self.i.valid),
            self.i.ready.eq(output.i.ready),
        ]
        side_result.elaborate_side_result(
            m, self.parameters, self.i.payload, output.i.payload, self.side
        )

    def elaborate_rows(self, m):
        """Emit the rows of the pairing, which come from its register, as words."""
        m.submodules.pairing = pairing = ResultPairing(self.parameters, side=self.side)
        connect(m, flipped(self.i), pairing.i)
        row = pairing.o
        m.d.comb += [
            self.o.valid.eq(row.valid),
            self.o.payload.one.eq(row.payload.one),
            self.o.payload.two.eq(row.payload.two),
            row.ready.eq(self.o.ready),
        ]

# SPDX-License-Identifier: Apache-2.0
"""The root of an aggregate: tuples are prepared, and panes end between them."""

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hdl.local_reset import reset_nearby

from .pane_clock import PaneClock
from .tuple_preparation import TuplePreparation
from .words import aggregate_word, core_word

__all__ = ["AggregateIngress"]


class AggregateIngress(wiring.Component):
    """Turn input words into the words of cores, for tuples of non-decreasing panes.

    No word is taken while reset is on its way (:mod:`hdl.local_reset`).

    Latency: :attr:`latency` cycles. Throughput: 1 word per cycle, less what panes take
    (:class:`~hdl.aggregate.pane_clock.PaneClock`).

    Parameters
    ----------
    parameters : AggregateParameters
        Parameters of the accelerator.

    Members
    -------
    i : In(stream.Signature(aggregate_word(parameters)))
    o : Out(stream.Signature(core_word(parameters)))
    """

    def __init__(self, parameters):
        self.preparation = TuplePreparation(parameters)
        self.clock = PaneClock(parameters)
        self.latency = self.preparation.latency + self.clock.latency
        super().__init__(
            {
                "i": In(stream.Signature(aggregate_word(parameters))),
                "o": Out(stream.Signature(core_word(parameters))),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.preparation = preparation = self.preparation
        m.submodules.clock = clock = self.clock
        m.d.comb += [
            preparation.i.payload.eq(self.i.payload),
            preparation.i.valid.eq(self.i.valid),
            # A register that is still in reset would lose the word.
            self.i.ready.eq(preparation.i.ready & ~ResetSignal()),
        ]
        connect(m, preparation.o, clock.i)
        connect(m, clock.o, flipped(self.o))
        return reset_nearby(m, platform)

# SPDX-License-Identifier: Apache-2.0
"""Population count through a registered adder tree."""

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.tree import tree_levels

__all__ = ["PopulationCount"]


class PopulationCount(wiring.Component):
    """Count the ones of a word through a tree of registered sums of four.

    Latency: ``len(tree_levels(width, 4))`` cycles. Throughput: 1 word per cycle.

    Parameters
    ----------
    width : int
        Width of the word in bits, at least one.

    Members
    -------
    update : In(1)
        Count ``i``; otherwise ``o`` keeps its value.
    i : In(width)
    o : Out(range(width + 1))
    """

    ARITY = 4

    def __init__(self, width):
        self.width = width
        self.latency = len(tree_levels(width, self.ARITY))
        super().__init__({"update": In(1), "i": In(width), "o": Out(range(width + 1))})

    def elaborate(self, platform):
        m = Module()
        update, counts, most = self.update, list(self.i), 1
        for level in range(self.latency):
            most = min(most * self.ARITY, self.width)
            sums = []
            for n in range(0, len(counts), self.ARITY):
                total = Signal(
                    range(most + 1), name=f"sum_{level}_{n // self.ARITY}", reset_less=True
                )
                with m.If(update):
                    m.d.sync += total.eq(sum(counts[n : n + self.ARITY]))
                sums.append(total)
            delayed = Signal(name=f"update_{level}")
            m.d.sync += delayed.eq(update)
            update, counts = delayed, sums
        m.d.comb += self.o.eq(counts[0])
        return m

# SPDX-License-Identifier: Apache-2.0
"""Comparison counter for digests: derives the comparisons of a pass from its spans."""

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from hdl.words.spans import span_layout

__all__ = ["SpanCount"]


class SpanCount(wiring.Component):
    """Count how many keys of their windows the probes of a pass are compared with.

    The digest scan has no mask that tells which lanes of a row lie inside which span. So the sizes
    of the spans are summed as probes are added, and the sum is paid out row by row: as many
    comparisons as a row can have, until none are left. The total at the end of the pass is the
    same.

    Latency: 1 cycle from ``add`` to ``begin`` and from ``step`` to ``comparisons``. Throughput: 1
    probe and 1 row per cycle.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator.

    Members
    -------
    add : In(1)
        A probe that sees ``span`` joins the next pass.
    span : In
    begin : In(1)
        The next pass begins.
    step : In(1)
        A row of the pass is read.
    comparisons : Out
        Comparisons attributed to the row that was read a cycle ago.
    """

    def __init__(self, parameters):
        self.parameters = parameters
        self.most = parameters.lanes * parameters.probes
        super().__init__(
            {
                "add": In(1),
                "span": In(span_layout(parameters)),
                "begin": In(1),
                "step": In(1),
                "comparisons": Out(range(self.most + 1)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        lanes, rows = self.parameters.lanes, self.parameters.ring_rows
        tail, head = self.span.tail, self.span.head
        size = Signal(ceil_log2(lanes * rows) + 1, reset_less=True)
        added = Signal()
        apart = (head.row - tail.row)[: len(head.row)]
        m.d.sync += [
            added.eq(self.add),
            size.eq(apart * lanes + head.lane - tail.lane),
        ]
        collected = Signal(range(lanes * rows * self.parameters.probes + 1))
        total = Signal.like(collected)
        left = Signal.like(collected)
        full = Signal()  # at least as many are left as a row can have
        after = Signal.like(left)
        m.d.comb += [
            total.eq(collected + Mux(added, size, 0)),
            full.eq(left >= self.most),
            after.eq(Mux(self.step, Mux(full, left - self.most, 0), left)),
        ]
        with m.If(self.begin):
            m.d.sync += [left.eq(total), collected.eq(0)]
        with m.Else():
            m.d.sync += [left.eq(after), collected.eq(total)]
        m.d.sync += self.comparisons.eq(Mux(self.step, Mux(full, self.most, left), 0))
        return m

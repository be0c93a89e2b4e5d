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

    Latency: 1 cycle from ``add`` to ``begin``, and :attr:`latency` cycles from ``step`` to
    ``comparisons``: 1, and 2 more if the number of lanes is not a power of two, which takes a
    multiplication. Throughput: 1 probe and 1 row per cycle.

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
        Comparisons attributed to the row that was read :attr:`latency` cycles ago.
    """

    def __init__(self, parameters):
        self.parameters = parameters
        self.most = parameters.lanes * parameters.probes
        self.latency = 1 if parameters.lanes.bit_count() == 1 else 3
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
        size = Signal(ceil_log2(lanes * rows) + 1, reset_less=True)
        # The size comes late, so everything else does.
        late = self.latency - 1
        added, begin, step = (
            delayed(m, value, late) for value in (self.add, self.begin, self.step)
        )
        was_added = Signal(name="added")
        m.d.sync += was_added.eq(added)
        self.elaborate_size(m, size)
        collected = Signal(range(lanes * rows * self.parameters.probes + 1))
        total = Signal.like(collected)
        left = Signal.like(collected)
        full = Signal()  # at least as many are left as a row can have
        after = Signal.like(left)
        m.d.comb += [
            total.eq(collected + Mux(was_added, size, 0)),
            full.eq(left >= self.most),
            after.eq(Mux(step, Mux(full, left - self.most, 0), left)),
        ]
        with m.If(begin):
            m.d.sync += [left.eq(total), collected.eq(0)]
        with m.Else():
            m.d.sync += [left.eq(after), collected.eq(total)]
        m.d.sync += self.comparisons.eq(Mux(step, Mux(full, self.most, left), 0))
        return m

    def elaborate_size(self, m, size):
        """Compute the number of keys in ``span``, in :attr:`latency` cycles."""
        lanes, tail, head = self.parameters.lanes, self.span.tail, self.span.head
        apart = (head.row - tail.row)[: len(head.row)]
        if self.latency == 1:
            m.d.sync += size.eq(apart * lanes + head.lane - tail.lane)
            return
        rows_apart = Signal.like(apart, reset_less=True)
        keys_apart = Signal(len(apart) + len(head.lane), reset_less=True)
        ahead = Signal(signed(len(head.lane) + 1), reset_less=True)  # lanes, of the head
        m.d.sync += [
            rows_apart.eq(apart),
            ahead.eq(head.lane - tail.lane),
            keys_apart.eq(rows_apart * lanes),
            size.eq(keys_apart + delayed(m, ahead, 1)),
        ]


def delayed(m, value, cycles):
    """Return ``value`` a number of cycles later."""
    for _ in range(cycles):
        later = Signal.like(value)
        m.d.sync += later.eq(value)
        value = later
    return value

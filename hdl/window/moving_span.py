# SPDX-License-Identifier: Apache-2.0
"""Where the keys of the window are in the ring of a region."""

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from hdl.words.spans import pointer_layout, span_layout

__all__ = ["MovingSpan"]


class MovingSpan(wiring.Component):
    """Move the ends of the span as keys come and leave.

    Latency: 1 cycle. Throughput: a key that comes and one that leaves per cycle.

    Parameters
    ----------
    parameters : JoinParameters
        Of the accelerator.

    Members
    -------
    restart : In(1)
        The span is empty from here on, and begins with the ring's first row. Reset does the same,
        of two cycles at least.
    comes, leaves : In(1)
        A key comes, at ``span.head``; the oldest one leaves.
    span : Out(span_layout(parameters))
        From a register, as are the others.
    second, stop : Out
        The row after the first one that holds any keys, and after the last one.
    """

    def __init__(self, parameters):
        self.parameters = parameters
        self.latency = 1
        row = pointer_layout(parameters)["row"].shape
        super().__init__(
            {
                "restart": In(1),
                "comes": In(1),
                "leaves": In(1),
                "span": Out(span_layout(parameters)),
                "second": Out(row, init=1),
                "stop": Out(row),
            }
        )

    def elaborate(self, platform):
        m = Module()
        span, second, stop = (
            Signal.like(member, name=f"{name}_now", reset_less=True)
            for name, member in (("span", self.span), ("second", self.second), ("stop", self.stop))
        )
        m.d.comb += [self.span.eq(span), self.second.eq(second), self.stop.eq(stop)]
        with m.If(self.comes):
            m.d.sync += span.head.eq(self.following(span.head))
            with m.If(span.head.lane == 0):
                m.d.sync += stop.eq(stop + 1)
        with m.If(self.leaves):
            m.d.sync += span.tail.eq(self.following(span.tail))
            with m.If(span.tail.lane == self.parameters.lanes - 1):
                m.d.sync += second.eq(second + 1)
        with m.If(self.restart):
            m.d.sync += [Value.cast(span).eq(0), stop.eq(0), second.eq(1)]
        return m

    def following(self, pointer):
        """Return the ring position after ``pointer``."""
        lanes = self.parameters.lanes
        wraps = pointer.lane == lanes - 1
        lane = Mux(wraps, 0, pointer.lane + 1)[: ceil_log2(lanes)]
        row = (pointer.row + wraps)[: pointer_layout(self.parameters)["row"].width]
        return Cat(lane, row)

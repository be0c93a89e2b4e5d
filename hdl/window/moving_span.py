# SPDX-License-Identifier: Apache-2.0
"""Where the ring of a region holds the keys of the window."""

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from hdl.words.spans import pointer_layout, span_layout

__all__ = ["MovingSpan"]


class MovingSpan(wiring.Component):
    """Move the ends of the span as keys come and leave.

    Latency: 1 cycle. Throughput: 1 key that comes and 1 key that leaves per cycle.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator.

    Members
    -------
    restart : In(1)
        Empty the span, and let it begin in the first row of the ring. A reset of at least two
        cycles has the same effect.
    comes, leaves : In(1)
        A key comes, and is written at ``span.head``; the oldest key leaves.
    span : Out(span_layout(parameters))
        From a register, as are ``second`` and ``stop``.
    second, stop : Out
        The row after the first row that holds keys of the span, and the row after the last such
        row.
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

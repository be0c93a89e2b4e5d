# SPDX-License-Identifier: Apache-2.0
"""Counter along one field of the grid: the field's bits of the bucket number, the steps left."""

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.words.inputs import coordinate_layout

from .layouts import bank_count

__all__ = ["CellDigit"]


class CellDigit(wiring.Component):
    """Count the steps of a probe along one field of the grid.

    A step is one cell, or two neighbouring cells if the field owns the lowest bit of the bucket
    number, which selects the bank of the head table.

    Latency: 1 cycle from ``begin`` or ``step`` to ``ended`` and ``both``; 2 from ``configure`` to
    ``mask``, ``stride`` and ``paired``. Throughput: 1 step per cycle.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator; its comparator is a band.

    Members
    -------
    configure : In(1)
        Set the field's part of the bucket number to ``part``; only while no probe is in progress.
    part : In(coordinate_layout(parameters))
    mask : Out(bucket_width)
        Bits of the bucket number that belong to the field.
    stride : Out(bucket_width)
        What a step adds to the bucket number; undefined if the part has no bits.
    paired : Out(1)
        A step covers two cells.
    begin : In(1)
        Start a range of ``extent + 1`` cells; ``step`` is ignored in this cycle.
    extent : In(bucket_width)
    step : In(1)
        Advance; after the last step, the same range starts again.
    ended : Out(1)
        The current step is the last one; from a register.
    both : Out(1)
        The current step covers two cells.
    """

    def __init__(self, parameters):
        self.parameters = parameters
        self.latency = 1
        bits = parameters.bucket_width
        super().__init__(
            {
                "configure": In(1),
                "part": In(coordinate_layout(parameters)),
                "mask": Out(bits),
                "stride": Out(bits),
                "paired": Out(1),
                "begin": In(1),
                "extent": In(bits),
                "step": In(1),
                "ended": Out(1),
                "both": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        self.elaborate_part(m)
        # Steps of the range after the first one, and steps left after the current one.
        whole, left = (
            Signal.like(self.extent, name=name, reset_less=True) for name in ("whole", "left")
        )
        single = Signal(reset_less=True)  # the range has a single step
        even = Signal(reset_less=True)  # the last step covers two cells, if paired
        steps = Mux(self.paired, self.extent >> 1, self.extent)
        one = ~self.extent[1:].any() & (self.paired | ~self.extent[0])
        with m.If(self.begin):
            m.d.sync += [
                whole.eq(steps),
                left.eq(steps),
                single.eq(one),
                self.ended.eq(one),
                even.eq(self.extent[0]),
            ]
        with m.Elif(self.step):
            m.d.sync += [
                left.eq(Mux(self.ended, whole, left - 1)),
                self.ended.eq(Mux(self.ended, single, left == 1)),
            ]
        m.d.comb += self.both.eq(self.paired & (even | ~self.ended))
        return m

    def elaborate_part(self, m):
        """Register the field's part; derive ``mask``, ``stride`` and ``paired`` a cycle later."""
        configured = Signal()
        part = Signal.like(self.part, reset_less=True)
        end = Signal(range(2 * len(self.mask) + 1), reset_less=True)  # one past the part's last bit
        m.d.sync += configured.eq(self.configure)
        with m.If(self.configure):
            m.d.sync += [part.eq(self.part), end.eq(self.part.place + self.part.width)]
        paired = (part.place == 0) & (part.width != 0) & (bank_count(self.parameters) > 1)
        own = Cat((part.place <= bit) & (end > bit) for bit in range(len(self.mask)))
        with m.If(configured):
            m.d.sync += [
                self.mask.eq(own),
                self.stride.eq(Mux(paired, 2, 1 << part.place)),
                self.paired.eq(paired),
            ]

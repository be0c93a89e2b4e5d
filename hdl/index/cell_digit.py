# SPDX-License-Identifier: Apache-2.0
"""One field of a grid: which bits of a bucket's number it has, and how many steps are left."""

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.words.inputs import coordinate_layout

from .layouts import bank_count

__all__ = ["CellDigit"]


class CellDigit(wiring.Component):
    """Count the steps that a probe takes along one field of the grid.

    A step is one cell; two neighbouring cells where the field has the lowest bit of the bucket's
    number, which tells the banks of the head table apart.

    Latency: 1 cycle from ``begin`` or ``step`` to ``ended`` and ``both``; 2 from ``configure`` to
    ``mask``, ``stride`` and ``paired``. Throughput: a step per cycle.

    Parameters
    ----------
    parameters : JoinParameters
        Of the accelerator; a band.

    Members
    -------
    configure : In(1)
        The field takes ``part``; no probe is under way.
    part : In(coordinate_layout(parameters))
    mask : Out(bucket_width)
        The field's bits in a bucket's number.
    stride : Out(bucket_width)
        What a step adds there; anything if the part has no bits.
    paired : Out(1)
        A step is two cells.
    begin : In(1)
        Begin with a range of ``extent`` more cells than one; ``step`` means nothing then.
    extent : In(bucket_width)
    step : In(1)
        Go on; after the last step, begin with the same range again.
    ended : Out(1)
        This is the last step; from a register.
    both : Out(1)
        This step has two cells.
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
        # Steps after the first one, steps after this one.
        whole, left = (
            Signal.like(self.extent, name=name, reset_less=True) for name in ("whole", "left")
        )
        single = Signal(reset_less=True)  # there is one step
        even = Signal(reset_less=True)  # the last step has two cells, if paired
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
        """Keep the part of the field, and work out in the next cycle what follows from it."""
        configured = Signal()
        part = Signal.like(self.part, reset_less=True)
        end = Signal(range(2 * len(self.mask) + 1), reset_less=True)  # the bit after its last one
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

# SPDX-License-Identifier: Apache-2.0
"""A reset that lasts as long as an accelerator needs it to."""

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.local_reset import LEAST_CYCLES

__all__ = ["ResetStretch"]


class ResetStretch(wiring.Component):
    """Stretch a reset of one cycle to :attr:`cycles` cycles.

    The output comes from a register. It is high from the cycle after power-up, after reset or after
    ``restart``, and :attr:`cycles` cycles longer than these last.

    Latency: 1 cycle. Throughput: not applicable.

    Parameters
    ----------
    cycles : int
        How long a reset lasts at the least.

    Members
    -------
    restart : In(1)
        Begin a reset.
    reset : Out(1)
    """

    def __init__(self, cycles=LEAST_CYCLES):
        if cycles < 1:
            raise ValueError(f"Reset must last at least one cycle, not {cycles!r}")
        self.cycles = cycles
        self.latency = 1
        super().__init__({"restart": In(1), "reset": Out(1, init=1)})

    def elaborate(self, platform):
        m = Module()
        left = Signal(range(self.cycles), init=self.cycles - 1)
        with m.If(self.restart):
            m.d.sync += [left.eq(self.cycles - 1), self.reset.eq(1)]
        with m.Elif(left == 0):
            m.d.sync += self.reset.eq(0)
        with m.Else():
            m.d.sync += left.eq(left - 1)
        return m

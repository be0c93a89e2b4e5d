# SPDX-License-Identifier: Apache-2.0
"""Why a core has failed: because it stopped, or because it read a flipped bit."""

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["ParityWatch"]


class ParityWatch(wiring.Component):
    """Tell the gate of a core that a bit has flipped, and keep why the core has failed.

    Latency: 1 cycle from ``wrong`` to ``told``, and from there to ``cause`` and ``fails``.
    Throughput: both sides in every cycle.

    Members
    -------
    wrong : In(2)
        The core has read a flipped bit of its tuples of R (bit 0), of S (bit 1).
    otherwise : In(1)
        The core has just failed for another reason.
    failed : In(1)
        The core has failed, from the cycle after ``told`` or ``otherwise`` on.
    restore : In(1)
        The core works again from the next cycle on.
    told : Out(1)
        A flipped bit was read; from a register.
    cause : Out(2)
        Sides that were ``wrong`` when the core failed; zero if it failed for another reason.
    fails : Out(1)
        The core has just failed; for one cycle, from a register.
    """

    def __init__(self):
        self.latency = 1
        flags = {name: In(1) for name in ("otherwise", "failed", "restore")}
        super().__init__(
            {"wrong": In(2), **flags, "told": Out(1), "cause": Out(2), "fails": Out(1)}
        )

    def elaborate(self, platform):
        m = Module()
        sides = Signal(2)
        m.d.comb += self.told.eq(sides.any())
        m.d.sync += [
            sides.eq(self.wrong),
            self.fails.eq((self.told | self.otherwise) & ~self.failed & ~self.restore),
        ]
        with m.If(~self.failed):
            m.d.sync += self.cause.eq(sides)
        return m

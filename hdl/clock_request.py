# SPDX-License-Identifier: Apache-2.0
"""When the clock of a core may be stopped."""

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

__all__ = ["ClockRequest"]


class ClockRequest(wiring.Component):
    """Ask for the clock while anything happens in a core, and for some cycles after that.

    What happens is seen from outside: a word that waits, an engine at work, a result. Behind what
    is seen, registers follow for as many cycles as the core has stages. When these have passed,
    every register holds what it would be given again.

    ``wanted`` rises in the cycle in which a word arrives, so a clock gate that samples it before
    the edge passes the edge that takes the word. The component itself needs no clock while
    ``wanted`` is low.

    Latency: 0 cycles to rise, :attr:`linger` to fall. Throughput: 1 word per cycle.

    Parameters
    ----------
    stages : int
        Most registers that follow one another in the core.

    Members
    -------
    active : In(1)
        Something happens in this cycle.
    wanted : Out(1)
        The core needs the next clock edge.
    """

    def __init__(self, stages):
        if stages < 1:
            raise ValueError(f"A core has at least one stage, not {stages!r}")
        self.latency = 0
        self.linger = 1 << ceil_log2(stages + 1)
        super().__init__({"active": In(1), "wanted": Out(1)})

    def elaborate(self, platform):
        m = Module()
        # It counts up to a power of two, whose only bit says that enough cycles have passed.
        passed = Signal(range(self.linger + 1))
        m.d.comb += self.wanted.eq(self.active | ~passed[-1])
        with m.If(self.active):
            m.d.sync += passed.eq(0)
        with m.Elif(~passed[-1]):
            m.d.sync += passed.eq(passed + 1)
        return m

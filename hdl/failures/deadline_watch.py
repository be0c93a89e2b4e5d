# SPDX-License-Identifier: Apache-2.0
"""Deadlines of conditions that must not last."""

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

__all__ = ["DeadlineWatch"]


class DeadlineWatch(wiring.Component):
    """Tell when one of several conditions has held for too long without a break.

    One counter serves all conditions. It ticks every :attr:`period` cycles, and a condition that
    held in every cycle from one tick to the next is reported. So a condition that holds for fewer
    than :attr:`period` cycles is never reported, and one that holds for :attr:`limit` cycles always
    is.

    Latency: 1 cycle from the tick to ``expired``. Throughput: every condition is watched in every
    cycle.

    Parameters
    ----------
    cycles : int
        Number of cycles that a condition may hold, at least one.
    conditions : int
        Number of conditions, at least one.

    Attributes
    ----------
    period : int
        Number of cycles from tick to tick: ``cycles``, rounded up to a power of two.
    limit : int
        Number of cycles after which a condition is reported at the latest, including the latency.

    Members
    -------
    holds : In(conditions)
        Which conditions hold.
    expired : Out(1)
        A condition has held for too long; for one cycle, from a register.
    """

    def __init__(self, cycles, *, conditions):
        for name, value in (("cycles", cycles), ("conditions", conditions)):
            if value < 1:
                raise ValueError(f"Number of {name} must be at least one, not {value!r}")
        self.cycles = cycles
        self.conditions = conditions
        self.latency = 1
        self.period = 1 << ceil_log2(cycles)
        self.limit = 2 * self.period + self.latency
        super().__init__({"holds": In(conditions), "expired": Out(1)})

    def elaborate(self, platform):
        m = Module()
        count = Signal(range(self.period))
        tick = Signal()
        # Conditions that have held in every cycle since the last tick.
        lasting = Signal(self.conditions)
        still = lasting & self.holds
        m.d.comb += tick.eq(count == self.period - 1)
        m.d.sync += [
            count.eq(count + 1),
            lasting.eq(Mux(tick, self.holds, still)),
            self.expired.eq(tick & still.any()),
        ]
        return m

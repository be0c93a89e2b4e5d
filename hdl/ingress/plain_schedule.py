# SPDX-License-Identifier: Apache-2.0
"""When groups end, without the flags that only a clock needs."""

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["PlainSchedule"]


class PlainSchedule(wiring.Component):
    """What a :class:`hdl.ingress.group_schedule.GroupSchedule` decides, from three counters.

    No flags say ahead what a counter is about to reach: it is added to first, and then compared.

    Latency: 0 cycles. Throughput: 1 tuple per cycle.

    Parameters
    ----------
    parameters : JoinParameters
        Of the accelerator.

    Members
    -------
    period : In
        Probes from star to star in force, at least one.
    free : In(1)
        It is longer than a group.
    probe, other, finish : In(1)
        At hand: a probe of this side, a tuple of the other one, a control word that ends
        everything.
    close, star : Out(1)
        The group ends with the word at hand; … and is followed by a star.
    advance : In(1)
        The word at hand is taken.
    """

    def __init__(self, parameters):
        self.parameters = parameters
        self.latency = 0
        super().__init__(
            {
                "period": In(parameters.probe_bits + 1),
                "free": In(1),
                "probe": In(1),
                "other": In(1),
                "finish": In(1),
                "close": Out(1),
                "star": Out(1),
                "advance": In(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        probes = self.parameters.probes
        limit = self.parameters.cores * self.parameters.slack
        grouped = Signal(range(probes + 1))  # probes in the open group
        passed = Signal(range(limit + 1))  # tuples of the other side since it began
        starless = Signal.like(self.period)  # probes since the last star
        # … with the word at hand.
        now_grouped, now_passed, now_starless = map(Signal.like, (grouped, passed, starless))
        due = now_starless == self.period
        m.d.comb += [
            now_grouped.eq(grouped + self.probe),
            now_passed.eq(passed + (self.other & (grouped != 0))),
            now_starless.eq(starless + self.probe),
            self.close.eq(self.finish | due | (now_grouped == probes) | (now_passed == limit)),
            self.star.eq(Mux(self.finish, starless != 0, due | (self.close & ~self.free))),
        ]
        with m.If(self.advance):
            m.d.sync += [
                grouped.eq(Mux(self.close, 0, now_grouped)),
                passed.eq(Mux(self.close, 0, now_passed)),
                starless.eq(Mux(self.star | self.finish, 0, now_starless)),
            ]
        return m

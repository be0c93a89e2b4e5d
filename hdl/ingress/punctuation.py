# SPDX-License-Identifier: Apache-2.0
"""Groups and stars: when the precision in force ends the groups of both sides."""

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from .group_schedule import GroupSchedule

__all__ = ["Punctuation"]


class Punctuation(wiring.Component):
    """Decide which groups the word at hand closes, and which of them are followed by a star.

    The punctuation keeps the precision in force, which is the period from star to star, and a
    :class:`GroupSchedule` for each side. After reset, a star follows every probe.

    Latency: 0 cycles. Throughput: 1 word per cycle.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator.

    Members
    -------
    probes : In(2)
        A tuple of side R (bit 0) or S (bit 1) is at hand. Both bits are high only if
        ``parameters.side_by_side``.
    finish : In(1)
        The word at hand closes the groups of both sides.
    set_precision : In(1)
        The word at hand also begins the precision that ``wanted``, ``single`` and ``unordered``
        say.
    wanted : In
        Probes from star to star; zero for no stars but those that ``finish`` brings.
    single, unordered : In(1)
        ``wanted`` is one; ``wanted`` is longer than a group, or zero.
    advance : In(1)
        The word at hand is taken.
    close, star : Out(2)
        For each side, the word at hand ends its group; a star follows the group.
    limit : In
        See :class:`GroupSchedule`.
    free : Out(1)
        From the word at hand on, mergers need not keep the order of cores.
    starring : Out(1)
        The word is taken, and the combiner has to keep the order of the stars that it brings.

    If ``parameters.side_by_side``, also:

    first : In(1)
        If two tuples are at hand, the side of the one that comes first.
    apart : Out(1)
        If two tuples are at hand, the first one ends the group of the other side, so they have to
        be taken one after the other.
    s_first : Out(1)
        Two tuples are at hand, and if they end the groups of both sides, the star of S comes first.
    """

    #: Members for two tuples that are at hand together.
    PAIRED = {"first": In(1), "apart": Out(1), "s_first": Out(1)}

    def __init__(self, parameters):
        self.parameters = parameters
        self.latency = 0
        super().__init__(
            {
                "probes": In(2),
                **(self.PAIRED if parameters.side_by_side else {}),
                "finish": In(1),
                "set_precision": In(1),
                "wanted": In(parameters.probe_bits + 1),
                "single": In(1),
                "unordered": In(1),
                "limit": In(range(parameters.cores * parameters.slack + 1)),
                "advance": In(1),
                "close": Out(2),
                "star": Out(2),
                "free": Out(1),
                "starring": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        period = Signal(self.parameters.probe_bits + 1, init=1)
        single = Signal(init=1)
        free = Signal()
        next_period = Mux(self.set_precision, self.wanted, period)
        next_single = Mux(self.set_precision, self.single, single)
        next_free = Mux(self.set_precision, self.unordered, free)
        m.d.comb += [
            self.free.eq(next_free),
            self.starring.eq(self.advance & ~free & self.star.any()),
        ]
        with m.If(self.advance):
            m.d.sync += [period.eq(next_period), single.eq(next_single), free.eq(next_free)]

        schedules = []
        for side in range(2):
            m.submodules[f"schedule_{side}"] = schedule = GroupSchedule(self.parameters)
            m.d.comb += [
                schedule.period.eq(next_period),
                schedule.single.eq(next_single),
                schedule.free.eq(free),
                schedule.limit.eq(self.limit),
                schedule.probe.eq(self.probes[side]),
                schedule.other.eq(self.probes[1 - side]),
                schedule.finish.eq(self.finish),
                schedule.advance.eq(self.advance),
                self.close[side].eq(schedule.close),
                self.star[side].eq(schedule.star),
            ]
            schedules.append(schedule)
        if self.parameters.side_by_side:
            self.elaborate_pair(m, *schedules)
        return m

    def elaborate_pair(self, m, of_r, of_s):
        """Give two tuples that are at hand the outcome of one after the other.

        If their word ends both groups, the star of R usually comes first, as it does after a single
        tuple that ends both. The star of S comes first if the tuple of S comes first and ends its
        own group. With one tuple at hand, ``first`` has no meaning.
        """
        m.d.comb += [
            of_r.leads.eq(~self.first),
            of_s.leads.eq(self.first),
            self.apart.eq(Mux(self.first, of_r.exhausted, of_s.exhausted)),
            self.s_first.eq(self.probes.all() & self.first & of_s.ripe),
        ]

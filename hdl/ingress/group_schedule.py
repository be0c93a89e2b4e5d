# SPDX-License-Identifier: Apache-2.0
"""When groups of probes end, and when stars follow them (RAP, SplitJoin section 5)."""

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["GroupSchedule"]


class GroupSchedule(wiring.Component):
    """Decide when one side's group of probes ends, and when a star follows it (RAP, section 5).

    A group ends with its ``probes``-th probe, or with the last probe before a star. It also ends
    when ``limit`` tuples of the other side have come since it began: then no region may
    store more of them while the group still waits. While the order of cores matters (``free`` is
    low), a star follows every group.

    If ``parameters.side_by_side``, a probe and a tuple of the other side may be at hand together.
    The outcome is the same as that of one after the other. In either order they end at most one
    group, with one exception: if the group is ``exhausted``, a tuple of the other side that comes
    first would end a group of its own. The caller must not present the two together in that case.

    After reset, no group is open, and a star follows the first probe.

    Latency: 0 cycles. Throughput: 1 word per cycle.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator.

    Members
    -------
    period : In
        Probes from star to star; zero if no star is wanted but by ``finish``. With ``finish``, the
        period that follows.
    single : In(1)
        ``period`` is one.
    limit : In
        ``slack`` times the number of cores that store, at least two; changes only after a
        ``finish``.
    free : In(1)
        The period in force is longer than a group, or zero.
    probe : In(1)
        A probe of this side is at hand.
    other : In(1)
        A tuple of the other side is at hand.
    finish : In(1)
        A control word that ends all groups is at hand.
    close, star : Out(1)
        The group ends with the word at hand; a star follows the group.
    advance : In(1)
        The word at hand is taken.

    If ``parameters.side_by_side``, also:

    leads : In(1)
        If both are at hand, the probe comes first.
    exhausted : Out(1)
        The next tuple of the other side ends the group; from a register.
    ripe : Out(1)
        The probe at hand ends the group, whatever else is at hand.
    """

    #: Members for a probe and a tuple of the other side that are at hand together.
    PAIRED = {"leads": In(1), "exhausted": Out(1), "ripe": Out(1)}

    def __init__(self, parameters):
        self.parameters = parameters
        self.latency = 0
        super().__init__(
            {
                "period": In(parameters.probe_bits + 1),
                "single": In(1),
                "limit": In(range(parameters.cores * parameters.slack + 1)),
                "free": In(1),
                "probe": In(1),
                "other": In(1),
                "finish": In(1),
                "close": Out(1),
                "star": Out(1),
                "advance": In(1),
                **(self.PAIRED if parameters.side_by_side else {}),
            }
        )

    def elaborate(self, platform):
        m = Module()
        probes = self.parameters.probes
        limit = self.limit
        # Every counter has a flag in a register, which says that the next count is the last one.
        begun = Signal()  # the open group has probes
        grouped = Signal(range(probes + 1), reset_less=True)  # number of these probes, if any
        filled = Signal(init=probes == 1)  # the group is one probe short of full
        # Tuples of the other side since the group began.
        passed = Signal.like(limit, name="passed", reset_less=True)
        exhausted = Signal()  # `passed` is one below the limit, which is two at the least
        # Probes to the next star; zero if none is wanted, as a count of one is its last.
        left = Signal(self.parameters.probe_bits + 1, init=1)
        due = Signal(init=1)  # a star follows the next probe
        unstarred = Signal()  # probes have come since the last star

        # The two decisions are made separately: deriving one from the other would take longer.
        starred = self.probe & (due | (filled & ~self.free)) | (self.other & exhausted & ~self.free)
        m.d.comb += [
            self.close.eq(self.finish | (self.probe & (due | filled)) | (self.other & exhausted)),
            self.star.eq(Mux(self.finish, unstarred, starred)),
        ]
        if self.parameters.side_by_side:
            m.d.comb += [
                self.exhausted.eq(exhausted),
                self.ripe.eq(self.probe & (due | filled)),
            ]
        with m.If(self.advance):
            with m.If(starred | self.finish):
                m.d.sync += [left.eq(self.period), due.eq(self.single), unstarred.eq(0)]
            with m.Elif(self.probe):
                m.d.sync += [left.eq(left - left.any()), due.eq(left == 2), unstarred.eq(1)]
            # The counts start anew with a group, so they need not wait to know whether one ends.
            probes_before = Mux(begun, grouped, 0)
            # The tuple of the other side, if it comes after the probe that begins the group.
            follows = self.other & self.leads if self.parameters.side_by_side else 0
            m.d.sync += [
                grouped.eq(probes_before + self.probe),
                passed.eq(Mux(begun, passed + self.other, follows)),
            ]
            with m.If(self.close):
                m.d.sync += [begun.eq(0), filled.eq(probes == 1), exhausted.eq(0)]
            with m.Elif(self.probe):
                m.d.sync += [begun.eq(1), filled.eq(probes_before == probes - 2)]
                if self.parameters.side_by_side:
                    with m.If(self.other & begun):
                        m.d.sync += exhausted.eq(passed == limit - 2)
                    if self.parameters.slack == 2:
                        # One core's limit is two then, one tuple of which is that beside the probe.
                        with m.Elif(follows):
                            m.d.sync += exhausted.eq(limit == 2)
            with m.Elif(self.other & begun):
                m.d.sync += exhausted.eq(passed == limit - 2)
        return m

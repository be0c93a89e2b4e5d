# SPDX-License-Identifier: Apache-2.0
"""Groups, stars and rounds: when the precision in force ends the groups of both sides."""

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.words.values import rounds_shape

__all__ = ["GroupSchedule", "Punctuation", "RoundMode"]


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
                "period": In(parameters.engine.probe_bits + 1),
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
        probes = self.parameters.engine.probes
        limit = self.limit
        # Every counter has a flag in a register, which says that the next count is the last one.
        begun = Signal()  # the open group has probes
        grouped = Signal(range(probes + 1), reset_less=True)  # number of these probes, if any
        filled = Signal(init=probes == 1)  # the group is one probe short of full
        # Tuples of the other side since the group began.
        passed = Signal.like(limit, name="passed", reset_less=True)
        # The limit less two, a cycle late: no group is open where the limit changes.
        nearly = Signal.like(limit, name="nearly", reset_less=True)
        m.d.sync += nearly.eq(limit - 2)
        exhausted = Signal()  # `passed` is one below the limit, which is two at the least
        # Probes to the next star; zero if none is wanted, as a count of one is its last.
        left = Signal(self.parameters.engine.probe_bits + 1, init=1)
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
        less = left - 1
        with m.If(self.advance):
            with m.If(starred | self.finish):
                m.d.sync += [left.eq(self.period), due.eq(self.single), unstarred.eq(0)]
            with m.Elif(self.probe):
                m.d.sync += [left.eq(Mux(less[-1], 0, less)), due.eq(left == 2), unstarred.eq(1)]
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
                        m.d.sync += exhausted.eq(passed == nearly)
                    if self.parameters.slack == 2:
                        # One core's limit is two then, one tuple of which is that beside the probe.
                        with m.Elif(follows):
                            m.d.sync += exhausted.eq(limit == 2)
            with m.Elif(self.other & begun):
                m.d.sync += exhausted.eq(passed == nearly)
        return m


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
                "wanted": In(parameters.engine.probe_bits + 1),
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
        period = Signal(self.parameters.engine.probe_bits + 1, init=1)
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


class RoundMode(wiring.Component):
    """Keep the size of rounds that INNER has set (:mod:`hdl.words.values`).

    Rounds of different cores belong together as long as the cores have stored in the same turns. A
    segment that begins when a window has received tuples gives them other turns. So SEGMENT ends
    the rounds then, and until that window has been emptied, INNER sets the outer order.

    Latency: 0 cycles. Throughput: 1 word per cycle.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator; with rounds.

    Members
    -------
    advance : In(1)
        The word at hand is taken.
    tuples : In(2)
        Sides of the tuples at hand.
    set_precision : In(1)
        The word at hand is PRECISION or INNER.
    wanted : In(rounds_shape(parameters))
        The size of rounds that it asks for, as a code.
    segment : In(1)
        The word at hand begins a segment.
    empties : In(2)
        Sides whose windows the word at hand empties.
    rounds : Out(rounds_shape(parameters))
        The size of rounds from the word at hand on, as a code.
    """

    def __init__(self, parameters):
        self.parameters = parameters
        self.latency = 0
        shape = rounds_shape(parameters)
        super().__init__(
            {
                "advance": In(1),
                "tuples": In(2),
                "set_precision": In(1),
                "wanted": In(shape),
                "segment": In(1),
                "empties": In(2),
                "rounds": Out(shape),
            }
        )

    def elaborate(self, platform):
        m = Module()
        rounds = Signal.like(self.rounds, name="rounds_now")
        received = Signal(2)  # sides whose windows have received tuples since they were emptied
        drifted = Signal(2)  # sides whose windows may hold tuples of two segments
        m.d.comb += self.rounds.eq(rounds)
        with m.If(self.segment & received.any()):
            m.d.comb += self.rounds.eq(0)
        with m.Elif(self.set_precision):
            m.d.comb += self.rounds.eq(Mux(drifted.any(), 0, self.wanted))
        with m.If(self.advance):
            m.d.sync += [
                rounds.eq(self.rounds),
                received.eq((received | self.tuples) & ~self.empties),
                drifted.eq((drifted | (received & self.segment.replicate(2))) & ~self.empties),
            ]
        return m

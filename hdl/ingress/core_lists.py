# SPDX-License-Identifier: Apache-2.0
"""Lists of live cores: which cores store tuples, and in which order, segment by segment."""

from amaranth import *
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["LISTS", "CoreLists"]

#: Lists that are kept: one that is being written, and those of three segments. A window over two
#: changes has three segments, and a power of two makes the numbers of lists wrap by themselves.
LISTS = 4


class CoreLists(wiring.Component):
    """Collect the cores of the next segment, and begin it.

    ``append`` adds a core to the list that is being written. ``begin`` makes this list the one of
    the new segment, and begins another list. A core that does not exist or that is already in the
    list is refused. A segment is refused if its list is empty, or if one of the two sides still
    needs the list that would be written next.

    Latency: 0 cycles to what is refused; 1 cycle to everything else. Throughput: 1 word per cycle.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator.

    Members
    -------
    value : In
        Number of the core to append, if such a core ``exists``.
    exists : In(1)
    append, begin : In(1)
        The word at hand appends a core, or begins a segment.
    advance : In(1)
        The word at hand is taken.
    forget : In(1)
        The word at hand discards the list that is being written.
    needed : In(1)
        A side still needs the list that would be written next.
    core_refused, segment_refused : Out(1)
        The word at hand appends a core, or begins a segment, and is refused: it has no effect.
    begins : Out(1)
        A segment begins with the word that is taken in this cycle.
    newest : Out
        List of the segment in force.
    write, entry, core : Out
        In this cycle, ``core`` is written as number ``entry`` of the list after ``newest``.
    first, last : Out
        For each list, the core of its first entry, and the number of its last one; of the list that
        is being written, as far as it is written.
    plain : Out(LISTS)
        The lists of all cores in the order of their numbers, which are written nowhere. The segment
        in force after reset has such a list.
    limit : Out
        ``slack`` times the number of cores in the segment in force.
    """

    def __init__(self, parameters):
        self.parameters = parameters
        self.latency = 0
        cores = range(max(2, parameters.cores))
        super().__init__(
            {
                "value": In(cores),
                "exists": In(1),
                "append": In(1),
                "begin": In(1),
                "advance": In(1),
                "forget": In(1),
                "needed": In(1),
                "core_refused": Out(1),
                "segment_refused": Out(1),
                "begins": Out(1),
                "newest": Out(range(LISTS)),
                "write": Out(1),
                "entry": Out(cores),
                "core": Out(cores),
                "first": Out(data.ArrayLayout(cores, LISTS)),
                "last": Out(data.ArrayLayout(cores, LISTS)),
                "plain": Out(LISTS),
                "limit": Out(range(parameters.cores * parameters.slack + 1)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        cores, slack = self.parameters.cores, self.parameters.slack
        bits = len(self.core)
        newest = Signal(range(LISTS))
        listed = Signal(cores)  # the cores of the list that is being written
        length = Signal(range(cores + 1))
        vacant = Signal(init=1)  # this list has no cores yet
        staged = Signal.like(self.limit)  # the limit of the segment that this list would begin
        firsts, lasts = (
            Signal(self.first.shape()),
            Signal(self.last.shape(), init=[cores - 1] * LISTS),
        )
        plain = Signal(LISTS, init=1, name="plain_lists")
        limit = Signal.like(self.limit, init=cores * slack, name="limit_now")
        m.d.comb += [
            self.core.eq(self.value),
            self.entry.eq(length[:bits]),
            self.core_refused.eq(self.append & (~self.exists | listed.bit_select(self.value, 1))),
            self.segment_refused.eq(self.begin & (vacant | self.needed)),
            self.write.eq(self.advance & self.append & ~self.core_refused),
            self.begins.eq(self.advance & self.begin & ~self.segment_refused),
            self.newest.eq(newest),
            self.first.eq(firsts),
            self.last.eq(lasts),
            self.plain.eq(plain),
            self.limit.eq(limit),
        ]
        then = (newest + 1)[: len(newest)]
        with m.If(self.write):
            m.d.sync += [
                lasts[then].eq(length),
                plain.bit_select(then, 1).eq(0),
                listed.eq(listed | (Const(1, cores) << self.core)),
                length.eq(length + 1),
                vacant.eq(0),
                staged.eq(staged + slack),
            ]
            with m.If(vacant):
                m.d.sync += firsts[then].eq(self.core)
        with m.If(self.begins):
            m.d.sync += [newest.eq(then), limit.eq(staged)]
        with m.If(self.begins | (self.advance & self.forget)):
            m.d.sync += [listed.eq(0), length.eq(0), vacant.eq(1), staged.eq(0)]
        return m

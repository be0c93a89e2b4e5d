# SPDX-License-Identifier: Apache-2.0
"""Which core stores the next tuple of a side, and which core's oldest tuple leaves for it."""

from amaranth import *
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from .core_lists import LISTS

__all__ = ["ListWalk", "SideTurns"]


def list_members(parameters):
    """Return the members that say what the lists hold.

    They are those of :class:`~hdl.ingress.core_lists.CoreLists`; ``value`` is its ``core``.
    """
    cores = range(max(2, parameters.cores))
    return {
        "newest": In(range(LISTS)),
        "write": In(1),
        "entry": In(cores),
        "value": In(cores),
        "first": In(data.ArrayLayout(cores, LISTS)),
        "last": In(data.ArrayLayout(cores, LISTS)),
        "plain": In(LISTS),
    }


class ListWalk(wiring.Component):
    """Go through the cores of a list, over and over.

    The core at hand is in a register, and so is the place of the core after it. So the memory of
    the lists is read before it is known whether there is a step, which only enables registers.

    Latency: 1 cycle. Throughput: 1 step per cycle.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator.
    lists : int
        Number of lists to remember, a power of two: the newest ones, and that being written.

    Members
    -------
    move : In(1)
        Go on to another core: to the next one of the list or, if the walk is to begin ``anew``, to
        the first one of list ``at``.
    anew : In(1)
    at : In
    core : Out
        The core at hand, from a register.
    newest, write, entry, value, first, last, plain : In
        See :func:`list_members`.
    """

    def __init__(self, parameters, *, lists):
        self.parameters = parameters
        self.lists = lists
        self.latency = 1
        super().__init__(
            {
                "move": In(1),
                "anew": In(1),
                "at": In(range(LISTS)),
                "core": Out(range(max(2, parameters.cores))),
                **list_members(parameters),
            }
        )

    def elaborate(self, platform):
        m = Module()
        bits, cores = len(self.core), self.parameters.cores
        if cores == 1:
            return m  # the only core, whatever the list
        m.submodules.memory = memory = Memory(shape=bits, depth=self.lists << bits, init=[])
        write, read = memory.write_port(), memory.read_port(domain="comb")
        place = ceil_log2(self.lists)  # bits of a list's number that say where it is kept
        core = Signal.like(self.core, name="core_now")
        at, plain = Signal(place, name="list_now"), Signal(init=1, name="plain_now")
        coming, last = Signal.like(core, init=1), Signal.like(core, init=cores - 1, name="last_now")
        m.d.comb += [
            self.core.eq(core),
            write.addr.eq(Cat(self.entry, (self.newest + 1)[:place])),
            write.data.eq(self.value),
            write.en.eq(self.write),
            read.addr.eq(Cat(coming, at)),
        ]
        with m.If(self.move):
            with m.If(self.anew):
                m.d.sync += [
                    core.eq(self.first[self.at]),
                    coming.eq(self.last[self.at].any()),
                    at.eq(self.at[:place]),
                    plain.eq(self.plain.bit_select(self.at, 1)),
                    last.eq(self.last[self.at]),
                ]
            with m.Else():
                m.d.sync += [
                    core.eq(Mux(plain, coming, read.data)),
                    coming.eq(self.following(coming, last)),
                ]
        return m

    def following(self, place, last):
        """Return the place in a list after ``place``."""
        return Mux(place == last, 0, place + 1)[: len(self.core)]


class SideTurns(wiring.Component):
    """Count one side's tuples, for all regions that store them (Algorithms 2 and 4).

    The cores of the list of the segment in force take turns to store a tuple. A segment begins with
    the first core of its list, and empties no window.

    A count-based window expires passively. Once it holds ``size`` tuples, each further tuple
    expires the oldest one. Tuples leave in the order in which they came: those of the oldest
    segment first, by the turns of that segment's list. A segment without tuples is skipped. (Ages
    are not known here: tuples of a time-based window leave by the decision of their region.)

    What the word at hand would change is known from registers, a tuple ahead. Whether it is taken,
    which is known late in the cycle, only enables them.

    Latency: 1 cycle. Throughput: 1 tuple per cycle, whatever segments there are.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator.

    Members
    -------
    tuple, restart, segment : In(1)
        The word at hand holds a tuple of the side, empties the window, or is to begin a segment.
        One of them at most is high. Emptying leaves the list of cores as it is.
    advance : In(1)
        The word at hand is taken.
    begins : In(1)
        The segment at hand begins: the word is taken, and is not refused.
    core, oldest : Out
        The core that stores the next tuple, and the core whose oldest tuple leaves for it; from
        registers.
    expires : Out(1)
        The next tuple expires a tuple; from a register.
    begin : In(1)
        With ``restart``: the new window is of ``size`` tuples, or ``timed``.
    size : In
        1 to ``capacity``.
    timed : In(1)
    newest, write, entry, value, first, last, plain : In
        See :func:`list_members`.
    spans_three : Out(1)
        The window has tuples of three segments, so a fourth one cannot begin; from a register.
    """

    def __init__(self, parameters):
        self.parameters = parameters
        self.latency = 1
        cores = range(max(2, parameters.cores))
        super().__init__(
            {
                "tuple": In(1),
                "restart": In(1),
                "segment": In(1),
                "advance": In(1),
                "begins": In(1),
                "core": Out(cores),
                "oldest": Out(cores),
                "expires": Out(1),
                "begin": In(1),
                "size": In(range(parameters.capacity + 1)),
                "timed": In(1),
                **list_members(parameters),
                "spans_three": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        timed = Signal(name="window_timed")
        comes, restarts = self.advance & self.tuple, self.advance & self.restart
        ends, list_after, empty = self.elaborate_segments(m, comes & ~timed, restarts)
        self.elaborate_total(m, timed, comes, restarts)
        then = (self.newest + 1)[: len(self.newest)]
        # Tuples are stored by the newest list only, while another one is being written.
        m.submodules.storing = storing = ListWalk(self.parameters, lists=2)
        m.submodules.leaving = leaving = ListWalk(self.parameters, lists=LISTS)
        m.d.comb += [
            storing.move.eq(comes | restarts | self.begins),
            storing.anew.eq(~self.tuple),
            storing.at.eq(Mux(self.segment, then, self.newest)),
            self.core.eq(storing.core),
            leaving.move.eq((comes & self.expires) | restarts | (self.begins & empty)),
            leaving.anew.eq(~self.tuple | ends),
            leaving.at.eq(Mux(self.segment, then, Mux(self.tuple, list_after, self.newest))),
            self.oldest.eq(leaving.core),
        ]
        for walk in (storing, leaving):
            m.d.comb += [
                getattr(walk, name).eq(getattr(self, name))
                for name in list_members(self.parameters)
            ]
        return m

    def elaborate_total(self, m, timed, comes, restarts):
        """Tell in a register whether a count-based window is full; only ``restart`` ends that."""
        size = Signal(range(self.parameters.capacity + 1), init=self.parameters.capacity)
        room = Signal.like(size, reset_less=True)
        fresh = Signal(init=1)  # no tuple has come, so there is room for `size`
        left = Mux(fresh, size, room)
        with m.If(restarts & self.begin):
            m.d.sync += [timed.eq(self.timed), size.eq(self.size)]
        with m.If(restarts):
            m.d.sync += [fresh.eq(1), self.expires.eq(0)]
        with m.Elif(comes):
            # Once the window is full, nobody asks for the room.
            m.d.sync += [fresh.eq(0), room.eq(left - 1)]
            m.d.sync += self.expires.eq(self.expires | (~timed & (left == 1)))

    def elaborate_segments(self, m, comes, restarts):
        """Count the tuples of a count-based window by segment.

        A tuple leaves only when another one comes. So if all tuples are of the segment in force,
        their number stays once tuples leave. Those of an older segment become fewer only, and there
        may be tuples of one segment between.

        Return whether the tuple at hand, if one leaves for it, leaves as the last one of an older
        segment; the list of the tuple that leaves after that; and whether there are no tuples.
        """
        count = range(self.parameters.capacity + 1)
        names = ("new", "mid", "old")
        newer, middle, older = (Signal(count, name=f"held_{name}") for name in names)
        has_newer, has_middle, has_older = (Signal(name=f"has_{name}") for name in names)
        single = Signal()  # exactly one tuple is left of the older segment
        ends = has_older & single
        with m.If(restarts):
            m.d.sync += [has.eq(0) for has in (has_newer, has_middle, has_older)]
            m.d.sync += [newer.eq(0), self.spans_three.eq(0)]
        with m.Elif(self.begins):
            m.d.sync += [newer.eq(0), has_newer.eq(0)]
            with m.If(has_older):
                m.d.sync += [middle.eq(newer), has_middle.eq(has_newer), self.spans_three.eq(1)]
            with m.Else():
                m.d.sync += [older.eq(newer), has_older.eq(has_newer), single.eq(newer == 1)]
        with m.Elif(comes):
            m.d.sync += has_newer.eq(1)
            with m.If(~self.expires | has_older):
                m.d.sync += newer.eq(newer + 1)
            with m.If(self.expires & has_older):
                m.d.sync += [older.eq(older - 1), single.eq(older == 2)]
            with m.If(self.expires & ends):
                m.d.sync += [older.eq(middle), has_older.eq(has_middle), single.eq(middle == 1)]
                m.d.sync += [has_middle.eq(0), self.spans_three.eq(0)]
        return ends, (self.newest - has_middle)[: len(self.newest)], ~has_newer & ~has_older

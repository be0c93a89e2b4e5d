# SPDX-License-Identifier: Apache-2.0
"""Turns of the cores: their lists, both sides, and the words that change them."""

from amaranth import *
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from hdl.words.inputs import control_layout, limits_layout

__all__ = ["LISTS", "CoreLists", "ListWalk", "SideTurns", "StorageTurns"]


#: Lists that are kept: one that is being written, and those of three segments. A window over two
#: changes has three segments, and a power of two makes the numbers of lists wrap by themselves.
LISTS = 4


def list_layout(parameters):
    """Return the layout of what is known of a list beside its entries.

    ``number``: where it is kept; the next list has the next number.
    ``first``, ``last``: the core of its first entry, and the number of its last one.
    ``several``: it has more than one entry.
    ``plain``: it has all cores in the order of their numbers, and is written nowhere.
    """
    core = range(max(2, parameters.cores))
    return data.StructLayout(
        {"number": range(LISTS), "first": core, "last": core, "several": 1, "plain": 1}
    )


def entry_members(parameters):
    """Return the members that write the core ``value`` to the place ``entry``.

    A place is the number of an entry, and above it that of its list.
    """
    core = unsigned(ceil_log2(max(2, parameters.cores)))
    return {"write": In(1), "entry": In(core.width + ceil_log2(LISTS)), "value": In(core)}


def known_lists(parameters):
    """Return the layout of the list that is being written, that in force, and the one before."""
    return data.ArrayLayout(list_layout(parameters), LISTS - 1)


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
    core : In
        Number of the core to append, if such a core ``exists``.
    exists : In(1)
    which : In(cores)
        For each core, whether ``core`` is its number.
    append, begin : In(1)
        The word at hand appends a core, or begins a segment.
    advance : In(1)
        The word at hand is taken, and is no segment that is refused.
    forget : In(1)
        The word at hand discards the list that is being written.
    needed : In(1)
        After the word at hand, a side still needs the list that would be written next.
    core_refused, segment_refused : Out(1)
        The word at hand appends a core, or begins a segment, and is refused: it has no effect.
    lists : Out(known_lists(parameters))
        The segment in force after reset has a plain list.
    write, entry, value : Out
        See :func:`entry_members`; from registers, in the cycle after the word.
    limit : Out
        ``slack`` times the number of cores in the segment in force.
    """

    def __init__(self, parameters):
        self.parameters = parameters
        self.latency = 0
        written = {name: member.flip() for name, member in entry_members(parameters).items()}
        super().__init__(
            {
                "core": In(range(max(2, parameters.cores))),
                "exists": In(1),
                "which": In(parameters.cores),
                "append": In(1),
                "begin": In(1),
                "advance": In(1),
                "forget": In(1),
                "needed": In(1),
                "core_refused": Out(1),
                "segment_refused": Out(1),
                "lists": Out(known_lists(parameters)),
                **written,
                "limit": Out(range(parameters.cores * parameters.slack + 1)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        cores, slack = self.parameters.cores, self.parameters.slack
        listed = Signal(cores)  # the cores of the list that is being written
        length = Signal(range(cores + 1))
        vacant = Signal(init=1)  # this list has no cores yet
        barred = Signal(init=1)  # it cannot begin a segment
        layout = list_layout(self.parameters)
        first = Signal(layout["first"].shape, reset_less=True)
        written = Signal(layout)
        all_cores = {"last": cores - 1, "several": cores > 1, "plain": 1}
        kept = Signal(data.ArrayLayout(layout, 2), init=[all_cores, {}])
        limit = Signal.like(self.limit, init=cores * slack, name="limit_now")
        is_new = (self.which & ~listed).any()
        appends = self.advance & self.append & self.exists
        clears = self.advance & (self.begin | self.forget)
        stays = Signal()  # the list has no cores after the word at hand
        m.d.comb += [
            self.core_refused.eq(self.append & ~(self.exists & is_new)),
            self.segment_refused.eq(self.begin & barred),
            stays.eq(clears | (vacant & ~appends)),
            written.number.eq(kept[0].number + 1),
            written.first.eq(first),
            written.last.eq(length - 1),
            written.several.eq(length > 1),
            self.lists.as_value().eq(Cat(written, kept)),
            self.limit.eq(limit),
        ]
        m.d.sync += [
            vacant.eq(stays),
            barred.eq(stays | self.needed),
            self.write.eq(appends & is_new),
            self.entry.eq(Cat(length[: len(self.core)], written.number)),
            self.value.eq(self.core),
        ]
        with m.If(vacant):
            m.d.sync += first.eq(self.core)
        with m.If(appends):
            m.d.sync += listed.eq(listed | self.which)
            with m.If(is_new):
                m.d.sync += length.eq(length + 1)
        with m.If(self.advance & self.begin):
            m.d.sync += [
                kept.as_value().eq(self.lists.as_value()),
                limit.eq(length * slack),
            ]
        with m.If(clears):
            m.d.sync += [listed.eq(0), length.eq(0)]
        return m


class ListWalk(wiring.Component):
    """Go through the cores of a list, over and over.

    The place of the core after the one at hand is in a register. So the memory of the lists is read
    before it is known whether there is a step, which only a flag says behind the registers.

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
        the first one of the list ``to``.
    anew : In(1)
    to : In(list_layout(parameters))
    core : Out
        The core at hand, of one of two registers.
    write, entry, value : In
        See :func:`entry_members`.
    """

    def __init__(self, parameters, *, lists):
        self.parameters = parameters
        self.lists = lists
        self.latency = 1
        super().__init__(
            {
                "move": In(1),
                "anew": In(1),
                "to": In(list_layout(parameters)),
                "core": Out(range(max(2, parameters.cores))),
                **entry_members(parameters),
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
        moved, stepped = Signal(), Signal.like(self.core, reset_less=True)
        core = Signal.like(self.core, name="core_before")
        at, plain = Signal(place, name="list_now"), Signal(init=1, name="plain_now")
        coming, last = Signal.like(core, init=1), Signal.like(core, init=cores - 1, name="last_now")
        m.d.comb += [
            self.core.eq(Mux(moved, stepped, core)),
            write.addr.eq(self.entry),
            write.data.eq(self.value),
            write.en.eq(self.write),
            read.addr.eq(Cat(coming, at)),
        ]
        with m.If(self.move):
            with m.If(self.anew):
                m.d.sync += [
                    coming.eq(self.to.several),
                    at.eq(self.to.number),
                    plain.eq(self.to.plain),
                    last.eq(self.to.last),
                ]
            with m.Else():
                m.d.sync += coming.eq(self.following(coming, last))
        known = Mux(self.anew, self.to.first, coming)
        m.d.sync += [
            moved.eq(self.move),
            stepped.eq(Mux(self.anew | plain, known, read.data)),
            core.eq(self.core),
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
    which is known late in the cycle, only enables others.

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
        The word at hand is taken, and is no segment that is refused.
    core, oldest : Out
        The core that stores the next tuple, and the core whose oldest tuple leaves for it.
    expires : Out(1)
        The next tuple expires a tuple; from a register.
    begin : In(1)
        With ``restart``: the new window is of ``size`` tuples, or ``timed``.
    size : In
        1 to ``capacity``.
    timed : In(1)
    lists, write, entry, value : In
        See :class:`CoreLists`.
    spans_three : Out(1)
        After the word at hand, the window has tuples of three segments, so a fourth one cannot
        begin.
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
                "core": Out(cores),
                "oldest": Out(cores),
                "expires": Out(1),
                "begin": In(1),
                "size": In(range(parameters.capacity + 1)),
                "timed": In(1),
                "lists": In(known_lists(parameters)),
                **entry_members(parameters),
                "spans_three": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        timed = Signal(name="window_timed")
        ends, list_after, empty = self.elaborate_segments(m, timed)
        self.elaborate_total(m, timed)
        written, in_force = self.lists[0], self.lists[1]
        # Tuples are stored by the newest list only, while another one is being written.
        m.submodules.storing = storing = ListWalk(self.parameters, lists=2)
        m.submodules.leaving = leaving = ListWalk(self.parameters, lists=LISTS)
        m.d.comb += [
            storing.move.eq(self.advance & (self.tuple | self.restart | self.segment)),
            storing.anew.eq(~self.tuple),
            storing.to.eq(Mux(self.segment, written, in_force)),
            self.core.eq(storing.core),
            leaving.move.eq(
                self.advance & ((self.tuple & self.expires) | self.restart | (self.segment & empty))
            ),
            leaving.anew.eq(~self.tuple | ends),
            leaving.to.eq(Mux(self.segment, written, Mux(self.tuple, list_after, in_force))),
            self.oldest.eq(leaving.core),
        ]
        for walk in (storing, leaving):
            m.d.comb += [
                getattr(walk, name).eq(getattr(self, name))
                for name in entry_members(self.parameters)
            ]
        return m

    def elaborate_total(self, m, timed):
        """Tell in a register whether a count-based window is full; only ``restart`` ends that."""
        size = Signal(range(self.parameters.capacity + 1), init=self.parameters.capacity)
        room = Signal.like(size, reset_less=True)
        fresh = Signal(init=1)  # no tuple has come, so there is room for `size`
        left = Mux(fresh, size, room)
        with m.If(self.advance):
            with m.If(self.restart):
                m.d.sync += [fresh.eq(1), self.expires.eq(0)]
                with m.If(self.begin):
                    m.d.sync += [timed.eq(self.timed), size.eq(self.size)]
            with m.Elif(self.tuple):
                # Once the window is full, nobody asks for the room.
                m.d.sync += [fresh.eq(0), room.eq(left - 1)]
                m.d.sync += self.expires.eq(self.expires | (~timed & (left == 1)))

    def elaborate_segments(self, m, timed):
        """Count the tuples of a count-based window by segment.

        A tuple leaves only when another one comes. So if all tuples are of the segment in force,
        their number stays once tuples leave. Those of an older segment become fewer only, and there
        may be tuples of one segment between.

        Return whether the tuple at hand, if one leaves for it, leaves as the last one of an older
        segment; the list of the tuple that leaves after that; and whether there are no tuples.
        """
        count = range(self.parameters.capacity + 1)
        names = ("new", "mid", "old")
        newer = Signal(count, name="held_new")
        middle, older = (Signal(count, name=f"held_{name}", reset_less=True) for name in names[1:])
        has_newer, has_middle, has_older = (Signal(name=f"has_{name}") for name in names)
        single = Signal()  # exactly one tuple is left of the older segment
        spans = Signal(name="spans")  # the window has tuples of three segments
        ends = has_older & single
        leaves = self.restart | (self.tuple & self.expires & single)
        m.d.comb += self.spans_three.eq(
            (spans & ~(self.advance & leaves)) | (self.advance & self.segment & has_older)
        )
        m.d.sync += spans.eq(self.spans_three)
        with m.If(self.advance):
            with m.If(self.restart):
                m.d.sync += [has.eq(0) for has in (has_newer, has_middle, has_older)]
                m.d.sync += newer.eq(0)
            with m.Elif(self.segment):
                m.d.sync += [newer.eq(0), has_newer.eq(0)]
                with m.If(has_older):
                    m.d.sync += [middle.eq(newer), has_middle.eq(has_newer)]
                with m.Else():
                    m.d.sync += [older.eq(newer), has_older.eq(has_newer), single.eq(newer == 1)]
            with m.Elif(self.tuple):
                m.d.sync += has_newer.eq(~timed)
                with m.If(~self.expires | has_older):
                    m.d.sync += newer.eq(newer + 1)
                with m.If(self.expires & has_older):
                    m.d.sync += [older.eq(older - 1), single.eq(older == 2)]
                with m.If(self.expires & ends):
                    m.d.sync += [older.eq(middle), has_older.eq(has_middle), single.eq(middle == 1)]
                    m.d.sync += has_middle.eq(0)
        return ends, Mux(has_middle, self.lists[2], self.lists[1]), ~has_newer & ~has_older


#: What both sides need to know of the lists.
SHARED = ("lists", "write", "entry", "value")


class StorageTurns(wiring.Component):
    """Say of the next tuple of each side which core stores it and whose oldest tuple leaves.

    A CORE word adds a core to the list of the next segment, SEGMENT begins that segment for both
    sides, WINDOW and LIFESPAN begin a window, and other words that empty a window restart the
    turns. None of them but SEGMENT changes which cores are live. CLEAR also discards the list that
    is being written.

    Latency: 0 cycles to what is refused; 1 cycle to everything else. Throughput: 1 word per cycle,
    with up to one tuple of each side.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator.

    Members
    -------
    advance : In(1)
        The word at hand, or the tuple at hand of two, is taken, and is no segment that is refused.
    tuples : In(2)
        Tuples of side R (bit 0) and S (bit 1) at hand.
    core, exists, which, segment, clear, empties, begins, timed : In
        What is known of the word at hand (:func:`hdl.ingress.word_facts.word_facts`).
    value, limits : In
        Operand of the word, and the limits that it exceeds.
    core_refused, segment_refused : Out(1)
        The word at hand is CORE, or SEGMENT, and has no effect because it is not allowed here.
    storing, leaving : Out
        For each side, the core that stores its next tuple, and the core whose oldest tuple leaves.
    leaves : Out(2)
        For each side, whether a tuple leaves.
    limit : Out
        ``slack`` times the number of cores that store.
    """

    def __init__(self, parameters):
        self.parameters = parameters
        self.latency = 0
        cores = data.ArrayLayout(range(max(2, parameters.cores)), 2)
        super().__init__(
            {
                "advance": In(1),
                "tuples": In(2),
                "core": In(1),
                "exists": In(1),
                "which": In(parameters.cores),
                "segment": In(1),
                "clear": In(1),
                "empties": In(2),
                "begins": In(1),
                "timed": In(1),
                "value": In(control_layout(parameters)["value"].shape),
                "limits": In(limits_layout(parameters)),
                "core_refused": Out(1),
                "segment_refused": Out(1),
                "storing": Out(cores),
                "leaving": Out(cores),
                "leaves": Out(2),
                "limit": Out(range(parameters.cores * parameters.slack + 1)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.lists = lists = CoreLists(self.parameters)
        exceeded = self.limits.WINDOW
        size = Mux(exceeded.below, 1, Mux(exceeded.above, self.parameters.capacity, self.value))
        m.d.comb += [
            lists.core.eq(self.value[: len(lists.core)]),
            lists.exists.eq(self.exists),
            lists.which.eq(self.which),
            lists.append.eq(self.core),
            lists.begin.eq(self.segment),
            lists.forget.eq(self.clear),
            lists.advance.eq(self.advance),
            self.core_refused.eq(lists.core_refused),
            self.segment_refused.eq(lists.segment_refused),
            self.limit.eq(lists.limit),
        ]
        sides = [SideTurns(self.parameters) for _ in "rs"]
        m.d.comb += lists.needed.eq(sides[0].spans_three | sides[1].spans_three)
        for n, turns in enumerate(sides):
            m.submodules[f"turns_{'rs'[n]}"] = turns
            m.d.comb += [
                turns.tuple.eq(self.tuples[n]),
                turns.restart.eq(self.empties[n]),
                turns.segment.eq(self.segment),
                turns.advance.eq(self.advance),
                turns.begin.eq(self.begins),
                turns.size.eq(size[: len(turns.size)]),
                turns.timed.eq(self.timed),
                *(getattr(turns, shared).eq(getattr(lists, shared)) for shared in SHARED),
                self.storing[n].eq(turns.core),
                self.leaving[n].eq(turns.oldest),
                self.leaves[n].eq(turns.expires),
            ]
        return m

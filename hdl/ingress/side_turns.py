# SPDX-License-Identifier: Apache-2.0
"""Which core stores the next tuple of a side, and which core's oldest tuple leaves for it."""

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from .core_lists import LISTS

__all__ = ["SideTurns"]


class SideTurns(wiring.Component):
    """Count one side's tuples, for all regions that store them (Algorithms 2 and 4).

    The cores of the list of the segment in force take turns to store a tuple. A segment begins with
    the first core of its list, and empties no window.

    A count-based window expires passively. Once it holds ``size`` tuples, each further tuple
    expires the oldest one. Tuples leave in the order in which they came: those of the oldest
    segment first, by the turns of that segment's list. A segment without tuples is skipped. (Ages
    are not known here: tuples of a time-based window leave by the decision of their region.)

    Latency: 1 cycle. Throughput: 1 tuple per cycle, whatever segments there are.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator.

    Members
    -------
    advance : In(1)
        A tuple of the side is taken.
    core, oldest : Out
        The core that stores the next tuple, and the core whose oldest tuple leaves for it.
    expires : Out(1)
        The next tuple expires a tuple; from a register.
    restart : In(1)
        Empty the window; the list of cores stays. No tuple is taken in the same cycle.
    begin : In(1)
        With ``restart``: the new window is of ``size`` tuples, or ``timed``.
    size : In
        1 to ``capacity``.
    timed : In(1)
    begins : In(1)
        A segment begins. No tuple is taken in the same cycle.
    newest, write, entry, value, last, plain : In
        See :class:`~hdl.ingress.core_lists.CoreLists`; ``value`` is its ``core``.
    spans_three : Out(1)
        The window has tuples of three segments, so a fourth one cannot begin; from a register.
    """

    def __init__(self, parameters):
        self.parameters = parameters
        self.latency = 1
        cores = range(max(2, parameters.cores))
        super().__init__(
            {
                "advance": In(1),
                "core": Out(cores),
                "oldest": Out(cores),
                "expires": Out(1),
                "restart": In(1),
                "begin": In(1),
                "size": In(range(parameters.capacity + 1)),
                "timed": In(1),
                "begins": In(1),
                "newest": In(range(LISTS)),
                "write": In(1),
                "entry": In(cores),
                "value": In(cores),
                "last": In(LISTS * ceil_log2(max(2, parameters.cores))),
                "plain": In(LISTS),
                "spans_three": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        size = Signal(range(self.parameters.capacity + 1), init=self.parameters.capacity)
        timed = Signal(name="window_timed")
        storing, leaving = Signal.like(self.core), Signal.like(self.core)  # turns in their lists
        bank = Signal(range(LISTS))  # list of the oldest tuple; or `newest`, if there is none
        # For each list, whether tuples came to its segment, and whether exactly one is left.
        some, single = Signal(LISTS), Signal(LISTS)
        then = (self.newest + 1)[: len(bank)]
        leaves = self.advance & self.expires
        empties_bank = leaves & single.bit_select(bank, 1) & (bank != self.newest)
        store_now, leave_now = Signal.like(storing), Signal.like(leaving)
        bank_now, newest_now = Signal.like(bank), Signal.like(bank)
        m.d.comb += [
            store_now.eq(storing),
            leave_now.eq(leaving),
            bank_now.eq(bank),
            newest_now.eq(Mux(self.begins, then, self.newest)),
        ]
        with m.If(self.restart):
            m.d.comb += [store_now.eq(0), leave_now.eq(0), bank_now.eq(self.newest)]
            m.d.sync += self.spans_three.eq(0)
        with m.Elif(self.begins):
            m.d.comb += store_now.eq(0)
            m.d.sync += self.spans_three.eq(some.any() & ((bank + 1)[: len(bank)] == self.newest))
            with m.If(~some.any()):  # nothing has left yet, so `leaving` is zero
                m.d.comb += bank_now.eq(then)
        with m.Elif(self.advance):
            m.d.comb += store_now.eq(self.following(storing, self.newest))
            with m.If(leaves):
                m.d.comb += leave_now.eq(self.following(leaving, bank))
            with m.If(empties_bank):
                m.d.comb += [leave_now.eq(0), bank_now.eq(self.next_bank(m, bank, some))]
                m.d.sync += self.spans_three.eq(0)
        m.d.sync += [storing.eq(store_now), leaving.eq(leave_now), bank.eq(bank_now)]
        with m.If(self.restart & self.begin):
            m.d.sync += [timed.eq(self.timed), size.eq(self.size)]
        self.elaborate_total(m, size, timed)
        self.elaborate_counts(m, some, single, self.advance & ~timed, leaves, bank)
        self.elaborate_lookup(m, "storing", store_now, newest_now, self.core)
        self.elaborate_lookup(m, "leaving", leave_now, bank_now, self.oldest)
        return m

    def following(self, turn, bank):
        """Return the turn after ``turn`` in a list."""
        last = self.last.word_select(bank, len(self.core))
        return Mux(turn == last, 0, turn + 1)[: len(self.core)]

    def next_bank(self, m, bank, some):
        """Return the first list after ``bank`` to which tuples came, or the one in force."""
        found = Signal.like(bank, name="next_bank")
        # Later assignments win, so that the nearest list does. The one in force is among them.
        for step in reversed(range(1, LISTS)):
            near = (bank + step)[: len(bank)]
            with m.If(some.bit_select(near, 1) | (near == self.newest)):
                m.d.comb += found.eq(near)
        return found

    def elaborate_total(self, m, size, timed):
        """Tell in a register whether a count-based window is full; only ``restart`` ends that."""
        room = Signal.like(size, init=size.init)
        with m.If(self.restart):
            m.d.sync += [room.eq(Mux(self.begin, self.size, size)), self.expires.eq(0)]
        with m.Elif(self.advance & ~timed & ~self.expires):
            m.d.sync += [room.eq(room - 1), self.expires.eq(room == 1)]

    def elaborate_counts(self, m, some, single, comes, leaves, bank):
        """Count the tuples of a count-based window by segment; keep the flags of small counts."""
        for n in range(LISTS):
            held = Signal(range(self.parameters.capacity + 1), name=f"held_{n}")
            plus, minus = comes & (self.newest == n), leaves & (bank == n)
            with m.If(self.restart):
                m.d.sync += [held.eq(0), some[n].eq(0)]
            with m.Elif(self.begins & ((self.newest + 1)[: len(bank)] == n)):
                m.d.sync += some[n].eq(0)
            with m.Elif(plus & ~minus):
                m.d.sync += [held.eq(held + 1), some[n].eq(1), single[n].eq(~some[n])]
            with m.Elif(minus & ~plus):
                m.d.sync += [held.eq(held - 1), single[n].eq(held == 2)]

    def elaborate_lookup(self, m, name, turn, bank, core):
        """Read the core of a turn, which is known one cycle later."""
        bits = len(self.core)
        m.submodules[name] = memory = Memory(shape=bits, depth=LISTS << bits, init=[])
        write, read = memory.write_port(), memory.read_port()
        kept, plain = Signal(bits, name=f"{name}_turn"), Signal(init=1, name=f"{name}_plain")
        m.d.comb += [
            write.addr.eq(Cat(self.entry, (self.newest + 1)[: len(bank)])),
            write.data.eq(self.value),
            write.en.eq(self.write),
            read.addr.eq(Cat(turn, bank)),
            core.eq(Mux(plain, kept, read.data)),
        ]
        # A segment that has just begun is not plain, though `plain` still tells of its old list.
        fresh = self.begins & (bank == (self.newest + 1)[: len(bank)])
        m.d.sync += [kept.eq(turn), plain.eq(self.plain.bit_select(bank, 1) & ~fresh)]

# SPDX-License-Identifier: Apache-2.0
"""Takes closed groups, and goes through the buckets that their probes visit."""

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.words.inputs import control_layout

from .cell_counter import CellCounter
from .layouts import bank_count, group_count, visit_layout, visiting_layout

__all__ = ["CellSequencer"]


class CellSequencer(wiring.Component):
    """Visit every bucket that a probe may find matches in, probe by probe.

    A probe of an equality visits one bucket; that of a band visits cells, in every bank of the head
    table one at a time (:class:`CellCounter`). A probe that nothing can match visits nothing, in
    one cycle.

    Latency: :attr:`latency` cycles from a group to its first visit. Throughput: a visit per cycle,
    also from group to group where each has two visits or more.

    Parameters
    ----------
    parameters : JoinParameters
        Of the accelerator.

    Members
    -------
    closed : In(1)
        There is a group, of so many probes as ``count`` says.
    count : In
    arrived : In(1)
        ``probe`` is the next probe.
    probe : In(visiting_layout(parameters))
    visited : Out(1)
        It is not needed any more after this cycle.
    free : In(group_count(parameters))
        Group numbers that are not in use.
    take : Out(group_count(parameters))
        This number is in use now, for the group that was there.
    room : In(1)
        There is room for what becomes of a visit.
    begun : Out(banks)
        Banks in which ``visit`` has a bucket; from a register.
    final : Out(1)
        The group of ``visit`` has no more visits than this one, if it is one; from a register.
    visit : Out(visit_layout(parameters))
    configure : In(1)
        Execute ``control``.
    control : In(control_layout(parameters))
    """

    def __init__(self, parameters):
        self.parameters = parameters
        self.latency = 4  # seen, taken, begun, visited
        super().__init__(
            {
                "closed": In(1),
                "count": In(range(parameters.probes + 1)),
                "arrived": In(1),
                "probe": In(visiting_layout(parameters)),
                "visited": Out(1),
                "free": In(group_count(parameters)),
                "take": Out(group_count(parameters)),
                "room": In(1),
                "begun": Out(bank_count(parameters)),
                "final": Out(1),
                "visit": Out(visit_layout(parameters)),
                "configure": In(1),
                "control": In(control_layout(parameters)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        number = Signal(range(len(self.free)))  # of the group under way, or of the next one
        place = Signal.like(self.visit.probe)  # of the probe in the table
        step, ends = Signal(), Signal()
        filled, last, wanted, cells = self.elaborate_cells(m, step)
        running = self.elaborate_groups(m, number, step & last, ends)

        visit = Signal.like(self.visit, reset_less=True)
        m.d.comb += [step.eq(running & self.room & filled), self.visit.eq(visit)]
        m.d.sync += [
            self.begun.eq(wanted & step.replicate(len(wanted))),
            self.final.eq(ends),
            visit.group.eq(number),
        ]
        with m.If(step):
            m.d.sync += [
                *(Value.cast(visit[name]).eq(value) for name, value in cells.items()),
                visit.probe.eq(place),
            ]
        with m.If(step & last):
            m.d.sync += place.eq(place + 1)
        return m

    def elaborate_groups(self, m, number, visited, ends):
        """Take groups, each while the one before it is under way; is one there that has probes?

        ``visited`` says that a probe's visits end with this cycle, and ``ends`` becomes whether a
        group's do.
        """
        running = Signal()
        void = Signal()  # a group without probes is under way
        left = Signal.like(self.count)  # probes of the group under way
        only = Signal()  # … one
        waiting = Signal()  # a group has been taken, but is not under way
        count = Signal.like(self.count, name="next_count", reset_less=True)  # of its probes
        # The group at hand was there a cycle ago, and so was its number, which is free.
        available = Signal()
        following = Signal.like(number)
        take = Signal()
        begins = Signal()  # the group that waits, if there is one
        m.d.comb += [
            ends.eq(void | (visited & only)),
            begins.eq(~running | (visited & only)),
            take.eq(available & ~waiting),
            self.take.eq(take << following),
        ]
        m.d.sync += [
            available.eq(self.closed & self.free.bit_select(following, 1) & ~take),
            following.eq(following + take),
            waiting.eq(take | (waiting & ~begins)),
            number.eq(number + ends),
        ]
        with m.If(~waiting):
            m.d.sync += count.eq(self.count)
        with m.If(begins):
            m.d.sync += [
                running.eq(waiting & (count != 0)),
                void.eq(waiting & (count == 0)),
                left.eq(count),
                only.eq(count == 1),
            ]
        with m.Elif(visited):
            m.d.sync += [left.eq(left - 1), only.eq(left == 2)]
        return running

    def elaborate_cells(self, m, step):
        """Return whether a probe has arrived, and what it visits.

        That is: whether with this step its visits end, the banks in which it visits a bucket, and
        the fields of a visit that say which bucket, and for which entries.
        """
        if self.parameters.comparator != "band":
            m.d.comb += self.visited.eq(step)
            visit = {"addresses": self.probe.bucket, "tail": self.probe.tail}
            return self.arrived, Const(1), Const(1), visit
        m.submodules.cells = cells = CellCounter(self.parameters)
        m.d.comb += [
            cells.arrived.eq(self.arrived),
            cells.probe.eq(self.probe),
            cells.step.eq(step),
            cells.configure.eq(self.configure),
            cells.control.eq(self.control),
            self.visited.eq(cells.take),
        ]
        visit = {"addresses": Cat(cells.addresses), "tail": cells.tail}
        return cells.filled, cells.last, cells.wanted, visit

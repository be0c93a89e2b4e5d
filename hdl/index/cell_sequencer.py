# SPDX-License-Identifier: Apache-2.0
"""Sequencer of closed groups: goes through the buckets that their probes visit."""

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.words.inputs import control_layout

from .cell_counter import CellCounter
from .layouts import bank_count, group_count, visit_layout, visiting_layout

__all__ = ["CellSequencer"]


class CellSequencer(wiring.Component):
    """Visit every bucket that may hold matches of a probe, probe by probe.

    An equality probe visits one bucket. A band probe visits cells, at most one in each bank of the
    head table at a time (:class:`CellCounter`). A probe that nothing can match takes one cycle and
    visits no bucket.

    Latency: :attr:`latency` cycles from a group to its first visit. Throughput: 1 visit per cycle,
    also across groups if each of them has at least two visits.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator.

    Members
    -------
    closed : In(1)
        A closed group of ``count`` probes is available.
    count : In
    arrived : In(1)
        ``probe`` holds the next probe.
    probe : In(visiting_layout(parameters))
    visited : Out(1)
        ``probe`` is not needed after this cycle.
    free : In(group_count(parameters))
        Group numbers that are not in use.
    take : Out(group_count(parameters))
        The group is taken and gets this number; one-hot.
    room : In(1)
        The walks of another visit can be queued.
    begun : Out(banks)
        Banks in which ``visit`` has a bucket; from a register.
    final : Out(1)
        The visits of the group end in this cycle, with ``visit`` if there is one; from a register.
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
        number = Signal(range(len(self.free)))  # of the current group, else of the next
        place = Signal.like(self.visit.probe)  # place of the current probe in the probe table
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
        """Take groups, each while the previous one is in progress; return whether one has probes.

        ``visited`` is high when the visits of a probe end in this cycle. ``ends`` is driven high
        when those of a group do. The value returned is high while a group that has probes is in
        progress.
        """
        running = Signal()
        void = Signal()  # the current group has no probes
        left = Signal.like(self.count)  # probes left in the current group
        only = Signal()  # exactly one probe is left
        waiting = Signal()  # a group has been taken, but has not begun
        count = Signal.like(self.count, name="next_count", reset_less=True)  # probes of that group
        # In the previous cycle there was a closed group, and the next group number was free.
        available = Signal()
        following = Signal.like(number)
        take = Signal()
        begins = Signal()  # the waiting group, if there is one, begins
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
        """Return whether a probe is available, and its current visit.

        The visit is returned as three values: whether it is the last of the probe, the banks in
        which it has a bucket, and the fields of ``visit`` that name the buckets and the first
        visible row.
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

# SPDX-License-Identifier: Apache-2.0
"""Takes closed groups, and goes through the buckets that their probes visit."""

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.words.inputs import control_layout

from .layouts import group_count, visit_layout, visiting_layout
from .visited_cells import visited_cells

__all__ = ["CellSequencer"]


class CellSequencer(wiring.Component):
    """Visit every bucket that a probe may find matches in, probe by probe.

    The fields that take part in a bucket's number make a grid, whose cells are counted through like
    the digits of a number, the first field fastest. A digit wraps around within its bits. A probe
    that nothing can match visits nothing, in one cycle.

    Latency: 2 cycles from a group to its first visit. Throughput: a bucket per cycle inside a
    group, and two cycles between two groups.

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
        All of its buckets have been visited, with this cycle.
    free : In(group_count(parameters))
        Group numbers that are not in use.
    take : Out(group_count(parameters))
        This number is in use now, for the group that was there.
    started : Out(group_count(parameters))
        All visits of the group with this number have begun; from a register.
    room : In(1)
        There is room for what becomes of a visit.
    begun : Out(1)
        ``visit`` is one; from a register.
    visit : Out(visit_layout(parameters))
    configure : In(1)
        Execute ``control``.
    control : In(control_layout(parameters))
    """

    def __init__(self, parameters):
        self.parameters = parameters
        self.latency = 2
        super().__init__(
            {
                "closed": In(1),
                "count": In(range(parameters.probes + 1)),
                "arrived": In(1),
                "probe": In(visiting_layout(parameters)),
                "visited": Out(1),
                "free": In(group_count(parameters)),
                "take": Out(group_count(parameters)),
                "started": Out(group_count(parameters)),
                "room": In(1),
                "begun": Out(1),
                "visit": Out(visit_layout(parameters)),
                "configure": In(1),
                "control": In(control_layout(parameters)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        number = Signal(range(len(self.free)))  # of the group under way, or of the next one
        running = Signal()
        left = Signal.like(self.count)  # probes of the group
        final = Signal()  # … one
        empty = Signal()  # the group at hand has none; of a cycle ago, as is `available`
        step = Signal()  # a bucket is visited
        place = Signal.like(self.visit.probe)  # of the probe in the table
        bucket, last, nothing = visited_cells(
            m, self.parameters, self.probe, step, configure=self.configure, control=self.control
        )

        take = Signal()
        available = Signal()  # there is a group, and the number is free
        ends = self.visited & final
        m.d.comb += [
            take.eq(available & ~running),
            self.take.eq(take << number),
            step.eq(running & self.room & self.arrived),
            self.visited.eq(step & last),
        ]
        visit = Signal.like(self.visit, reset_less=True)
        m.d.comb += self.visit.eq(visit)
        following = (take & empty) | ends
        m.d.sync += [
            self.begun.eq(step & ~nothing),
            self.started.eq(self.started & ~self.take),
            empty.eq(self.count == 0),
            available.eq(self.closed & self.free.bit_select(number, 1) & ~take & ~following),
        ]
        with m.If(step):
            m.d.sync += [
                visit.bucket.eq(bucket),
                visit.tail.eq(self.probe.tail),
                visit.probe.eq(place),
                visit.group.eq(number),
            ]
        with m.If(take):
            m.d.sync += [
                running.eq(~empty),
                left.eq(self.count),
                final.eq(self.count == 1),
            ]
        with m.If(self.visited):
            m.d.sync += [
                left.eq(left - 1),
                final.eq(left == 2),
                running.eq(~final),
                place.eq(place + 1),
            ]
        with m.If(following):
            m.d.sync += [self.started.bit_select(number, 1).eq(1), number.eq(number + 1)]
        return m

# SPDX-License-Identifier: Apache-2.0
"""Goes through the buckets that probes visit, and marks where each group ends."""

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.words.inputs import control_layout

from .layouts import direct_visit_layout, visiting_layout
from .visited_cells import visited_cells

__all__ = ["DirectSequencer"]


class DirectSequencer(wiring.Component):
    """Visit every bucket that a probe may find matches in, as a :class:`CellSequencer` does.

    Groups follow one another in line: with the last visit of one comes its end.

    Latency: 2 cycles from a group to its first visit. Throughput: a bucket per cycle inside a
    group, and a cycle between two groups.

    Parameters
    ----------
    parameters : JoinParameters
        Of the accelerator.

    Members
    -------
    closed : In(1)
        There is a group, of so many probes as ``count`` says.
    count : In
    take : Out(1)
        It begins; go on to the next one.
    free : In(1)
        It may.
    arrived : In(1)
        ``probe`` is the next probe.
    probe : In(visiting_layout(parameters))
    visited : Out(1)
        All of its buckets have been visited, with this cycle.
    room : In(1)
        There is room for what becomes of a visit.
    begun : Out(1)
        ``visit`` is one; from a register.
    ends : Out(1)
        The group ends, with the visit if there is one; from a register.
    visit : Out(direct_visit_layout(parameters))
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
                "take": Out(1),
                "free": In(1),
                "arrived": In(1),
                "probe": In(visiting_layout(parameters)),
                "visited": Out(1),
                "room": In(1),
                "begun": Out(1),
                "ends": Out(1),
                "visit": Out(direct_visit_layout(parameters)),
                "configure": In(1),
                "control": In(control_layout(parameters)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        left = Signal.like(self.count)  # probes of the group under way
        running = Signal()  # … there are any
        place = Signal.like(self.visit.probe)  # of the next probe in the table
        step = Signal()  # a bucket is visited
        bucket, last, nothing = visited_cells(
            m, self.parameters, self.probe, step, configure=self.configure, control=self.control
        )
        visit = Signal.like(self.visit, reset_less=True)
        m.d.comb += [
            self.take.eq(self.closed & self.free & self.room & ~running),
            step.eq(running & self.room & self.arrived),
            self.visited.eq(step & last),
            self.visit.eq(visit),
        ]
        final = left == 1
        m.d.sync += [
            self.begun.eq(step & ~nothing),
            self.ends.eq(Mux(running, self.visited & final, self.take & (self.count == 0))),
        ]
        with m.If(step):
            m.d.sync += [
                visit.bucket.eq(bucket),
                visit.tail.eq(self.probe.tail),
                visit.probe.eq(place),
            ]
        with m.If(self.take):
            m.d.sync += [left.eq(self.count), running.eq(self.count != 0)]
        with m.If(self.visited):
            m.d.sync += [left.eq(left - 1), running.eq(~final), place.eq(place + 1)]
        return m

# SPDX-License-Identifier: Apache-2.0
"""Takes closed groups, and goes through the buckets that their probes visit."""

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.layouts import Control, control_layout, coordinate_layout

from .layouts import group_count, visit_layout, visiting_layout

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
        bucket, last, nothing = self.elaborate_cells(m, step)

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

    def elaborate_cells(self, m, step):
        """Return the bucket to visit, whether it is the probe's last, and whether it has none."""
        if self.parameters.comparator != "band":
            return self.probe.bucket, Const(1), Const(0)
        cells = self.probe.cells
        fresh = Signal(init=1)  # this is the probe's first cell
        place = Signal.like(cells.start, reset_less=True)
        now = Mux(fresh, cells.start, place)
        following = now
        carry = Const(1)  # all fields before this one are at their last value
        for n, _ in enumerate(self.parameters.keys):
            mask, unit = self.elaborate_digit(m, n)
            extent = cells[f"extent_{n}"]
            rest = Signal.like(extent, name=f"rest_{n}", reset_less=True)
            left = Mux(fresh, extent, rest)
            ended = Signal(name=f"ended_{n}")
            m.d.comb += ended.eq(left == 0)
            stepped = Mux(ended, cells.start, now + unit)[: len(mask)]
            following = Mux(carry, (following & ~mask) | (stepped & mask), following)
            with m.If(step & carry):
                m.d.sync += rest.eq(Mux(ended, extent, left - 1))
            with m.Elif(step & fresh):
                m.d.sync += rest.eq(extent)
            carry &= ended
        with m.If(step):
            m.d.sync += [place.eq(following), fresh.eq(carry | cells.none)]
        return now ^ cells.hash, carry | cells.none, cells.none

    def elaborate_digit(self, m, n):
        """Keep which bits of a bucket's number belong to a field, and the lowest of them."""
        bits = self.parameters.bucket_width
        mask = Signal(bits, name=f"mask_{n}")
        unit = Signal(bits, name=f"unit_{n}")
        part = Signal(coordinate_layout(self.parameters), name=f"part_{n}")
        mine = (self.control.op == Control.COORDINATE) & (self.control.index == n)
        m.d.comb += part.as_value().eq(self.control.value)
        with m.If(self.configure & mine):
            m.d.sync += [
                mask.eq(((1 << part.width) - 1) << part.place),
                unit.eq(1 << part.place),
            ]
        return mask, unit

# SPDX-License-Identifier: Apache-2.0
"""Takes closed groups, and goes through the buckets that their probes visit."""

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hdl.layouts import Control, control_layout, coordinate_layout

from .layouts import GROUPS, closed_layout, lookup_layout, waiting_layout

__all__ = ["CellSequencer"]


class CellSequencer(wiring.Component):
    """Send a lookup for every bucket that a probe visits.

    The fields that take part in a bucket's number make a grid, whose cells are counted through like
    the digits of a number, the first field fastest. A digit wraps around within its bits. A probe
    that nothing can match sends nothing, in one cycle.

    Latency: 2 cycles from a group to its first lookup. Throughput: a lookup per cycle inside a
    group, and one cycle between two groups.

    Parameters
    ----------
    parameters : JoinParameters
        Of the accelerator.

    Members
    -------
    groups : In(stream.Signature(closed_layout(parameters)))
    probes : In(stream.Signature(waiting_layout(parameters)))
    free : In(GROUPS)
        Group numbers that are not in use.
    take : Out(GROUPS)
        This number is in use now, for ``groups.payload``.
    started : Out(GROUPS)
        All lookups of the group with this number have been sent; from a register.
    room : In(1)
        There is room for what becomes of a lookup.
    sent : Out(1)
        ``lookup`` is one; from a register.
    lookup : Out(lookup_layout(parameters))
    configure : In(1)
        Execute ``control``.
    control : In(control_layout(parameters))
    """

    def __init__(self, parameters):
        self.parameters = parameters
        self.latency = 2
        super().__init__(
            {
                "groups": In(stream.Signature(closed_layout(parameters))),
                "probes": In(stream.Signature(waiting_layout(parameters))),
                "free": In(GROUPS),
                "take": Out(GROUPS),
                "started": Out(GROUPS),
                "room": In(1),
                "sent": Out(1),
                "lookup": Out(lookup_layout(parameters)),
                "configure": In(1),
                "control": In(control_layout(parameters)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        probe = self.probes.payload
        number = Signal(range(GROUPS))  # of the group under way, or of the next one
        running = Signal()
        left = Signal(range(self.parameters.probes + 1))  # probes of the group
        index = Signal(self.parameters.probe_bits)
        step = Signal()  # a bucket is visited
        bucket, last = self.elaborate_cells(m, probe, step)
        nothing = probe.cells.none if self.parameters.comparator == "band" else Const(0)

        count = self.groups.payload.ending.count
        transfer = self.groups.valid & self.groups.ready
        m.d.comb += [
            self.groups.ready.eq(~running & self.free.bit_select(number, 1)),
            self.take.eq(transfer << number),
            step.eq(running & self.room),
            self.probes.ready.eq(step & (last | nothing)),
        ]
        lookup = Signal.like(self.lookup, reset_less=True)
        m.d.comb += self.lookup.eq(lookup)
        m.d.sync += [self.sent.eq(step & ~nothing), self.started.eq(self.started & ~self.take)]
        with m.If(step):
            m.d.sync += [
                lookup.criterion.eq(probe.criterion),
                lookup.bucket.eq(bucket),
                lookup.tail.eq(probe.tail),
                lookup.size.eq(probe.size),
                lookup.probe.eq(index),
                lookup.group.eq(number),
            ]
        with m.If(transfer):
            m.d.sync += [running.eq(count != 0), left.eq(count), index.eq(0)]
        with m.If(self.probes.ready):
            m.d.sync += [left.eq(left - 1), index.eq(index + 1), running.eq(left != 1)]
        with m.If((transfer & (count == 0)) | (self.probes.ready & (left == 1))):
            m.d.sync += [self.started.bit_select(number, 1).eq(1), number.eq(number + 1)]
        return m

    def elaborate_cells(self, m, probe, step):
        """Return the bucket to visit, and whether it is the probe's last."""
        if self.parameters.comparator != "band":
            return probe.bucket, Const(1)
        cells = probe.cells
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
        return now ^ cells.hash, carry

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

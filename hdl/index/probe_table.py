# SPDX-License-Identifier: Apache-2.0
"""Probe table: holds probes from their arrival until their group has been answered."""

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.memory.columns import KeyColumn
from hdl.memory.read_ahead import ReadAhead
from hdl.streams.queues import PointerQueue
from hdl.streams.registers import delayed
from hdl.words.prepared import criterion_layout, ending_layout, pointer_layout

from .layouts import closed_layout, probe_shape, slot_shape, visiting_layout, waiting_layout

__all__ = ["ProbeTable"]


class ProbeTable(wiring.Component):
    """A ring of probes, and a queue of the groups that they belong to.

    The results of a group must not depend on any input word after the one that closes it (see
    :class:`hdl.trees.merger.Merger`). So no probe starts before its group is in the queue. The
    table has room for one whole group beside the probes in progress, so an open group never fills
    it.

    Latency: 1 cycle from the end of a group until it is ``closed``; 4 from a probe until it has
    ``arrived``, if its predecessors have been visited by then. Throughput: 1 probe and 1 group per
    cycle.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator.

    Members
    -------
    soon : Out(1)
        High if there is room for a probe, or for the end of a group, three cycles from now. Whoever
        adds must have seen ``soon`` high three cycles earlier.
    add : In(1)
        Take ``probe``.
    probe : In(waiting_layout(parameters))
    tail : In
        Row of the tail of the probe's span, with wrap bit; the table keeps that of a group's first
        probe.
    close : In(1)
        The group ends, including the probe of this cycle if there is one.
    ending : In
        What follows the closing group; its ``count`` is ignored.
    closed : Out(1)
        ``group`` is a closed group.
    group : Out(closed_layout(parameters))
    take : In(1)
        Advance to the next group; only while ``closed``.
    arrived : Out(1)
        ``visiting`` holds the next probe, in order.
    visiting : Out(visiting_layout(parameters))
    visited : In(1)
        Advance to the next probe; only while ``arrived``.
    walking : In
        Place of the probe that an entry is compared with. The probe has ``arrived`` and is not
        released.
    criterion, size, number : Out
        What the probe at ``walking`` compares keys with, how many entries it sees, and its number
        since the last star; with the latency of a :class:`hdl.memory.columns.KeyColumn`.
    release : In(1)
        The oldest ``released`` probes have been answered.
    released : In
    oldest : Out
        First row of the ring that must be kept for groups that have not been taken, including the
        open one; ``tail`` if there are none.
    """

    #: Number of closed groups that can wait.
    DEPTH = 32
    #: Probes and ends of groups that may still arrive after ``soon`` fell.
    IN_FLIGHT = 3

    def __init__(self, parameters):
        self.parameters = parameters
        self.latency = 1
        row = pointer_layout(parameters)["row"].shape
        super().__init__(
            {
                "soon": Out(1),
                "add": In(1),
                "probe": In(waiting_layout(parameters)),
                "tail": In(row),
                "close": In(1),
                "ending": In(ending_layout(parameters)),
                "closed": Out(1),
                "group": Out(closed_layout(parameters)),
                "take": In(1),
                "arrived": Out(1),
                "visiting": Out(visiting_layout(parameters)),
                "visited": In(1),
                "walking": In(probe_shape(parameters)),
                "criterion": Out(criterion_layout(parameters)),
                "size": Out(slot_shape(parameters)),
                "number": Out(parameters.engine.probe_bits),
                "release": In(1),
                "released": In(range(parameters.engine.probes + 1)),
                "oldest": Out(row),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.groups = groups = PointerQueue(
            closed_layout(self.parameters), depth=self.DEPTH, reserve=self.IN_FLIGHT + 1
        )
        head = Signal(len(self.walking) + 1)  # write and read pointer, both with wrap bit
        tail = Signal.like(head)
        self.elaborate_walking(m, head)
        self.elaborate_visiting(m, head)

        count = Signal(range(self.parameters.engine.probes + 1))
        first = Signal.like(self.tail, reset_less=True)  # `tail` of the open group's first probe
        opened = Mux(count == 0, self.tail, first)
        m.d.comb += [
            groups.last.ending.eq(self.ending),
            groups.last.ending.count.eq(count + self.add),
            groups.last.first.eq(opened),
            groups.add.eq(self.close),
            groups.take.eq(self.take),
            self.closed.eq(groups.filled),
            self.group.eq(groups.first),
            self.oldest.eq(Mux(groups.filled, groups.first.first, opened)),
        ]
        # Where the head will be after all probes in flight have arrived. The table is full if this
        # pointer has passed the tail, which takes no comparator to see.
        reserved = Signal.like(head, init=self.IN_FLIGHT)
        m.d.comb += self.soon.eq(~(reserved - tail)[len(self.walking)] & groups.room)
        with m.If(self.add & (count == 0)):
            m.d.sync += first.eq(self.tail)
        with m.If(self.close):
            m.d.sync += count.eq(0)
        with m.Elif(self.add):
            m.d.sync += count.eq(count + 1)
        with m.If(self.add):
            m.d.sync += [head.eq(head + 1), reserved.eq(reserved + 1)]
        with m.If(self.release):
            m.d.sync += tail.eq(tail + self.released)
        return m

    def column(self, m, name, value, address, write, place):
        """Store ``value`` of every probe in a memory; return that of the probe at ``address``."""
        value = Value.cast(value)
        m.submodules[name] = column = KeyColumn(width=len(value), depth=1 << len(self.walking))
        m.d.comb += [
            column.write.eq(write),
            column.place.eq(place),
            column.row.eq(value),
            column.address.eq(address),
        ]
        return column.data

    def elaborate_walking(self, m, head):
        """Store what entries are compared with, every field in a memory of its own."""
        for name, _ in criterion_layout(self.parameters):
            data = self.column(m, name, self.probe.criterion[name], self.walking, self.add, head)
            m.d.comb += Value.cast(self.criterion[name]).eq(data)
        number = Signal(self.parameters.engine.probe_bits)  # of the next probe
        with m.If(self.close & self.ending.star):
            m.d.sync += number.eq(0)
        with m.Elif(self.add):
            m.d.sync += number.eq(number + 1)
        # The size is only just computed, and a probe is read some cycles later, so it is written
        # late.
        arriving = {"add": self.add, "head": head, "seen": Cat(self.probe.size, number)}
        late = delayed(m, arriving, "late", flags=["add"])
        data = self.column(m, "size", late["seen"], self.walking, late["add"], late["head"])
        m.d.comb += Cat(self.size, self.number).eq(data)

    def elaborate_visiting(self, m, head):
        """Store what is needed to visit buckets, and read it ahead into a short queue."""
        layout = visiting_layout(self.parameters)
        m.submodules.ahead = ahead = ReadAhead(layout, depth=1 << len(self.walking))
        m.d.comb += [
            ahead.head.eq(head),
            ahead.take.eq(self.visited),
            self.arrived.eq(ahead.filled),
            self.visiting.eq(ahead.first),
        ]
        for name, _ in layout:
            data = self.column(m, name, self.probe[name], ahead.address, self.add, head)
            m.d.comb += Value.cast(ahead.row[name]).eq(data)

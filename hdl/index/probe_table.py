# SPDX-License-Identifier: Apache-2.0
"""Probes stay here from their arrival until their group has been answered."""

from amaranth import *
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

from hdl.layouts import criterion_layout, ending_layout, pointer_layout

from .layouts import closed_layout, probe_shape, slot_shape, waiting_layout
from .pointer_queue import PointerQueue

__all__ = ["ProbeTable"]


class ProbeTable(wiring.Component):
    """A ring of probes, and a queue of the groups that they belong to.

    Results of a group wait for no later word than the one that closes it (see
    :class:`hdl.merger.Merger`); so no probe sets out before its group is in the queue. There is
    room for a whole group beside those under way, so an open one never fills the table.

    Latency: 1 cycle. Throughput: 1 probe per cycle.

    Parameters
    ----------
    parameters : JoinParameters
        Of the accelerator.

    Members
    -------
    ready : Out(1)
        There is room for a probe, or the end of a group, two cycles ahead.
    add : In(1)
        Take ``probe``.
    probe : In(waiting_layout(parameters))
    tail : In
        The row of its span's tail, with wrap bit.
    close : In(1)
        The group ends, with the probe of this cycle if there is one.
    ending : In
        What follows it; its ``count`` is ignored.
    closed : Out(1)
        There is a closed group.
    group : Out(closed_layout(parameters))
    take : In(1)
        Go on to the next one.
    next_probe : In
        Which probe to visit buckets for …
    visiting : Out(waiting_layout(parameters))
        … and this is it; its ``criterion`` and ``size`` are not used.
    walking : In
        Which probe an entry is compared with …
    criterion, size : Out
        … from a register: those of a cycle ago.
    release : In(1)
        As many of the oldest probes have been answered as ``released`` says.
    released : In
    oldest : Out
        From this row on the ring must be kept for the probes whose groups are still to be taken.
    """

    #: Groups that can wait.
    DEPTH = 32
    #: Probes and ends of groups that may come after ``ready`` fell.
    IN_FLIGHT = 3

    def __init__(self, parameters):
        self.parameters = parameters
        self.latency = 1
        row = pointer_layout(parameters)["row"].shape
        super().__init__(
            {
                "ready": Out(1, init=1),
                "add": In(1),
                "probe": In(waiting_layout(parameters)),
                "tail": In(row),
                "close": In(1),
                "ending": In(ending_layout(parameters)),
                "closed": Out(1),
                "group": Out(closed_layout(parameters)),
                "take": In(1),
                "next_probe": In(probe_shape(parameters)),
                "visiting": Out(waiting_layout(parameters)),
                "walking": In(probe_shape(parameters)),
                "criterion": Out(criterion_layout(parameters)),
                "size": Out(slot_shape(parameters)),
                "release": In(1),
                "released": In(range(parameters.probes + 1)),
                "oldest": Out(row),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.groups = groups = PointerQueue(
            closed_layout(self.parameters), depth=self.DEPTH
        )
        head = Signal(len(self.walking) + 1)  # both with a wrap bit
        tail = Signal.like(head)
        self.elaborate_memories(m, head)

        count = Signal(range(self.parameters.probes + 1))
        first = Signal.like(self.tail, reset_less=True)  # of the open group
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
        level = (head - tail)[: len(head)]
        m.d.sync += self.ready.eq(
            (level < (1 << len(self.walking)) - self.IN_FLIGHT)
            & (groups.level < self.DEPTH - self.IN_FLIGHT)
        )
        with m.If(self.add & (count == 0)):
            m.d.sync += first.eq(self.tail)
        with m.If(self.close):
            m.d.sync += count.eq(0)
        with m.Elif(self.add):
            m.d.sync += count.eq(count + 1)
        with m.If(self.add):
            m.d.sync += head.eq(head + 1)
        with m.If(self.release):
            m.d.sync += tail.eq(tail + self.released)
        return m

    def elaborate_memories(self, m, head):
        """Keep every field in a memory of its own; what is not read there goes away."""
        for name, field in waiting_layout(self.parameters):
            m.submodules[name] = rows = memory.Memory(
                shape=unsigned(field.width), depth=1 << len(self.walking), init=[]
            )
            write = rows.write_port()
            m.d.comb += [
                write.addr.eq(head),
                write.data.eq(Value.cast(self.probe[name])),
                write.en.eq(self.add),
            ]
            if name in ("criterion", "size"):
                read = rows.read_port(domain="comb")
                output = Signal(field.width, name=f"{name}_output", reset_less=True)
                m.d.comb += [
                    read.addr.eq(self.walking),
                    Value.cast(getattr(self, name)).eq(output),
                ]
                m.d.sync += output.eq(read.data)
                continue
            read = rows.read_port(domain="comb")
            m.d.comb += [
                read.addr.eq(self.next_probe),
                Value.cast(self.visiting[name]).eq(read.data),
            ]

# SPDX-License-Identifier: Apache-2.0
"""Walks along the chains of entries, group after group."""

from amaranth import *
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hdl.comparison.comparator import Comparator
from hdl.streams.pointer_queue import PointerQueue
from hdl.words.prepared import criterion_layout, stored_layout

from .layouts import direct_found_layout, direct_walk_layout, link_layout, probe_shape, slot_shape

__all__ = ["DirectWalker"]


class DirectWalker(wiring.Component):
    """Read an entry a cycle, compare it, go on to the one before it in its bucket.

    The rules are those of a :class:`ChainWalker`. Two walks take turns: one is compared while the
    entry of the other is read. No walk of a group sets out before all those of the group before it
    have ended.

    Latency: 1 cycle to set out, and :attr:`CIRCLE` per entry. Throughput: 1 entry per cycle, and 3
    cycles between two groups.

    Parameters
    ----------
    parameters : JoinParameters
        Of the accelerator.
    probe_side : int
        Side that really probes.

    Members
    -------
    add : In(1)
        Queue ``walk``, if it ``begins``, and the end of its group, if it ``ends``.
    begins, ends : In(1)
    walk : In(direct_walk_layout(parameters))
    ready : Out(1)
        :attr:`IN_FLIGHT` more may be queued; from a register.
    place : Out
        Entry to read.
    key, link : In
        What was there, a cycle ago.
    probe : Out
        The probe for which ``place`` is read.
    criterion, size : In
        What it compares keys with, and how many entries it sees; as late as ``key``.
    distinct : In(1)
        A walk ends with its first match.
    room : In(1)
        :attr:`MATCHES_IN_FLIGHT` more matches can be taken.
    match : Out(1)
        ``found`` is a match.
    found : Out(direct_found_layout(parameters))
    drained : Out(1)
        The group has ended, and so have its walks …
    finished : In(1)
        … and the next one may begin.
    compared : Out(1)
        An entry of the probe's window and bucket is compared.
    busy : Out(1)
        An entry is read.
    stalled : Out(1)
        A walk goes round without reading.
    """

    #: Cycles to read and to compare.
    CIRCLE = 2
    #: Walks that can be queued.
    DEPTH = 8
    #: … after ``ready`` fell.
    IN_FLIGHT = 4
    #: Matches that may come after ``room`` fell.
    MATCHES_IN_FLIGHT = 3

    def __init__(self, parameters, *, probe_side):
        self.parameters = parameters
        self.probe_side = probe_side
        self.latency = 1 + self.CIRCLE
        super().__init__(
            {
                "add": In(1),
                "begins": In(1),
                "ends": In(1),
                "walk": In(direct_walk_layout(parameters)),
                "ready": Out(1, init=1),
                "place": Out(slot_shape(parameters)),
                "key": In(stored_layout(parameters)),
                "link": In(link_layout(parameters)),
                "probe": Out(probe_shape(parameters)),
                "criterion": In(criterion_layout(parameters)),
                "size": In(slot_shape(parameters)),
                "distinct": In(1),
                "room": In(1),
                "match": Out(1),
                "found": Out(direct_found_layout(parameters)),
                "drained": Out(1),
                "finished": In(1),
                "compared": Out(1),
                "busy": Out(1),
                "stalled": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        layout = direct_walk_layout(self.parameters)
        queued = data.StructLayout({"walk": layout, "begins": 1, "ends": 1})
        m.submodules.waiting = waiting = PointerQueue(queued, depth=self.DEPTH)
        m.submodules.comparator = comparator = Comparator(
            self.parameters, probe_side=self.probe_side, pipelined=False
        )
        m.d.comb += [
            waiting.add.eq(self.add),
            waiting.last.walk.eq(self.walk),
            waiting.last.begins.eq(self.begins),
            waiting.last.ends.eq(self.ends),
        ]
        m.d.sync += self.ready.eq(waiting.level < self.DEPTH - self.IN_FLIGHT)

        # Whose entry is read, and whose was read in the cycle before.
        reading, compared = (
            Signal(layout, name=name, reset_less=True) for name in ("reading", "compared_walk")
        )
        valid, reads = Signal(), Signal()
        was_valid, did_read = Signal(), Signal()
        m.d.sync += [was_valid.eq(valid), did_read.eq(reads), compared.eq(reading)]

        link = self.link.link
        own = self.link.bucket == compared.bucket
        goes_on = did_read & own & (link != 0) & (link <= compared.age)
        returns = Signal()
        m.d.comb += [
            comparator.key.eq(self.key),
            *(
                getattr(comparator.criterion, name).eq(self.criterion[name])
                for name, _ in criterion_layout(self.parameters)
            ),
            self.compared.eq(did_read & own & (compared.age < self.size)),
            self.match.eq(self.compared & comparator.match),
            self.found.probe.eq(compared.probe),
            self.found.place.eq(compared.place),
            returns.eq((was_valid & ~did_read) | (goes_on & ~(self.match & self.distinct))),
        ]

        draining = Signal()  # the group at hand has ended, but for walks that set out
        takes = Signal()
        enters = returns | (takes & waiting.first.begins)
        m.d.comb += [
            takes.eq(waiting.filled & ~returns & ~draining),
            waiting.take.eq(takes),
            self.drained.eq(draining & ~valid & ~was_valid),
            self.place.eq(reading.place),
            self.probe.eq(reading.probe),
            self.busy.eq(reads),
            self.stalled.eq(valid & ~reads),
        ]
        m.d.sync += [valid.eq(enters), reads.eq(enters & self.room)]
        with m.If(takes):
            m.d.sync += draining.eq(waiting.first.ends)
        with m.Elif(self.finished):
            m.d.sync += draining.eq(0)
        with m.If(returns):
            m.d.sync += reading.eq(compared)
            with m.If(did_read):
                m.d.sync += [
                    reading.place.eq(compared.place - link),
                    reading.age.eq(compared.age - link),
                ]
        with m.Else():
            m.d.sync += reading.eq(waiting.first.walk)
        return m

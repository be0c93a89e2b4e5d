# SPDX-License-Identifier: Apache-2.0
"""Walks along the chains of entries: several probes at once, one entry a cycle."""

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.comparison.comparator import Comparator
from hdl.memory.key_column import KeyColumn
from hdl.words.prepared import criterion_layout, stored_layout

from .layouts import (
    bank_count,
    found_layout,
    group_count,
    link_layout,
    probe_shape,
    slot_shape,
    walk_layout,
    walks_layout,
    walks_waiting,
)
from .walk_queue import WalkQueue

__all__ = ["ChainWalker"]


class ChainWalker(wiring.Component):
    """Read an entry a cycle, compare it, go on to the one before it in its bucket.

    Walks go round in a circle of :attr:`CIRCLE` cycles, so that many are under way at once, and a
    new one sets out whenever one that ends leaves a gap. A walk ends at an entry of another bucket
    (the chain has been overwritten), at one without a link, or where the link leaves what the probe
    sees. Entries that are newer than the probe are passed over. While there is no ``room`` for
    matches in its queue, a walk goes round without reading.

    Latency: :attr:`latency` cycles from ``begin`` to ``found`` or ``ended`` with the first entry:
    those of the :class:`WalkQueue`, 1 to set out, and :attr:`CIRCLE`; :attr:`CIRCLE` per entry from
    then on. Throughput: 1 entry per cycle, provided that :attr:`CIRCLE` walks are under way.

    Parameters
    ----------
    parameters : JoinParameters
        Of the accelerator.
    probe_side : int
        Side that really probes.

    Members
    -------
    begin : In(banks)
        Queue these of the ``walks``.
    walks : In(walks_layout(parameters))
    ready : Out(1)
        Walks of :attr:`IN_FLIGHT` more visits may be queued, the one of this cycle included; from
        a register.
    place : Out
        Entry to read, while ``busy``; otherwise nothing is made of what is there.
    key, link : In
        What was there, :attr:`READING` cycles ago.
    probe : Out
        The probe for which ``place`` is read.
    criterion, size, number : In
        What it compares keys with, how many entries it sees, and its number since the last star; as
        late as ``key``.
    distinct : In(1)
        A walk ends with its first match.
    room : In(group_count(parameters))
        :attr:`MATCHES_IN_FLIGHT` more matches can be taken for this queue. A walk reads in the
        cycle after there was room, and its match is ``found`` :attr:`CIRCLE` cycles later.
    found_valid : Out(1)
        ``found`` is a match of a walk with the queue ``found_queue``.
    found_queue : Out(range(group_count(parameters)))
    found : Out(found_layout(parameters))
    ended : Out(group_count(parameters))
        A walk of this group has ended; its match, if any, is ``found`` in the same cycle.
    compared : Out(1)
        An entry of the probe's window and bucket was compared; in the cycle of ``found``.
    busy : Out(1)
        An entry is read.
    stalled : Out(1)
        A walk goes round without reading.
    """

    #: Cycles from ``place`` to what was there: those of the memory, and of the way from all of
    #: its blocks.
    READING = KeyColumn.LATENCY + 1
    CIRCLE = READING + 2
    #: Visits whose walks can be queued when ``ready`` falls, the one of the cycle before included.
    IN_FLIGHT = 8
    #: Matches that may come after ``room`` fell: from every place of the circle, and from the
    #: registers around it.
    MATCHES_IN_FLIGHT = CIRCLE + 5

    def __init__(self, parameters, *, probe_side):
        self.parameters = parameters
        self.probe_side = probe_side
        self._waiting = WalkQueue(
            parameters, depth=walks_waiting(parameters), in_flight=self.IN_FLIGHT
        )
        self.latency = self._waiting.latency + 1 + self.CIRCLE
        super().__init__(
            {
                "begin": In(bank_count(parameters)),
                "walks": In(walks_layout(parameters)),
                "ready": Out(1, init=1),
                "place": Out(slot_shape(parameters)),
                "key": In(stored_layout(parameters)),
                "link": In(link_layout(parameters)),
                "probe": Out(probe_shape(parameters)),
                "criterion": In(criterion_layout(parameters)),
                "size": In(slot_shape(parameters)),
                "number": In(parameters.probe_bits),
                "distinct": In(1),
                "room": In(group_count(parameters)),
                "found_valid": Out(1),
                "found_queue": Out(range(group_count(parameters))),
                "found": Out(found_layout(parameters)),
                "ended": Out(group_count(parameters)),
                "compared": Out(1),
                "busy": Out(1),
                "stalled": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        layout = walk_layout(self.parameters)
        m.submodules.waiting = waiting = self._waiting
        m.submodules.comparator = comparator = Comparator(
            self.parameters, probe_side=self.probe_side
        )
        m.d.comb += [
            waiting.begin.eq(self.begin),
            waiting.walks.eq(self.walks),
            self.ready.eq(waiting.ready),
        ]

        returning = Signal(layout, reset_less=True)  # the walk that comes round, if it goes on
        returns = Signal()

        # Which walk reads in the next cycle, and whether its match could be taken.
        walk, valid, reads = self.elaborate_entrance(m, waiting, returning, returns)
        m.d.comb += [
            self.place.eq(walk.place),
            self.probe.eq(walk.probe),
            self.busy.eq(reads),
            self.stalled.eq(valid & ~reads),
        ]
        walk, valid, reads = self.elaborate_reading(m, walk, valid, reads)
        self.elaborate_comparison(m, comparator, walk, valid, reads, returning, returns)
        return m

    def elaborate_entrance(self, m, waiting, returning, returns):
        """Let a walk that comes round go on, or else the next one set out."""
        layout = walk_layout(self.parameters)
        walk = Signal(layout, reset_less=True)
        valid, reads = Signal(), Signal()
        entering = Signal(layout)
        enters = returns | waiting.filled
        # Known for both before it is known which of them it is.
        room_for = [self.room.bit_select(one.queue, 1) for one in (waiting.first, returning)]
        m.d.comb += [
            entering.eq(Mux(returns, returning, waiting.first)),
            waiting.take.eq(waiting.filled & ~returns),
        ]
        m.d.sync += [
            walk.eq(entering),
            valid.eq(enters),
            reads.eq(Mux(returns, room_for[1], waiting.filled & room_for[0])),
        ]
        return walk, valid, reads

    def elaborate_reading(self, m, walk, valid, reads):
        """Keep the walk while its entry is read; return it when the entry is here."""
        for cycle in range(self.READING):
            before, was_valid, did_read = walk, valid, reads
            walk = Signal.like(before, name=f"walk_{cycle + 1}")
            valid, reads = Signal(name=f"valid_{cycle + 1}"), Signal(name=f"reads_{cycle + 1}")
            m.d.sync += [walk.eq(before), valid.eq(was_valid), reads.eq(did_read)]
        return walk, valid, reads

    def elaborate_comparison(self, m, comparator, walk, valid, reads, returning, returns):
        """Compare the entry with the probe, and say whether the walk ``returns`` after that.

        The entry is here in the first cycle, and so is its probe; in the second, the comparison is
        done.
        """
        link = self.link.link
        own = Signal()
        goes_on = Signal()
        m.d.comb += [
            own.eq(self.link.bucket == walk.bucket),
            goes_on.eq(own & (link != 0) & (link <= walk.age)),
            comparator.key.eq(self.key),
            *(
                getattr(comparator.criterion, name).eq(self.criterion[name])
                for name, _ in criterion_layout(self.parameters)
            ),
        ]
        further = Signal()
        active = Signal()
        sees = Signal()
        again = Signal()
        here = Signal.like(self.found, reset_less=True)
        m.d.sync += [
            active.eq(valid),
            again.eq(valid & ~reads),
            further.eq(reads & goes_on),
            sees.eq(reads & own & (walk.age < self.size)),
            here.number.eq(self.number),
            here.place.eq(walk.place),
            returning.eq(walk),
        ]
        with m.If(reads):
            m.d.sync += [
                returning.place.eq(walk.place - link),
                returning.age.eq(walk.age - link),
            ]

        match = sees & comparator.match
        m.d.comb += returns.eq(again | (further & ~(match & self.distinct)))
        found = Signal.like(self.found, reset_less=True)
        m.d.comb += self.found.eq(found)
        m.d.sync += [
            self.found_valid.eq(match),
            self.found_queue.eq(returning.queue),
            self.ended.eq((active & ~returns) << returning.group),
            self.compared.eq(sees),
            found.eq(here),
        ]

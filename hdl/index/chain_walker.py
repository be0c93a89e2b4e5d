# SPDX-License-Identifier: Apache-2.0
"""Walking chains of keys in a bucket."""

from amaranth import *
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hdl.memory.columns import KeyColumn
from hdl.predicates.rule import Comparator
from hdl.streams.queues import PointerQueue
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

__all__ = ["ChainWalker", "WalkQueue"]


class WalkQueue(wiring.Component):
    """A queue of the walks that visits begin; the walks of one visit leave one after the other.

    Walks leave in the order of their visits, so no walk waits for one of a later group. (With a
    queue for every bank, walks of a group whose matches have no room could block walks of the
    previous group, which have to finish before there is room: a deadlock.)

    A queue of more than :attr:`SHALLOW` visits would be read through multiplexers behind its
    memory. Therefore the next few visits move up into a short queue.

    Latency: 1 cycle, or 2 with the short queue. Throughput: all walks of 1 visit in, and 1 walk
    out, per cycle.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator.
    depth : int
        Number of visits whose walks can wait, a power of two.
    in_flight : int
        Visits that may still arrive when ``ready`` falls, including one of the previous cycle.

    Members
    -------
    begin : In(banks)
        Banks in which a walk begins.
    walks : In(walks_layout(parameters))
        One walk per bank.
    ready : Out(1)
        There was room for more than ``in_flight`` visits a cycle ago; from a register.
    filled : Out(1)
        ``first`` is a walk; from a register.
    first : Out(walk_layout(parameters))
    take : In(1)
        The walk ``first`` leaves the queue; only while ``filled``.
    """

    #: Depth of a distributed RAM.
    SHALLOW = 16
    #: Depth of the short queue, and how many of its entries are reserved for visits in flight.
    FRONT, RESERVE = 8, 2

    def __init__(self, parameters, *, depth, in_flight):
        self.parameters = parameters
        self.depth = depth
        self.in_flight = in_flight
        self.latency = 1 if depth <= self.SHALLOW else 2
        super().__init__(
            {
                "begin": In(bank_count(parameters)),
                "walks": In(walks_layout(parameters)),
                "ready": Out(1, init=1),
                "filled": Out(1),
                "first": Out(walk_layout(parameters)),
                "take": In(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        layout = data.StructLayout({"walks": self.walks.shape(), "both": 1, "second": 1})
        m.submodules.queue = queue = PointerQueue(layout, depth=self.depth)
        m.d.sync += self.ready.eq(queue.level < self.depth - self.in_flight)
        m.d.comb += [queue.add.eq(self.begin.any()), queue.last.walks.eq(self.walks)]
        if len(self.begin) > 1:
            m.d.comb += [
                queue.last.both.eq(self.begin.all()),
                queue.last.second.eq(~self.begin[0]),
            ]
        if self.depth > self.SHALLOW:
            queue = self.elaborate_front(m, queue)
        front = queue.first.walks
        m.d.comb += [
            self.filled.eq(queue.filled),
            *(self.first[name].eq(front[name]) for name in ("probe", "group", "queue")),
        ]
        entry = front.entries[0]
        if len(self.begin) == 1:
            m.d.comb += queue.take.eq(self.take)
        else:
            begun = Signal()  # the first walk of two has left
            second = begun | queue.first.second
            entry = data.View(
                entry.shape(), Mux(second, *(Value.cast(front.entries[n]) for n in (1, 0)))
            )
            m.d.comb += queue.take.eq(self.take & (begun | ~queue.first.both))
            with m.If(self.take):
                m.d.sync += begun.eq(queue.first.both & ~begun)
        m.d.comb += [self.first[name].eq(entry[name]) for name, _ in entry.shape()]
        return m

    def elaborate_front(self, m, queue):
        """Move visits up into a short queue, and return that queue."""
        m.submodules.front = front = PointerQueue(
            queue.shape, depth=self.FRONT, reserve=self.RESERVE
        )
        m.d.comb += [
            front.add.eq(queue.filled & front.room),
            front.last.eq(queue.first),
            queue.take.eq(front.add),
        ]
        return front


class ChainWalker(wiring.Component):
    """Read one entry per cycle, compare it, and go on to the previous entry of its bucket.

    Walks circulate in a loop of :attr:`CIRCLE` cycles, so that many are in progress at once. A new
    walk enters whenever one that ends leaves a gap. A walk ends in one of three cases: the entry
    belongs to another bucket (the chain has been overwritten), the entry has no link, or the link
    leaves the part of the ring that the probe sees. Entries newer than the probe are passed over.
    While the queue of a walk has no ``room`` for matches, the walk circulates without reading.

    Latency: :attr:`latency` cycles from ``begin`` to ``found`` or ``ended`` for the first entry:
    those of the :class:`WalkQueue`, 1 to enter the loop, and :attr:`CIRCLE`; then :attr:`CIRCLE`
    cycles per entry. Throughput: 1 entry per cycle while :attr:`CIRCLE` walks are in progress.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator.
    probe_side : int
        Side that probes, 0 for R and 1 for S.

    Members
    -------
    begin : In(banks)
        Queue the ``walks`` of these banks.
    walks : In(walks_layout(parameters))
    ready : Out(1)
        The walks of :attr:`IN_FLIGHT` more visits can be queued, including a visit of this cycle;
        from a register.
    place : Out
        Place of the entry to read, while ``busy``; otherwise the data read is ignored.
    key, link : In
        The entry at ``place``, :attr:`READING` cycles later.
    probe : Out
        Probe for which ``place`` is read.
    criterion, size, number : In
        What the probe compares keys with, how many entries it sees, and its number since the last
        star; with the same latency as ``key``.
    distinct : In(1)
        A walk ends with its first match.
    room : In(group_count(parameters))
        For each queue: :attr:`MATCHES_IN_FLIGHT` more matches can be taken. A walk reads in the
        cycle after there was room, and its match is ``found`` :attr:`CIRCLE` cycles later.
    found_valid : Out(1)
        ``found`` is a match for the queue ``found_queue``.
    found_queue : Out(range(group_count(parameters)))
    found : Out(found_layout(parameters))
    ended : Out(group_count(parameters))
        A walk of this group has ended; one-hot. Its match, if any, is ``found`` in the same cycle.
    compared : Out(1)
        An entry of the probe's window and bucket was compared; in the same cycle as ``found``.
    busy : Out(1)
        An entry is read.
    stalled : Out(1)
        A walk circulates without reading.
    """

    #: Cycles from ``place`` to the entry: the latency of the memory, and one for the way from its
    #: blocks.
    READING = KeyColumn.LATENCY + 1
    CIRCLE = READING + 2
    #: Visits whose walks can still be queued when ``ready`` falls, including one of the previous
    #: cycle.
    IN_FLIGHT = 8
    #: Matches that can still arrive after ``room`` fell: one from every stage of the loop, and
    #: those in the registers around it.
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
                "number": In(parameters.engine.probe_bits),
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

        returning = Signal(layout, reset_less=True)  # walk that comes round, if it continues
        returns = Signal()

        # Choose the walk that reads in the next cycle, and whether its match could be taken.
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
        """Continue the walk that has completed a round, or else start the next one."""
        layout = walk_layout(self.parameters)
        walk = Signal(layout, reset_less=True)
        valid, reads = Signal(), Signal()
        entering = Signal(layout)
        enters = returns | waiting.filled
        # Looked up for both walks before it is known which of them enters.
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
        """Delay the walk until its entry has been read; return it together with the entry."""
        for cycle in range(self.READING):
            before, was_valid, did_read = walk, valid, reads
            walk = Signal.like(before, name=f"walk_{cycle + 1}")
            valid, reads = Signal(name=f"valid_{cycle + 1}"), Signal(name=f"reads_{cycle + 1}")
            m.d.sync += [walk.eq(before), valid.eq(was_valid), reads.eq(did_read)]
        return walk, valid, reads

    def elaborate_comparison(self, m, comparator, walk, valid, reads, returning, returns):
        """Compare the entry with the probe; drive ``returns`` high if the walk continues.

        The entry and its probe arrive in the first cycle. The comparison is complete in the second.
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

# SPDX-License-Identifier: Apache-2.0
"""The index engine of a region: heads of chains, a ring of entries, walks along the chains."""

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import connect, flipped

from hdl.engine import engine_members
from hdl.key_column import KeyColumn
from hdl.layouts import Control

from .cell_sequencer import CellSequencer
from .chain_walker import ChainWalker
from .group_results import GroupResults
from .head_table import HeadTable
from .layouts import GROUPS, entry_layout, lookup_layout, slot_shape
from .probe_queue import ProbeQueue

__all__ = ["IndexEngine"]


class IndexEngine(wiring.Component):
    """Compare a probe with the entries of the buckets that can match it.

    A store writes twice: its slot into the :class:`HeadTable`, from which it gets the slot of the
    entry before it in its bucket, and its entry, with a link to that one, into the ring. An entry
    leaves the window when the tail passes it; nothing is erased. Probes wait in the
    :class:`ProbeQueue` until their group closes; then the :class:`CellSequencer` looks up the
    newest entry of every bucket that they visit, and the :class:`ChainWalker` follows the links,
    from new to old, until they leave the window. :class:`GroupResults` keeps groups apart.

    What the memories hold of earlier times does no harm. A head, or a link, may lead to a slot
    that has been overwritten; but the entry there says which bucket it belongs to, and had it been
    the probe's, the head would lead to it or to a newer one. So every entry of the window is met at
    most once, and exactly once if it is in a bucket that is visited.

    Results of one group come in the order in which walks meet them.

    Latency: :attr:`latency` cycles from the probe that ends its group to its star, when the engine
    is idle and the bucket empty; 2 more and :attr:`ChainWalker.CIRCLE` per entry otherwise.
    Throughput: a tuple per cycle; a bucket, and an entry, per cycle.

    Parameters
    ----------
    parameters : JoinParameters
        Of the accelerator.
    probe_side : int
        Side that really probes; there is no predicate to which it would matter.

    Members
    -------
    See :func:`hdl.engine.engine_members`.
    """

    #: From a group that closes: taken, begun, looked up, dropped, counted, complete, sent.
    IDLE_LATENCY = 9

    def __init__(self, parameters, *, probe_side):
        self.parameters = parameters
        self.probe_side = probe_side
        self.latency = self.IDLE_LATENCY
        super().__init__(engine_members(parameters))

    def elaborate(self, platform):
        m = Module()
        parameters = self.parameters
        m.submodules.heads = heads = HeadTable(parameters)
        m.submodules.ring = ring = KeyColumn(
            width=entry_layout(parameters).size, depth=parameters.ring_rows
        )
        m.submodules.queue = queue = ProbeQueue(parameters)
        m.submodules.sequencer = sequencer = CellSequencer(parameters)
        m.submodules.walker = walker = ChainWalker(parameters, probe_side=self.probe_side)
        m.submodules.results = results = GroupResults(
            parameters, in_flight=ChainWalker.MATCHES_IN_FLIGHT
        )
        connect(m, queue.groups, sequencer.groups)
        connect(m, queue.probes, sequencer.probes)
        connect(m, results.results, flipped(self.results))
        m.d.comb += [
            self.ready.eq(queue.ready),
            self.idle.eq(~queue.groups.valid & results.idle),
            sequencer.configure.eq(self.configure),
            sequencer.control.eq(self.control),
            sequencer.free.eq(results.free),
            sequencer.room.eq(walker.ready),
            results.take.eq(sequencer.take),
            results.group.eq(sequencer.groups.payload),
            results.started.eq(sequencer.started),
            results.found_valid.eq(walker.found_valid),
            results.found.eq(walker.found),
            results.ended.eq(walker.ended),
            walker.room.eq(results.room),
            ring.address.eq(walker.place),
            walker.entry.eq(ring.data),
        ]
        m.d.sync += [
            self.activity.comparisons.eq(walker.compared),
            self.activity.busy.eq(walker.busy),
            self.activity.stalled.eq(walker.stalled),
        ]
        self.elaborate_storing(m, heads, ring)
        self.elaborate_probing(m, queue)
        self.elaborate_lookup(m, sequencer, heads, walker, results)
        self.elaborate_occupied(m, queue, results)
        self.elaborate_distinct(m, walker)
        return m

    def elaborate_storing(self, m, heads, ring):
        """Exchange the head of the bucket, then write the entry."""
        entry = Signal(entry_layout(self.parameters), reset_less=True)
        slot = Signal(slot_shape(self.parameters), reset_less=True)
        store = Signal()
        m.d.sync += [
            store.eq(self.store),
            slot.eq(self.span.head.row),
            entry.key.eq(self.prepared.key),
            entry.bucket.eq(self.prepared.bucket),
        ]
        m.d.comb += [heads.store.eq(store), heads.slot.eq(slot), heads.bucket.eq(entry.bucket)]
        for cycle in range(HeadTable.LATENCY):
            before, entry = entry, Signal.like(entry, name=f"entry_{cycle + 1}")
            slot_before, slot = slot, Signal.like(slot, name=f"slot_{cycle + 1}")
            store_before, store = store, Signal(name=f"store_{cycle + 1}")
            m.d.sync += [entry.eq(before), slot.eq(slot_before), store.eq(store_before)]
        written = Signal.like(entry, name="written")
        place = Signal.like(slot, name="place")
        write = Signal()
        m.d.sync += [
            written.eq(entry),
            written.link.eq(slot - heads.previous),
            place.eq(slot),
            write.eq(store),
        ]
        m.d.comb += [ring.row.eq(written), ring.place.eq(place), ring.write.eq(write)]

    def elaborate_probing(self, m, queue):
        """Queue probes, with the span that they see."""
        probe = queue.probe
        m.d.comb += [
            queue.add.eq(self.probe),
            probe.criterion.eq(self.prepared.criterion),
            probe.bucket.eq(self.prepared.bucket),
            probe.cells.eq(self.prepared.cells),
            probe.tail.eq(self.span.tail.row),
            probe.size.eq(self.span.head.row - self.span.tail.row),
            queue.tail.eq(self.span.tail.row),
            queue.close.eq(self.close),
            queue.ending.eq(self.ending),
        ]

    def elaborate_lookup(self, m, sequencer, heads, walker, results):
        """Begin a walk where the head of a bucket lies inside the ring's present contents."""
        lookup, sent = sequencer.lookup, sequencer.sent
        m.d.comb += [
            heads.visited.eq(lookup.bucket),
            results.sent.eq(sent << lookup.group),
        ]
        for cycle in range(HeadTable.LATENCY):
            before, lookup = lookup, Signal(
                lookup_layout(self.parameters), name=f"lookup_{cycle + 1}", reset_less=True
            )  # fmt: skip
            sent_before, sent = sent, Signal(name=f"sent_{cycle + 1}")
            m.d.sync += [lookup.eq(before), sent.eq(sent_before)]
        slot = slot_shape(self.parameters)
        age = Signal(slot)
        stored = Signal(slot)  # since the oldest entry that the probe sees, up to now
        alive = Signal()
        dropped = Signal(GROUPS)
        walk = Signal.like(walker.walk, reset_less=True)
        begin = Signal()
        m.d.comb += [
            age.eq(heads.newest - lookup.tail),
            stored.eq(self.span.head.row - lookup.tail),
            alive.eq(age < stored),
            walker.walk.eq(walk),
            walker.begin.eq(begin),
            results.dropped.eq(dropped),
        ]
        m.d.sync += [
            begin.eq(sent & alive),
            dropped.eq((sent & ~alive) << lookup.group),
            walk.place.eq(heads.newest),
            walk.age.eq(age),
            *(
                walk[name].eq(lookup[name])
                for name in ("criterion", "bucket", "size", "probe", "group")
            ),
        ]

    def elaborate_occupied(self, m, queue, results):
        """Say whether the next store might overwrite an entry that a probe still needs.

        It is known in two cycles, and meanwhile a store may be under way: so two rows early.
        """
        head = self.span.head.row
        oldest = Signal.like(head, reset_less=True)
        distance = (head - oldest)[: len(head)]
        m.d.sync += [
            oldest.eq(Mux(results.idle, queue.oldest, results.oldest)),
            self.occupied.eq(distance[-1] | distance[1:-1].all()),
        ]

    def elaborate_distinct(self, m, walker):
        """Remember whether the keys stored here are distinct."""
        distinct = Signal()
        own = (self.control.op == Control.DISTINCT) & (self.control.index == 1)
        m.d.comb += walker.distinct.eq(distinct)
        with m.If(self.configure & own):
            m.d.sync += distinct.eq(self.control.value[0])

# SPDX-License-Identifier: Apache-2.0
"""The index engine of a region: heads of chains, a ring of entries, walks along the chains."""

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import connect, flipped

from hdl.engine import at_hand, engine_members, keep_from
from hdl.memory.key_column import KeyColumn
from hdl.words.prepared import stored_layout

from .cell_sequencer import CellSequencer
from .chain_walker import ChainWalker
from .delay import delayed
from .group_results import GroupResults
from .head_table import HeadTable
from .layouts import group_count, link_layout, slot_shape, visit_layout
from .probe_table import ProbeTable
from .probing import keep_distinct, keep_probes

__all__ = ["IndexEngine"]


class IndexEngine(wiring.Component):
    """Compare a probe with the entries of the buckets that can match it.

    A store writes twice: its slot into the :class:`HeadTable`, from which it gets the slot of the
    entry before it in its bucket, and its key, with a link to that one, into the ring. An entry
    leaves the window when the tail passes it; nothing is erased. Probes wait in the
    :class:`ProbeTable` until their group closes; then the :class:`CellSequencer` visits the heads
    of their buckets, and the :class:`ChainWalker` follows the links, from new to old, until they
    leave the window. :class:`GroupResults` keeps groups apart.

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

    #: A group is closed and taken (2), its probe read ahead (2), its bucket looked up (5), the
    #: visit dropped, counted, the group complete (3), its star sent (5).
    IDLE_LATENCY = 17

    def __init__(self, parameters, *, probe_side):
        self.parameters = parameters
        self.probe_side = probe_side
        self.latency = self.IDLE_LATENCY
        super().__init__(engine_members(parameters))

    def elaborate(self, platform):
        m = Module()
        parameters = self.parameters
        m.submodules.heads = heads = HeadTable(parameters)
        m.submodules.keys = keys = KeyColumn(
            width=stored_layout(parameters).size, depth=parameters.ring_rows
        )
        m.submodules.links = links = KeyColumn(
            width=link_layout(parameters).size, depth=parameters.ring_rows
        )
        m.submodules.table = table = ProbeTable(parameters)
        m.submodules.sequencer = sequencer = CellSequencer(parameters)
        m.submodules.walker = walker = ChainWalker(parameters, probe_side=self.probe_side)
        m.submodules.results = results = GroupResults(
            parameters, in_flight=ChainWalker.MATCHES_IN_FLIGHT
        )
        connect(m, results.results, flipped(self.results))
        m.d.comb += [
            self.soon.eq(table.soon),
            self.idle.eq(~table.closed & results.idle),
            sequencer.configure.eq(self.configure),
            sequencer.control.eq(self.control),
            sequencer.closed.eq(table.closed),
            sequencer.count.eq(table.group.ending.count),
            sequencer.probe.eq(table.visiting),
            sequencer.free.eq(results.free),
            sequencer.room.eq(walker.ready),
            sequencer.arrived.eq(table.arrived),
            table.visited.eq(sequencer.visited),
            table.take.eq(sequencer.take.any()),
            table.walking.eq(walker.probe),
            table.release.eq(results.release),
            table.released.eq(results.released),
            results.take.eq(sequencer.take),
            results.group.eq(table.group),
            results.started.eq(sequencer.started),
            results.found_valid.eq(walker.found_valid),
            results.found_group.eq(walker.found_group),
            results.found.eq(walker.found),
            results.ended.eq(walker.ended),
            walker.room.eq(results.room),
            keys.address.eq(walker.place),
            links.address.eq(walker.place),
        ]
        arriving = {
            "key": keys.data,
            "link": links.data,
            "criterion": table.criterion,
            "size": table.size,
        }
        for name, value in delayed(m, arriving, "arriving", flags=()).items():
            m.d.comb += Value.cast(getattr(walker, name)).eq(value)
        m.d.sync += [
            self.activity.comparisons.eq(walker.compared),
            self.activity.busy.eq(walker.busy),
            self.activity.stalled.eq(walker.stalled),
        ]
        self.elaborate_storing(m, heads, keys, links)
        keep_probes(m, self, table)
        self.elaborate_visit(m, sequencer, heads, walker, results)
        keep_from(m, self, Mux(results.idle, table.oldest, results.oldest))
        keep_distinct(m, self, walker)
        return m

    def elaborate_storing(self, m, heads, keys, links):
        """Exchange the head of the bucket, then write key and link."""
        _, stored, _ = at_hand(self)
        stages = [
            {
                "store": self.store,
                "slot": self.span.head.row[: slot_shape(self.parameters).width],
                "key": Value.cast(stored.key),
                "bucket": stored.bucket,
            }
        ]
        for cycle in range(1 + HeadTable.LATENCY):
            stages.append(delayed(m, stages[-1], f"stored_{cycle}", flags=("store",)))
        first, last = stages[1], stages[-1]
        written = delayed(m, last, "written", flags=("store",))
        link = Signal(slot_shape(self.parameters), reset_less=True)
        m.d.sync += link.eq(last["slot"] - heads.previous)
        m.d.comb += [
            heads.store.eq(first["store"]),
            heads.slot.eq(first["slot"]),
            heads.bucket.eq(first["bucket"]),
            keys.row.eq(written["key"]),
            links.row.eq(Cat(link, written["bucket"])),
        ]
        for column in (keys, links):
            m.d.comb += [column.place.eq(written["slot"]), column.write.eq(written["store"])]

    def elaborate_visit(self, m, sequencer, heads, walker, results):
        """Begin a walk where the head of a bucket lies inside the ring's present contents."""
        visit, begun = sequencer.visit, sequencer.begun
        m.d.comb += [heads.visited.eq(visit.bucket), results.begun.eq(begun << visit.group)]
        for cycle in range(HeadTable.LATENCY):
            following = Signal(
                visit_layout(self.parameters), name=f"visit_{cycle + 1}", reset_less=True
            )
            m.d.sync += following.eq(visit)
            visit = following
            was_begun, begun = begun, Signal(name=f"begun_{cycle + 1}")
            m.d.sync += begun.eq(was_begun)
        age = Signal(slot_shape(self.parameters), reset_less=True)
        # Since the oldest entry that the probe sees, up to now: at most as many as the ring holds.
        stored = Signal(visit.tail.shape(), reset_less=True)
        found = Signal.like(age)
        looked_up = Signal(visit_layout(self.parameters), reset_less=True)
        was_begun, begun = begun, Signal(name="looked_up_begun")
        alive = Signal()
        dropped = Signal(group_count(self.parameters))
        walk = Signal.like(walker.walk, reset_less=True)
        begin = Signal()
        m.d.comb += [
            alive.eq(age < stored),
            walker.walk.eq(walk),
            walker.begin.eq(begin),
            results.dropped.eq(dropped),
        ]
        m.d.sync += [
            age.eq(heads.newest - visit.tail),
            stored.eq(self.span.head.row - visit.tail),
            found.eq(heads.newest),
            looked_up.eq(visit),
            begun.eq(was_begun),
            begin.eq(begun & alive),
            dropped.eq((begun & ~alive) << looked_up.group),
            walk.place.eq(found),
            walk.age.eq(age),
            *(walk[name].eq(looked_up[name]) for name in ("bucket", "probe", "group")),
        ]

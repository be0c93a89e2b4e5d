# SPDX-License-Identifier: Apache-2.0
"""The index engine without the registers that only a clock needs: fewer cells, fewer cycles."""

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import connect, flipped

from hdl.engine import engine_members, keep_from
from hdl.memory.key_column import KeyColumn
from hdl.words.prepared import stored_layout

from .delay import delayed
from .direct_results import DirectResults
from .direct_sequencer import DirectSequencer
from .direct_walker import DirectWalker
from .head_bank import HeadBank
from .layouts import link_layout, slot_shape
from .probe_table import ProbeTable
from .probing import keep_distinct, keep_probes

__all__ = ["DirectIndexEngine"]


class DirectIndexEngine(wiring.Component):
    """Compare a probe with the entries of the buckets that can match it.

    Heads, chains and what is stale are those of an :class:`IndexEngine`, and so are the answers.
    But a bucket is looked up in one cycle, so few walks keep the ring busy, and groups need not
    overlap: they go through in line, and their results need no place of their own.

    Latency: :attr:`latency` cycles from the probe that ends its group to its star, when the engine
    is idle and the bucket empty; :attr:`DirectWalker.CIRCLE` more per entry otherwise.
    Throughput: a tuple per cycle; a bucket, and an entry, per cycle, and 3 cycles between groups.

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

    #: A group is closed and taken (2), its bucket looked up (3), its end queued and met (2), its
    #: star sent (1).
    IDLE_LATENCY = 8

    def __init__(self, parameters, *, probe_side):
        self.parameters = parameters
        self.probe_side = probe_side
        self.latency = self.IDLE_LATENCY
        super().__init__(engine_members(parameters))

    def elaborate(self, platform):
        m = Module()
        parameters = self.parameters
        m.submodules.heads = heads = HeadBank(
            width=slot_shape(parameters).width, bits=parameters.bucket_width, pipelined=False
        )
        ring = {"depth": parameters.ring_rows, "pipelined": False}
        m.submodules.keys = keys = KeyColumn(width=stored_layout(parameters).size, **ring)
        m.submodules.links = links = KeyColumn(width=link_layout(parameters).size, **ring)
        m.submodules.table = table = ProbeTable(parameters)
        m.submodules.sequencer = sequencer = DirectSequencer(parameters)
        m.submodules.walker = walker = DirectWalker(parameters, probe_side=self.probe_side)
        m.submodules.results = results = DirectResults(
            parameters, in_flight=DirectWalker.MATCHES_IN_FLIGHT
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
            table.take.eq(sequencer.take),
            table.walking.eq(walker.probe),
            table.release.eq(results.release),
            table.released.eq(results.released),
            results.take.eq(sequencer.take),
            results.group.eq(table.group),
            results.match.eq(walker.match),
            results.found.eq(walker.found),
            results.drained.eq(walker.drained),
            walker.finished.eq(results.finished),
            walker.room.eq(results.room),
            walker.key.eq(keys.data),
            walker.link.eq(links.data),
            walker.criterion.eq(table.criterion),
            walker.size.eq(table.size),
            keys.address.eq(walker.place),
            links.address.eq(walker.place),
        ]
        m.d.sync += [
            self.activity.comparisons.eq(walker.compared),
            self.activity.busy.eq(walker.busy),
            self.activity.stalled.eq(walker.stalled),
        ]
        self.elaborate_storing(m, heads, keys, links)
        keep_probes(m, self, table)
        self.elaborate_visit(m, sequencer, heads, walker)
        keep_from(m, self, Mux(results.idle, table.oldest, results.oldest))
        keep_distinct(m, self, walker)
        return m

    def elaborate_storing(self, m, heads, keys, links):
        """Exchange the head of the bucket, then write key and link."""
        stored = {
            "store": self.store,
            "slot": self.span.head.row[: slot_shape(self.parameters).width],
            "key": Value.cast(self.prepared.key),
            "bucket": self.prepared.bucket,
        }
        m.d.comb += [
            heads.store.eq(stored["store"]),
            heads.head.eq(stored["slot"]),
            heads.bucket.eq(stored["bucket"]),
        ]
        for cycle in range(heads.latency):
            stored = delayed(m, stored, f"stored_{cycle}", flags=("store",))
        link = (stored["slot"] - heads.previous)[: slot_shape(self.parameters).width]
        m.d.comb += [keys.row.eq(stored["key"]), links.row.eq(Cat(link, stored["bucket"]))]
        for column in (keys, links):
            m.d.comb += [column.place.eq(stored["slot"]), column.write.eq(stored["store"])]

    def elaborate_visit(self, m, sequencer, heads, walker):
        """Begin a walk where the head of a bucket lies inside the ring's present contents."""
        visit = {
            "begun": sequencer.begun,
            "ends": sequencer.ends,
            "tail": sequencer.visit.tail,
            "bucket": sequencer.visit.bucket,
            "probe": sequencer.visit.probe,
        }
        m.d.comb += heads.visited.eq(visit["bucket"])
        for cycle in range(heads.latency):
            visit = delayed(m, visit, f"visit_{cycle}", flags=("begun", "ends"))
        age = Signal(slot_shape(self.parameters))
        # Since the oldest entry that the probe sees, up to now: at most as many as the ring holds.
        stored = Signal(len(visit["tail"]))
        m.d.comb += [
            age.eq(heads.newest - visit["tail"]),
            stored.eq(self.span.head.row - visit["tail"]),
            walker.begins.eq(visit["begun"] & (age < stored)),
            walker.ends.eq(visit["ends"]),
            walker.add.eq(walker.begins | walker.ends),
            walker.walk.place.eq(heads.newest),
            walker.walk.age.eq(age),
            *(walker.walk[name].eq(visit[name]) for name in ("bucket", "probe")),
        ]

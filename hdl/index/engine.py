# SPDX-License-Identifier: Apache-2.0
"""Index engine of a region: chain heads, a ring of entries, and walks along the chains."""

from dataclasses import dataclass, replace

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import connect, flipped
from amaranth.utils import ceil_log2

from hdl.engine import OnChip, at_hand, engine_members, keep_from
from hdl.memory.columns import stored_column
from hdl.parts import option
from hdl.predicates.band import Band
from hdl.predicates.equality import Equality
from hdl.streams.registers import delayed
from hdl.words.inputs import Control, coordinate_layout
from hdl.words.prepared import cells_layout, is_own_criterion, stored_layout

from .cell_counter import CellSequencer
from .cells import CellPreparation
from .chain_walker import ChainWalker
from .heads import HeadLookup, HeadTable
from .layouts import bank_count, link_layout, slot_shape
from .probe_table import ProbeTable
from .results import GroupResults

__all__ = ["Index", "IndexEngine"]

#: Probes that are under way besides two groups while a core shows nothing.
UNDER_WAY = 64


class IndexEngine(wiring.Component):
    """Compare a probe with the entries of the buckets that may match it.

    A store writes twice. It writes its place into the :class:`HeadTable`, which returns the place
    of the previous entry of the bucket. It writes its key, and a link to that previous entry, into
    the ring. An entry leaves the window when the tail passes it; nothing is erased.

    Probes wait in the :class:`ProbeTable` until their group closes. Then the :class:`CellSequencer`
    visits their buckets, and a :class:`HeadLookup` begins a walk where the head of a bucket leads
    into the window. The :class:`ChainWalker` follows the links, from new to old, until they leave
    the window. :class:`GroupResults` separates the results of groups that have a star between them.

    Stale contents of the memories are harmless. A head or a link may lead to a slot that has been
    overwritten, but the entry there names the bucket that it belongs to. If it belonged to the
    probe's bucket, the head would lead to it or to a newer entry. So every entry of the window is
    met at most once, and exactly once if its bucket is visited.

    Results between two stars come in the order in which the walks meet them.

    Latency: :attr:`latency` cycles from the probe that ends its group to its star, when the engine
    is idle and the bucket is empty. Otherwise 3 more (4 if tuples go side by side), and
    :attr:`ChainWalker.CIRCLE` per entry. Throughput: 1 tuple per cycle; 1 bucket of every bank and
    1 entry per cycle.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator.
    probe_side : int
        Side that probes, 0 for R and 1 for S. It makes no difference, as an index has no custom
        predicate.

    Members
    -------
    See :func:`hdl.engine.engine_members`.
    """

    #: Closing and taking the group (2), reading its probe ahead (2), looking up its bucket (6),
    #: counting the last visit and completing the group (3), sending its star (5).
    IDLE_LATENCY = 18
    #: Counting the cells of a band probe (1).
    COUNTING = 1

    def __init__(self, parameters, *, probe_side):
        self.parameters = parameters
        self.probe_side = probe_side
        counting = self.COUNTING if parameters.bounded else 0
        self.latency = self.IDLE_LATENCY + counting
        super().__init__(engine_members(parameters))

    def elaborate(self, platform):
        m = Module()
        parameters = self.parameters
        m.submodules.heads = heads = HeadTable(parameters)
        rows = parameters.ring_rows
        m.submodules.keys = keys = stored_column(
            parameters, width=stored_layout(parameters).size, depth=rows, late=True
        )
        m.submodules.links = links = stored_column(
            parameters, width=link_layout(parameters).size, depth=rows, late=True
        )
        m.submodules.table = table = ProbeTable(parameters)
        m.submodules.sequencer = sequencer = CellSequencer(parameters)
        m.submodules.lookup = lookup = HeadLookup(parameters)
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
            results.final.eq(lookup.final_of),
            results.found_valid.eq(walker.found_valid),
            results.found_queue.eq(walker.found_queue),
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
            "number": table.number,
        }
        for name, value in delayed(m, arriving, "arriving", flags=()).items():
            m.d.comb += Value.cast(getattr(walker, name)).eq(value)
        m.d.sync += [
            self.activity.comparisons.eq(walker.compared),
            self.activity.busy.eq(walker.busy),
            self.activity.stalled.eq(walker.stalled),
        ]
        if parameters.engine.parity:
            m.d.comb += [
                keys.checked.eq(walker.busy),
                links.checked.eq(walker.busy),
                heads.visits.eq(sequencer.begun),
            ]
            m.d.sync += self.activity.wrong.eq(keys.wrong | links.wrong | heads.wrong)
        head = self.elaborate_head(m)
        self.elaborate_storing(m, heads, keys, links, head)
        self.elaborate_probes(m, table)
        self.elaborate_visits(m, sequencer, lookup, heads, walker, results, head)
        keep_from(m, self, Mux(results.idle, table.oldest, results.oldest))
        self.elaborate_distinct(m, walker)
        return m

    def elaborate_head(self, m):
        """Return the place of the next entry in the head table's format, delayed by one cycle."""
        row = Signal.like(self.span.head.row, name="row", reset_less=True)
        # Toggles whenever the row returns to zero. It starts at one, so that it differs from the
        # initial contents of the memories.
        turn = Signal(init=1)
        at_zero = Signal(init=1)  # `row` is zero
        begins = self.span.head.row == 0
        m.d.sync += [
            row.eq(self.span.head.row),
            at_zero.eq(begins),
            turn.eq(turn ^ (begins & ~at_zero)),
        ]
        return Cat(row, turn)

    def elaborate_storing(self, m, heads, keys, links, head):
        """Exchange the head of the bucket, then write key and link.

        Key and link are in memory 7 cycles after the store. The earliest reads come later: 11
        cycles after the store for a probe that arrives with it, and 9 for a probe whose visit meets
        the new head right after it was written.
        """
        _, stored, _ = at_hand(self)
        arriving = {
            "store": self.store,
            "key": Value.cast(stored.key),
            "bucket": stored.bucket,
        }
        first = {**delayed(m, arriving, "stored", flags=("store",)), "head": head}
        last = first
        for cycle in range(HeadTable.LATENCY):
            last = delayed(m, last, f"exchanged_{cycle}", flags=("store",))
        written = delayed(m, last, "written", flags=("store",))
        distance = Signal.like(heads.previous, name="distance", reset_less=True)
        m.d.sync += distance.eq(last["head"] - heads.previous)
        slot = slot_shape(self.parameters).width
        link = distance[:slot] & ~distance[slot:].any().replicate(slot)
        m.d.comb += [
            heads.store.eq(first["store"]),
            heads.head.eq(first["head"]),
            heads.bucket.eq(first["bucket"]),
            keys.row.eq(written["key"]),
            links.row.eq(Cat(link, written["bucket"])),
        ]
        for column in (keys, links):
            m.d.comb += [column.place.eq(written["head"]), column.write.eq(written["store"])]

    def elaborate_visits(self, m, sequencer, lookup, heads, walker, results, head):
        """Look up the heads of the visited buckets, and begin walks there."""
        m.d.comb += [
            lookup.begun.eq(sequencer.begun),
            lookup.final.eq(sequencer.final),
            lookup.visit.eq(sequencer.visit),
            lookup.head.eq(head),
            lookup.queues.eq(results.queues),
            walker.begin.eq(lookup.begin),
            walker.walks.eq(lookup.walks),
        ]
        for n in range(bank_count(self.parameters)):
            m.d.comb += [
                heads.visited[n].eq(lookup.visited[n]),
                lookup.newest[n].eq(heads.newest[n]),
                results.started[n].eq(lookup.started[n]),
            ]

    def elaborate_probes(self, m, table):
        """Add probes to the table, each with the span that it sees."""
        probe = table.probe
        prepared, _, seen = at_hand(self)
        own = is_own_criterion(self.parameters)
        m.d.comb += [
            table.add.eq(self.probe),
            probe.criterion.eq(prepared.key if own else prepared.criterion),
            *(
                probe[name].eq(prepared[name])
                for name in ("bucket", "cells")
                if name in probe.shape().members
            ),
            probe.tail.eq(seen.tail.row),
            probe.size.eq(seen.head.row - seen.tail.row),
            table.tail.eq(self.span.tail.row),
            table.close.eq(self.close),
            table.ending.eq(self.ending),
        ]

    def elaborate_distinct(self, m, walker):
        """Register whether stored keys are distinct, as a control word says, for the walker."""
        distinct = Signal()
        own = (self.control.op == Control.DISTINCT) & (self.control.index == 1)
        m.d.comb += walker.distinct.eq(distinct)
        with m.If(self.configure & own):
            m.d.sync += distinct.eq(self.control.value[0])


@dataclass(frozen=True, kw_only=True)
class Index(OnChip):
    """An index, which reads only the buckets that can hold matches.

    Parameters
    ----------
    predicate : Band or Equality
    bucket_bits : int or None
        There are ``2 ** bucket_bits`` buckets; by default as many as a core's window has tuples,
        rounded up to a power of two.
    tuples_per_word : int
        Largest number of tuples in an input word, and number of results in a result word: 1 or 2.
        With 2, a word can hold one tuple of each side.
    """

    kind = "index"
    title = "An index"
    fixed = {"engine": "index"}
    reasons = OnChip.reasons | {
        "comparator": "a custom predicate takes a scan",
        "lanes": "it reads one entry a cycle",
        "digest_bits": "a walk meets whole keys",
        "value_bits": "it sends the matches of several probes by turns",
        "store": "it reads its memory at random, which no burst can serve",
        "rounds": "it meets stored tuples in another order",
    }
    module = IndexEngine
    restarts = (Control.COORDINATE, Control.DISTINCT)
    under_way = 32
    own_criterion = True
    has_rounds = False
    chains = False
    number = 1
    wide_luts = True
    counted = rate = "tuples"

    predicate: Band | Equality
    bucket_bits: option("logarithm of the number of buckets of an index", range(1, 25)) = None
    tuples_per_word: option(
        "1; of an index also 2, for a tuple of each side in an input word, two results in one",
        (1, 2),
    ) = 1

    def completed(self, parameters):
        part = super().completed(parameters)
        bits = max(1, ceil_log2(parameters.window.sub_window))
        return part if self.bucket_bits is not None else replace(part, bucket_bits=bits)

    def operations(self, parameters):
        return {Control.DISTINCT: 2, Control.COORDINATE: len(parameters.keys)}

    def operands(self, parameters):
        return [coordinate_layout(parameters)]

    def prepared_members(self, parameters):
        return {"bucket": unsigned(self.bucket_bits), "cells": cells_layout(parameters)}

    def preparation(self, parameters):
        return {"cells": CellPreparation(parameters)}

    def described(self, parameters):
        coordinate = coordinate_layout(parameters)
        return {"index": {"bucket_bits": self.bucket_bits, "coordinate": coordinate}}

    @property
    def comparators(self):
        """Number of comparators of a region."""
        return self.lanes

    def busy_tuples(self, parameters, *, window, precision, cycles):
        """Return how many tuples keep it busy: it accepts a word per cycle at the most."""
        return cycles * self.tuples_per_word

    def most_work(self, parameters):
        """Return the cycles until the star of a word.

        Each probe reads the whole ring and visits every bucket at most, one after the other.
        """
        slots, buckets = parameters.ring_rows * self.lanes, 1 << self.bucket_bits
        return (2 * self.probes + UNDER_WAY) * (slots + buckets)

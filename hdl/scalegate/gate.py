# SPDX-License-Identifier: Apache-2.0
"""The ScaleGate: a tree of two-way merges behind the entries of its sources."""

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hdl.streams.registers import StreamRegister
from hdl.tree import tree_levels

from .entry import COUNTER_BITS, DEADLINE_BITS, SourceEntry
from .merge import TimestampMerge
from .words import GateKind, gate_word, source_word

__all__ = ["MOST_SOURCES", "ScaleGate"]

#: Largest number of sources.
MOST_SOURCES = 64


class ScaleGate(wiring.Component):
    """Merge timestamp-sorted sources into one sorted stream of ready tuples.

    A tuple of source i with time t is *ready* when no source can send any more what comes before
    it: every present source has shown a time above t, or t itself if its number is not below i. The
    output has the tuples in the order of (time, source), and those of a source in their own order.
    This order depends on the words of the sources alone, whatever their timing, as long as no
    source is added or excluded.

    What a source says of its progress is its latest time, of a tuple or of a WATERMARK. A source
    that says LEAVE holds nobody back. Its next word, of any kind, adds it again, from the time on
    that has been reached there. While the output takes words, that is at most
    :attr:`return_latency` cycles after the word has come; what others send before may leave before
    it. A barrier leaves when every present source has sent one, behind all tuples before it; times
    start again at zero behind it.

    A tuple that is older than what its source has shown before, or than what was reached when the
    source was added, is *late*. It is not lost: it leaves at the place that has been reached, with
    the time of that place, and its own ``body``. The bit of its source in ``late`` remembers it.

    ``o`` also gets watermarks, each greater than all times before it, when no tuple is ready, and a
    LEAVE when no source is left. So a gate can be a source of another gate.

    A source *stalls* in a cycle in which the output is empty, some tuple waits, and this source is
    what it waits for; ``stalls`` counts these cycles, up to ``levels + 2`` cycles late. A source is
    excluded, as if it had said LEAVE, by its bit of ``exclude``, or when it has stalled for
    ``deadline`` cycles on end. A source whose word has come meanwhile is not excluded.

    A reset lasts two cycles at least.

    Latency: :attr:`latency` cycles, ``3 + 3 * levels``, from the word that makes a tuple ready to
    the tuple. Throughput: 1 tuple or barrier per cycle, also with random gaps in the sources, if
    their queues are deep enough.

    Parameters
    ----------
    time_bits : int
        Width of times.
    shape : shape-like
        Shape of the body of a word.
    sources : int
        Number of sources, one to :data:`MOST_SOURCES`.
    depth : int
        Places in the queue of a source, a power of two.
    present : int
        A bit for each source that is there after reset; by default all are.

    Attributes
    ----------
    levels : int
        Number of merges between a source and the output, at the most.
    return_latency : int
        ``3 + 6 * levels``: 4 cycles in a merge, and 2 while a neighbour comes back too.

    Members
    -------
    i : In(stream.Signature(source_word(time_bits, shape))).array(sources)
    o : Out(stream.Signature(gate_word(time_bits, shape, sources=sources)))
    exclude : In(sources)
        Exclude these sources now.
    deadline : In(DEADLINE_BITS)
        Stalled cycles after which a source is excluded; zero for never.
    stalls : Out(COUNTER_BITS).array(sources)
        Cycles in which each source was waited for; they wrap.
    late : Out(sources)
        Sources that sent a late tuple, since reset or ``forget``.
    excluded : Out(sources)
        Sources that were excluded, likewise.
    differ : Out(1)
        Barriers with different bodies have become one, likewise.
    forget : In(1)
        Forget what ``late``, ``excluded`` and ``differ`` tell, but not what happens in this cycle.
    waits : Out(1)
        Two cycles ago a word was in the gate.
    """

    def __init__(self, time_bits, shape, *, sources, depth=16, present=None):
        if not 1 <= sources <= MOST_SOURCES:
            raise ValueError(f"A ScaleGate has 1 to {MOST_SOURCES} sources, not {sources!r}")
        if time_bits < 1:
            raise ValueError(f"A ScaleGate needs at least one bit of time, not {time_bits!r}")
        present = (1 << sources) - 1 if present is None else present
        if not 0 <= present < 1 << sources:
            raise ValueError(f"Sources {present:#b} are present, but there are only {sources!r}")
        self.time_bits = time_bits
        self.shape = shape
        self.sources = sources
        self.depth = depth
        self.present = present
        self.levels = len(tree_levels(sources, 2))
        self.latency = 3 + 3 * self.levels
        self.return_latency = 3 + 6 * self.levels
        self._source_word = source_word(time_bits, shape)
        self._gate_word = gate_word(time_bits, shape, sources=sources)
        super().__init__(
            {
                "i": In(stream.Signature(self._source_word)).array(sources),
                "o": Out(stream.Signature(self._gate_word)),
                "exclude": In(sources),
                "deadline": In(DEADLINE_BITS),
                "stalls": Out(COUNTER_BITS).array(sources),
                "late": Out(sources),
                "excluded": Out(sources),
                "differ": Out(1),
                "forget": In(1),
                "waits": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        entries = [self.elaborate_entry(m, n) for n in range(self.sources)]
        merges, links, blamed = self.elaborate_tree(m, entries)
        connect(m, links[-1].o, flipped(self.o))
        # A tuple waits for somebody from the merges on. What is in an entry is on its way.
        held, moving = Signal(len(merges)), Signal(len(entries) + len(links))
        m.d.comb += blamed.eq(held.any())
        m.d.sync += [
            held.eq(Cat(merge.waits for merge in merges)),
            moving.eq(Cat([entry.waits for entry in entries], [link.o.valid for link in links])),
            self.waits.eq(Cat(held, moving).any()),
        ]
        self.elaborate_records(m, merges)
        return m

    def elaborate_entry(self, m, number):
        """Build the entry of a source, and return it."""
        m.submodules[f"entry_{number}"] = entry = SourceEntry(
            self._source_word, self._gate_word, number=number, depth=self.depth
        )
        connect(m, flipped(self.i[number]), entry.i)
        m.d.comb += [
            entry.exclude.eq(self.exclude[number]),
            entry.deadline.eq(self.deadline),
            entry.forget.eq(self.forget),
            self.stalls[number].eq(entry.stalls),
            self.excluded[number].eq(entry.excluded),
        ]
        return entry

    def elaborate_tree(self, m, entries):
        """Build the merges level by level; return them, their registers, and what blames the root.

        A child without a neighbour goes up as it is. A single source has a merge too, which checks
        its order; its other port is absent for ever.
        """
        children = [
            (entry.o, entry.blamed, bool(self.present >> n & 1)) for n, entry in enumerate(entries)
        ]
        merges, links = [], []
        for _ in range(self.levels):
            parents = []
            for n in range(0, len(children), 2):
                group = children[n : n + 2]
                if len(group) == 1 and self.sources > 1:
                    parents += group
                    continue
                parents.append(self.elaborate_merge(m, merges, links, group))
            children = parents
        return merges, links, children[0][1]

    def elaborate_merge(self, m, merges, links, group):
        """Add a merge of one or two children; return it as a child of the next one.

        A register stands behind it, so its choice and the next one are in different cycles.
        """
        there = [present for _, _, present in group]
        merge = TimestampMerge(self._gate_word, present=[*there, False][:2])
        link = StreamRegister(self._gate_word, early=["kind", "late", "time"])
        m.submodules[f"merge_{len(merges)}"] = merge
        m.submodules[f"link_{len(merges)}"] = link
        blamed = Signal(name=f"blamed_{len(merges)}")
        merges.append(merge)
        links.append(link)
        connect(m, merge.o, link.i)
        m.d.comb += merge.starving.eq(blamed & ~link.o.valid)
        for i, starved, (o, child_blamed, _) in zip(merge.i, merge.starved_by, group, strict=False):
            connect(m, o, i)
            m.d.comb += child_blamed.eq(starved)
        return link.o, blamed, any(there)

    def elaborate_records(self, m, merges):
        """Remember which sources were late, and whether barriers were different."""
        word = self.o.payload
        leaves = self.o.valid & self.o.ready & (word.kind == GateKind.TUPLE) & word.late
        differ = Cat(merge.differ for merge in merges).any()
        m.d.sync += self.differ.eq(differ | (self.differ & ~self.forget))
        for n in range(self.sources):
            late = leaves & (word.source == n)
            m.d.sync += self.late[n].eq(late | (self.late[n] & ~self.forget))

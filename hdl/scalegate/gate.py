# SPDX-License-Identifier: Apache-2.0
"""ScaleGate: sorted sources merged into one stream."""

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hdl.ecp5 import is_below
from hdl.streams.queues import PointerQueue
from hdl.streams.registers import StreamRegister
from hdl.tree import tree_levels

from .port import LateCheck, MergePort
from .words import GateKind, gate_word, source_word

__all__ = [
    "COUNTER_BITS",
    "DEADLINE_BITS",
    "MOST_SOURCES",
    "ScaleGate",
    "SourceEntry",
    "TimestampMerge",
]


#: Bits of the counter of stalled cycles, which wraps, and of a deadline.
COUNTER_BITS = 32
DEADLINE_BITS = 32


class SourceEntry(wiring.Component):
    """Queue the words of a source, count its stalls, and exclude it if it is asked to.

    A source that is excluded gets a LEAVE: it holds nobody back until its next word. Only a source
    that has no word here is excluded; otherwise ``exclude`` has no effect.

    The words also learn here whether they are late (:class:`hdl.scalegate.port.LateCheck`). A
    register stands between the queue and this check, because what reads the queue is slow.

    Latency: 3 cycles. Throughput: 1 word per cycle.

    Parameters
    ----------
    i_layout : data.StructLayout
        :func:`hdl.scalegate.words.source_word`.
    o_layout : data.StructLayout
        :func:`hdl.scalegate.words.gate_word`.
    number : int
        Number of the source.
    depth : int
        Places of the queue, a power of two.

    Members
    -------
    i : In(stream.Signature(i_layout))
        ``ready`` comes from a register.
    o : Out(stream.Signature(o_layout))
    blamed : In(1)
        Words of other sources wait for this one.
    exclude : In(1)
        Exclude the source now.
    deadline : In(DEADLINE_BITS)
        Exclude the source after this many stalled cycles on end, in the second cycle after the last
        one if it has no word by then; never if zero.
    stalls : Out(COUNTER_BITS)
        Cycles in which the source was blamed and had no word, a cycle late.
    excluded : Out(1)
        The source was excluded since reset or ``forget``.
    forget : In(1)
        Forget that the source was excluded.
    waits : Out(1)
        A word is in the entry.
    """

    def __init__(self, i_layout, o_layout, *, number, depth):
        self.i_layout = i_layout
        self.o_layout = o_layout
        self.number = number
        self.depth = depth
        self.latency = 3
        super().__init__(
            {
                "i": In(stream.Signature(i_layout)),
                "o": Out(stream.Signature(o_layout)),
                "blamed": In(1),
                "exclude": In(1),
                "deadline": In(DEADLINE_BITS),
                "stalls": Out(COUNTER_BITS),
                "excluded": Out(1),
                "forget": In(1),
                "waits": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.queue = queue = PointerQueue(self.i_layout, depth=self.depth, reserve=1)
        m.submodules.first = first = StreamRegister(self.o_layout, early=["kind", "time"])
        m.submodules.check = check = LateCheck(self.o_layout)
        connect(m, first.o, check.i)
        connect(m, check.o, flipped(self.o))
        leaves = Signal()  # a LEAVE goes out, before what comes meanwhile
        word = first.i.payload
        m.d.comb += [
            self.i.ready.eq(queue.room),
            queue.add.eq(self.i.valid & queue.room),
            queue.last.eq(self.i.payload),
            queue.take.eq(queue.filled & first.i.ready & ~leaves),
            first.i.valid.eq(queue.filled | leaves),
            word.source.eq(self.number),
        ]
        with m.If(leaves):
            m.d.comb += word.kind.eq(GateKind.LEAVE)
        with m.Else():
            m.d.comb += [
                word.kind.eq(queue.first.kind),
                word.time.eq(queue.first.time),
                word.body.eq(queue.first.body),
            ]
        left = Signal(DEADLINE_BITS)  # cycles up to the deadline
        stalled = Signal()
        counted = Signal()  # stalled in the last cycle: the carry chains begin at a register
        m.d.comb += [
            self.waits.eq(queue.filled | leaves | first.o.valid | check.o.valid),
            stalled.eq(self.blamed & ~self.waits),
        ]
        expired = Signal()  # the deadline has passed
        begins = ~self.waits & (self.exclude | expired)
        m.d.sync += [
            left.eq(Mux(counted & (left != 0), left - 1, self.deadline)),
            expired.eq(counted & (left == 1)),
            counted.eq(stalled),
            self.stalls.eq(self.stalls + counted),
            leaves.eq(begins | (leaves & ~first.i.ready)),
            self.excluded.eq(begins | (self.excluded & ~self.forget)),
        ]
        return m


#: Bits of two bodies that are compared in one cycle, before the parts are put together.
PART_BITS = 16


class TimestampMerge(wiring.Component):
    """Merge two timestamp-sorted streams into one.

    An input shows its oldest tuple or, while it has none, its watermark. The merge knows which of
    the two is less. If the lesser one is a tuple, the tuple is *ready* and leaves. If the lesser
    one is a watermark, nothing can leave, and the output gets this watermark, once. On a tie, port
    0 goes first. The order of tuples is therefore that of (time, port), whatever the timing.

    A barrier counts as greater than every time, and an input that has left as greater than a
    barrier. So a barrier leaves when every present port shows one; it has the body of the lowest of
    these ports. When both inputs have left, the output gets LEAVE.

    ``o`` depends on registers alone, by way of one choice.

    Latency: 2 cycles. Throughput: 1 tuple or barrier per cycle.

    Parameters
    ----------
    layout : data.StructLayout
        :func:`hdl.scalegate.words.gate_word`.
    present : sequence of bool
        Whether each input is present after reset.

    Members
    -------
    i : In(stream.Signature(layout)).array(2)
        What is asked of each is in :class:`hdl.scalegate.port.MergePort`.
    o : Out(stream.Signature(layout))
    waits : Out(1)
        A tuple or a barrier is at one of the ports.
    starving : In(1)
        What comes behind the output has nothing to send.
    starved_by : Out(2)
        While ``starving``, the merge itself waited for this port in the previous cycle.
    differ : Out(1)
        Two barriers with different bodies have become one two cycles ago.
    """

    def __init__(self, layout, *, present=(True, True)):
        self.layout = layout
        self.present = tuple(present)
        self.latency = 2
        super().__init__(
            {
                "i": In(stream.Signature(layout)).array(2),
                "o": Out(stream.Signature(layout)),
                "waits": Out(1),
                "starving": In(1),
                "starved_by": Out(2),
                "differ": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        ports = [MergePort(self.layout, present=present) for present in self.present]
        for n, (port, i) in enumerate(zip(ports, self.i, strict=True)):
            m.submodules[f"port_{n}"] = port
            connect(m, flipped(i), port.i)
        second, same = self.elaborate_choice(m, ports)
        quiet = self.elaborate_output(m, ports, second)
        self.elaborate_moves(m, ports, second, same, quiet)
        self.elaborate_reports(m, ports, second)
        return m

    def elaborate_choice(self, m, ports):
        """Return two registers: port 1 shows less than port 0, and both show the same time.

        What each port will show is compared with what the other one shows, and with what that one
        will show. The moves of this cycle select the comparison that holds in the next one.
        """
        second = Signal(init=not self.present[0] and self.present[1])
        same = Signal(init=1)
        here, ahead = [port.place for port in ports], [port.next_place for port in ports]
        for register, compare in (
            (second, lambda a, b: is_below(m, Value.cast(b), Value.cast(a))),
            (same, lambda a, b: a.time == b.time),
        ):
            first_moves = Mux(
                ports[1].move, compare(ahead[0], ahead[1]), compare(ahead[0], here[1])
            )
            first_stays = Mux(ports[1].move, compare(here[0], ahead[1]), register)
            m.d.sync += register.eq(Mux(ports[0].move, first_moves, first_stays))
        return second, same

    def elaborate_output(self, m, ports, second):
        """Offer what the lesser port shows; return the register that forbids it.

        The output is quiet while a port settles, and in the cycle after it has fallen silent or has
        spoken again, in which the ports learn of that.
        """
        silent = Signal(init=not any(self.present))  # the latest word was LEAVE
        floor = Signal.like(ports[0].floor)  # the latest time at the output
        quiet, leaves, is_last = Signal(), Signal(), Signal()
        m.d.comb += [
            self.o.payload.eq(Mux(second, Value.cast(ports[1].head), Value.cast(ports[0].head))),
            self.o.valid.eq(Mux(second, ports[1].offers, ports[0].offers) & ~quiet),
            leaves.eq(self.o.valid & self.o.ready),
            is_last.eq(self.o.payload.kind == GateKind.LEAVE),
        ]
        changes = leaves & (silent | is_last)
        m.d.sync += quiet.eq(ports[0].settles | ports[1].settles | changes)
        with m.If(leaves):
            m.d.sync += silent.eq(is_last)
            with m.If(~is_last):
                m.d.sync += floor.eq(self.o.payload.time)
        for port in ports:
            m.d.comb += [port.silent.eq(silent), port.floor.eq(floor)]
        return quiet

    def elaborate_moves(self, m, ports, second, same, quiet):
        """Move on a head that leaves, and one that is no tuple unless the output has to wait."""
        # If port 0 shows a barrier and is chosen, port 1 shows one too, or has left.
        taken = ~second, second | ports[0].place.ends
        # What is offered is told, sooner or later. If port 1 shows less, port 0 is not told by it.
        told = ~second, second | same
        blocked = self.o.valid & ~self.o.ready
        for n, port in enumerate(ports):
            leaves = self.o.ready & ~quiet & taken[n]
            m.d.comb += [
                port.move.eq(Mux(port.filled, leaves, ~blocked)),
                port.told.eq(told[n] & ~quiet),
                port.blocked.eq(blocked),
            ]

    def elaborate_reports(self, m, ports, second):
        """Tell which port is waited for, and whether a barrier is made of different ones.

        A head shows a word two cycles after it was at the input. Until then nobody waits for it.
        """
        arrives, arrived = Cat(i.valid for i in self.i), Signal(2)
        empty = Cat(~port.filled & ~port.next_filled & ~port.place.gone for port in ports)
        lacks = empty & ~arrives & ~arrived
        bodies = [Value.cast(port.head.body) for port in ports]
        unlike = bodies[0] ^ bodies[1]
        parts = Cat(unlike[n : n + PART_BITS].any() for n in range(0, len(unlike), PART_BITS))
        different, become_one = Signal.like(parts), Signal()
        m.d.comb += self.waits.eq(Cat((port.filled, port.next_filled) for port in ports).any())
        m.d.sync += [
            arrived.eq(arrives),
            self.starved_by.eq(Mux(self.starving & ~self.o.valid, lacks & Cat(~second, second), 0)),
            different.eq(parts),
            become_one.eq(ports[0].place.ends & ports[1].place.ends & ports[0].move),
            self.differ.eq(become_one & different.any()),
        ]


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

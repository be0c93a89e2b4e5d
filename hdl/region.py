# SPDX-License-Identifier: Apache-2.0
"""Half a join core: stores the tuples of one side, probes them with the other's (Figure 5)."""

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from .group_collector import GroupCollector
from .key_ring import KeyRing
from .layouts import Control, InputKind, activity_layout, node_result, region_word
from .match_queue import MatchQueue
from .scanner import Scanner
from .streams import StreamRegister
from .window_tracker import WindowTracker

__all__ = ["Region"]


class Region(wiring.Component):
    """One region: storing and probing as two independent steps.

    This is the left region of a core: probes are tuples of R, stored are tuples of S. The right one
    is the same, given the stream with both sides exchanged (:func:`hdl.join_core.mirrored`).

    A word is accepted in one cycle and takes effect in the next.

    A tuple of S goes to the :class:`WindowTracker` and, if it is this region's turn, into the
    :class:`KeyRing`. A tuple of R becomes a probe: with the span of the window at this moment it
    goes into a slot of the :class:`Scanner`, where the :class:`GroupCollector` says. A closed group
    is scanned while later words are stored and collected; the ring has room for them
    (``parameters.slack``), and a store that would overwrite a key which a group still needs waits.

    A control word that empties the window first closes the open group and waits until the scan
    is over; all others take their place between two tuples, and 2 cycles.

    Latency: :attr:`latency` cycles, plus the rows of the span, from a probe that closes its group
    to its star, when the region is idle. Throughput: a word per cycle; a group of probes per pass
    of ``max(rows, probes + 2)`` cycles.

    Parameters
    ----------
    parameters : JoinParameters
        Of the accelerator.
    probe_side : int
        Side that really probes, 0 for R and 1 for S; matters to a custom predicate only.

    Members
    -------
    position : In
        Number of the core, 0 to ``cores - 1``.
    words : In(stream.Signature(region_word(parameters)))
    results : Out(stream.Signature(node_result(parameters, 0)))
    activity : Out(activity_layout(parameters))
    """

    def __init__(self, parameters, *, probe_side):
        self.parameters = parameters
        self.probe_side = probe_side
        self._scanner = Scanner(parameters, probe_side=probe_side)
        self._queue = MatchQueue(parameters, in_flight=self._scanner.in_flight)
        # Input register, accepting, collector, taking the group; the rows; then out of the scanner
        # and queue.
        self.latency = 4 + self._scanner.latency + self._queue.latency - 1
        super().__init__(
            {
                "position": In(range(max(2, parameters.cores))),
                "words": In(stream.Signature(region_word(parameters))),
                "results": Out(stream.Signature(node_result(parameters, 0))),
                "activity": Out(activity_layout(parameters)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        parameters = self.parameters
        m.submodules.input = register = StreamRegister(
            region_word(parameters), early=["kind", "close", "star"]
        )
        m.submodules.tracker = tracker = WindowTracker(parameters)
        m.submodules.collector = collector = GroupCollector(parameters, hold=KeyRing.LATENCY - 1)
        m.submodules.ring = ring = KeyRing(parameters)
        m.submodules.scanner = scanner = self._scanner
        m.submodules.queue = queue = self._queue

        connect(m, flipped(self.words), register.i)
        connect(m, collector.group, scanner.group)
        connect(m, queue.results, flipped(self.results))
        m.d.comb += [
            tracker.position.eq(self.position),
            collector.span.eq(tracker.span),
            collector.second.eq(tracker.second),
            collector.stop.eq(tracker.stop),
            scanner.add_to.eq(collector.add_to),
            scanner.span.eq(tracker.span),
            ring.address.eq(scanner.address),
            scanner.keys.eq(ring.keys),
            scanner.room.eq(queue.room),
            queue.matches.eq(scanner.matches),
            queue.matches_valid.eq(scanner.matches_valid),
        ]
        m.d.sync += [
            self.activity.comparisons.eq(scanner.comparisons),
            self.activity.busy.eq(scanner.reading),
            self.activity.stalled.eq(scanner.running & ~queue.room),
        ]
        close = Signal()  # the group ends, with the word accepted before
        m.d.comb += collector.close.eq(close)
        tuple_ = self.elaborate_tuples(m, register.o, close, tracker, collector, scanner)
        self.elaborate_storing(m, tuple_, tracker, ring)
        m.d.comb += [
            scanner.criterion.eq(tuple_.criterion),
            tracker.arrival.eq(tuple_.timestamp),
        ]
        self.elaborate_control(m, register.o, close, tracker, collector, scanner)
        return m

    def elaborate_tuples(self, m, words, close, tracker, collector, scanner):
        """Accept a tuple in one cycle, store or probe in the next; return it then.

        Whether a tuple is accepted depends on few registers, and what happens to it on others: a
        path through both would be the slowest of the accelerator.
        """
        word = words.payload
        kind = word.kind
        is_tuple = words.valid & (kind != InputKind.CONTROL)
        is_probe = kind == InputKind.R
        is_store = kind == InputKind.S
        closes = word.close[0]

        accept = Signal()
        store, probe = Signal(), Signal()
        tuple_ = Signal(word.body.tuple.shape(), reset_less=True)
        m.d.comb += [
            tracker.present.eq(is_tuple),
            tracker.timestamp.eq(word.body.tuple.timestamp),
            accept.eq(
                is_tuple
                & tracker.settled
                & (~is_store | ~self.elaborate_occupied(m, tracker, collector, scanner))
                & (~(is_probe | closes) | (collector.ready & ~close))
            ),
            tracker.store.eq(store),
            collector.add.eq(probe),
        ]
        m.d.sync += [
            store.eq(accept & is_store),
            probe.eq(accept & is_probe),
            close.eq(accept & closes),
        ]
        with m.If(accept):
            m.d.comb += words.ready.eq(1)
        with m.If(words.valid):
            m.d.sync += tuple_.eq(word.body.tuple)
        return tuple_

    def elaborate_occupied(self, m, tracker, collector, scanner):
        """Return whether the next store might overwrite a key that a probe still needs.

        It is known in two cycles, and meanwhile a store may be under way: so two rows early.
        """
        head = tracker.span.head.row
        oldest = Signal.like(head, reset_less=True)
        occupied = Signal()
        distance = (head - oldest)[: len(head)]
        collected = Mux(collector.count == 0, tracker.span.tail.row, collector.group.payload.first)
        m.d.sync += [
            oldest.eq(Mux(scanner.running, scanner.oldest, collected)),
            occupied.eq(distance[-1] | distance[1:-1].all()),
        ]
        return occupied

    def elaborate_storing(self, m, tuple_, tracker, ring):
        """Write the key a cycle later, so that the tracker has few registers to drive."""
        key = Signal(tuple_.key.shape(), reset_less=True)
        place = Signal(ring.place.shape(), reset_less=True)
        store = Signal()
        m.d.sync += [place.eq(tracker.span.head), store.eq(tracker.stored), key.eq(tuple_.key)]
        m.d.comb += [ring.key.eq(key), ring.place.eq(place), ring.store.eq(store)]

    def elaborate_control(self, m, words, close, tracker, collector, scanner):
        """Execute control words; say what follows the group that a word closes."""
        control = words.payload.body.control
        is_control = words.valid & (words.payload.kind == InputKind.CONTROL)
        own = control.index == 1
        closes = words.payload.close[0]
        closed = Signal()  # this word's group is closed already

        executing = Signal()  # nothing is scanned any more: the window is emptied in this cycle

        # A control word is looked at in one cycle and executed in the next.
        seen = Signal()
        empties, marks, clear, begin_count, begin_time = (
            Signal(reset_less=True, name=name)
            for name in ("empties", "marks", "clear", "begin_count", "begin_time")
        )
        size = Signal.like(control.value, reset_less=True)
        # What follows a group is looked at in the cycle after the word that closes it.
        star, mark, disorder, free = (
            Signal(reset_less=True, name=name) for name in ("star", "mark", "disorder", "free")
        )
        with m.If(words.valid):
            m.d.sync += [
                star.eq(words.payload.star[0]),
                disorder.eq(words.payload.disorder),
                free.eq(words.payload.free),
            ]
        m.d.sync += [seen.eq(is_control & ~words.ready), mark.eq(seen & marks)]
        with m.If(is_control):
            m.d.sync += [
                empties.eq(empties_window(control)),
                marks.eq(answers_mark(control)),
                clear.eq(control.op == Control.CLEAR),
                begin_count.eq((control.op == Control.WINDOW) & own),
                begin_time.eq((control.op == Control.LIFESPAN) & own),
                size.eq(control.value),
            ]
        m.d.comb += [
            tracker.size.eq(size),
            collector.ending.star.eq(star),
            collector.ending.mark.eq(mark),
            collector.ending.punctuation.overflow.eq(tracker.overflow),
            collector.ending.punctuation.disorder.eq(disorder),
            collector.ending.punctuation.free.eq(free),
        ]
        with m.If(seen):
            with m.If(closes & ~closed):
                with m.If(collector.ready & ~close):
                    m.d.comb += words.ready.eq(~empties)
                    m.d.sync += [close.eq(1), closed.eq(empties)]
            with m.Elif(~empties):
                m.d.comb += words.ready.eq(1)
            with m.Elif(executing):
                m.d.comb += words.ready.eq(1)
                m.d.sync += [closed.eq(0), executing.eq(0)]
            with m.Else():
                m.d.sync += executing.eq(collector.ready & ~close & ~scanner.running)
        m.d.comb += [
            tracker.clear.eq(executing & clear),
            tracker.begin_count.eq(executing & begin_count),
            tracker.begin_time.eq(executing & begin_time),
        ]


def answers_mark(control):
    """Does this control word ask for a mark?"""
    return control.op.as_value().matches(Control.CLEAR, Control.FLUSH, Control.PRECISION)


def empties_window(control):
    """Does this control word empty a window, and so wait for the scan to end?"""
    return control.op.as_value().matches(Control.CLEAR, Control.WINDOW, Control.LIFESPAN)

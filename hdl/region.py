# SPDX-License-Identifier: Apache-2.0
"""Half a join core: stores the tuples of one side, probes them with the other's (Figure 5)."""

from amaranth import *
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from .index.direct_engine import DirectIndexEngine
from .index.engine import IndexEngine
from .layouts import Control, InputKind, activity_layout, node_result, region_word
from .local_reset import reset_nearby
from .scan.digest_engine import DigestEngine
from .scan.engine import ScanEngine
from .streams import stream_register
from .window_tracker import WindowTracker

__all__ = ["Region"]


def engine_class(parameters):
    """Return the class of engine that suits the parameters."""
    if parameters.engine == "index":
        return IndexEngine if parameters.pipelined else DirectIndexEngine
    return ScanEngine if parameters.digest_bits is None else DigestEngine


class Region(wiring.Component):
    """One region: storing and probing as two independent steps.

    This is the left region of a core: probes are tuples of R, stored are tuples of S. The right one
    is the same, given the stream with both sides exchanged (:func:`hdl.join_core.mirrored`).

    A word is accepted in one cycle and takes effect in the next.

    A tuple of S goes to the :class:`WindowTracker` and, if it is this region's turn, into the
    engine's memory. A tuple of R becomes a probe: the engine gets it with the span of the window at
    this moment. A store that would overwrite what a probe still needs waits.

    A control word that empties the window first closes the open group and waits until the engine
    is idle; all others take their place between two tuples, and 2 cycles.

    Latency: that of the engine, and 2 cycles. Throughput: a word per cycle, and what the engine
    makes of it.

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
        self._engine = engine_class(parameters)(parameters, probe_side=probe_side)
        self.latency = 2 + self._engine.latency  # input register, accepting
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
        self.elaborate_region(m)
        return reset_nearby(m, platform, pipelined=self.parameters.pipelined)

    def elaborate_region(self, m):
        """Accept words; lead what becomes of them to tracker and engine."""
        parameters = self.parameters
        names = [name for name, _ in facts(self.words.payload)]
        arrived = {"word": region_word(parameters), **dict.fromkeys(names, 1)}
        m.submodules.input = register = stream_register(
            data.StructLayout(arrived), pipelined=parameters.pipelined, early=names
        )
        m.submodules.tracker = tracker = WindowTracker(parameters)
        m.submodules.engine = engine = self._engine

        m.d.comb += [
            register.i.valid.eq(self.words.valid),
            self.words.ready.eq(register.i.ready),
            register.i.payload.word.eq(self.words.payload),
            *(register.i.payload[name].eq(fact) for name, fact in facts(self.words.payload)),
        ]
        connect(m, engine.results, flipped(self.results))
        closing, close = Signal(), Signal()  # the group ends, with the word accepted now; … before
        takes = Signal(init=1)  # the engine can take a probe, or the end of a group
        m.d.sync += [close.eq(closing), takes.eq(engine.soon & ~closing)]
        tuple_ = self.elaborate_tuples(m, register.o, closing, takes, tracker, engine)
        m.d.comb += [
            tracker.position.eq(self.position),
            tracker.arrival.eq(tuple_.timestamp),
            engine.prepared.eq(tuple_),
            engine.store.eq(tracker.stored),
            engine.span.eq(tracker.span),
            engine.second.eq(tracker.second),
            engine.stop.eq(tracker.stop),
            engine.close.eq(close),
            self.activity.eq(engine.activity),
        ]
        self.elaborate_control(m, register.o, closing, close, takes, tracker, engine)

    def elaborate_tuples(self, m, words, closing, takes, tracker, engine):
        """Accept a tuple in one cycle, store or probe in the next; return it then.

        Whether a tuple is accepted depends on few registers, and what happens to it on others: a
        path through both would be the slowest of the accelerator.
        """
        is_, tuple_at_hand = words.payload, words.payload.word.body.tuple
        accept = Signal()
        store, probe = Signal(), Signal()
        tuple_ = Signal(tuple_at_hand.shape(), reset_less=True)
        m.d.comb += [
            tracker.present.eq(words.valid & (is_.probe | is_.store)),
            tracker.timestamp.eq(tuple_at_hand.timestamp),
            accept.eq(
                (words.valid & (is_.probe | (is_.store & ~engine.occupied)))
                & (~is_.grouped | takes)
                & tracker.settled
            ),
            tracker.store.eq(store),
            engine.probe.eq(probe),
        ]
        m.d.sync += [
            store.eq(accept & is_.store),
            probe.eq(accept & is_.probe),
        ]
        m.d.comb += closing.eq(accept & is_.closes)
        with m.If(accept):
            m.d.comb += words.ready.eq(1)
        with m.If(words.valid):
            m.d.sync += tuple_.eq(tuple_at_hand)
        return tuple_

    def elaborate_control(self, m, words, closing, close, takes, tracker, engine):
        """Execute control words; say what follows the group that a word closes."""
        word, closes = words.payload.word, words.payload.closes
        control = word.body.control
        is_control = words.valid & words.payload.control
        closed = Signal()  # this word's group is closed already

        executing = Signal()  # the engine is idle: the window is emptied in this cycle

        # A control word is looked at in one cycle and executed in the next.
        seen = Signal()
        empties, marks, clear, begin_count, begin_time = (
            Signal(reset_less=True, name=name)
            for name in ("empties", "marks", "clear", "begin_count", "begin_time")
        )
        looked = Signal(control.shape(), reset_less=True)
        own = looked.index == 1
        # What follows a group is looked at in the cycle after the word that closes it.
        star, mark, disorder, free = (
            Signal(reset_less=True, name=name) for name in ("star", "mark", "disorder", "free")
        )
        with m.If(words.valid):
            m.d.sync += [
                star.eq(words.payload.star),
                disorder.eq(word.disorder),
                free.eq(word.free),
            ]
        m.d.sync += [seen.eq(is_control & ~words.ready), mark.eq(seen & marks)]
        # Which of them a control word is, is looked at in any word: that needs no enable. What is
        # executed has a cycle more, as the engine is asked first.
        m.d.sync += [
            empties.eq(empties_window(control, self.parameters)),
            marks.eq(answers_mark(control)),
            looked.eq(control),
            clear.eq(~begins_window(looked)),
            begin_count.eq((looked.op == Control.WINDOW) & own),
            begin_time.eq((looked.op == Control.LIFESPAN) & own),
        ]
        m.d.comb += [
            tracker.size.eq(looked.value),
            engine.ending.star.eq(star),
            engine.ending.mark.eq(mark),
            engine.ending.punctuation.overflow.eq(tracker.overflow),
            engine.ending.punctuation.disorder.eq(disorder),
            engine.ending.punctuation.free.eq(free),
        ]
        with m.If(seen):
            with m.If(closes & ~closed):
                with m.If(takes):
                    m.d.comb += [words.ready.eq(~empties), closing.eq(1)]
                    m.d.sync += closed.eq(empties)
            with m.Elif(~empties):
                m.d.comb += words.ready.eq(1)
            with m.Elif(executing):
                m.d.comb += words.ready.eq(1)
                m.d.sync += [closed.eq(0), executing.eq(0)]
            with m.Else():
                m.d.sync += executing.eq(engine.idle & ~close)
        m.d.comb += [
            tracker.clear.eq(executing & clear),
            tracker.begin_count.eq(executing & begin_count),
            tracker.begin_time.eq(executing & begin_time),
            engine.configure.eq(executing),
            engine.control.eq(looked),
        ]


def facts(word):
    """Say of a region word what becomes of it, so that this can come from registers.

    Returns
    -------
    list of (str, Value)
        It is a tuple that probes or is stored, or a control word; it closes the group, and a star
        follows; it probes or closes a group, and so waits for the engine.
    """
    probe, closes = word.kind == InputKind.R, word.close[0]
    return [
        ("probe", probe),
        ("store", word.kind == InputKind.S),
        ("control", word.kind == InputKind.CONTROL),
        ("closes", closes),
        ("star", word.star[0]),
        ("grouped", probe | closes),
    ]


def answers_mark(control):
    """Does this control word ask for a mark?"""
    return control.op.as_value().matches(Control.CLEAR, Control.FLUSH, Control.PRECISION)


def begins_window(control):
    """Does this control word give a side a new window?"""
    return control.op.as_value().matches(Control.WINDOW, Control.LIFESPAN)


def empties_window(control, parameters):
    """Does this control word empty a window, and so wait for the engine to be idle?"""
    own = (Control.COORDINATE, Control.DISTINCT) if parameters.engine == "index" else ()
    operation = control.op.as_value()
    return begins_window(control) | operation.matches(Control.CLEAR, *own)

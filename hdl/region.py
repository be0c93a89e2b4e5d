# SPDX-License-Identifier: Apache-2.0
"""Half a join core: stores the tuples of one side, probes them with the other's (Figure 5)."""

from amaranth import *
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from .index.engine import IndexEngine
from .local_reset import reset_nearby
from .scan.digest_engine import DigestEngine
from .scan.engine import ScanEngine
from .streams.registers import StreamRegister, flagged_register
from .window.time_expiry import times_layout
from .window.tracker import WindowTracker
from .words.inputs import Control, InputKind
from .words.prepared import region_word
from .words.results import node_result
from .words.spans import activity_layout

__all__ = ["Region"]


def engine_class(parameters):
    """Return the class of engine that suits the parameters."""
    if parameters.engine == "index":
        return IndexEngine
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

    Latency: that of the engine, and 2 cycles; 3 with timestamps. Throughput: a word per cycle, and
    what the engine makes of it.

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
    reset : In(1)
        Of all registers.
    """

    def __init__(self, parameters, *, probe_side):
        self.parameters = parameters
        self.probe_side = probe_side
        self._engine = engine_class(parameters)(parameters, probe_side=probe_side)
        # An input register, or two with timestamps, and accepting.
        self.latency = 2 + (parameters.timestamp_bits > 0) + self._engine.latency
        super().__init__(
            {
                "position": In(range(max(2, parameters.cores))),
                "words": In(stream.Signature(region_word(parameters))),
                "results": Out(stream.Signature(node_result(parameters, 0))),
                "activity": Out(activity_layout(parameters)),
                "reset": In(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        self.elaborate_region(m)
        return reset_nearby(m, platform, reset=self.reset)

    def elaborate_region(self, m):
        """Accept words; lead what becomes of them to tracker and engine."""
        arriving, times = self.elaborate_arrival(m)
        words = flagged_register(m, "input", arriving, flags=self.word_flags)
        m.submodules.tracker = tracker = WindowTracker(self.parameters)
        m.submodules.engine = engine = self._engine
        connect(m, engine.results, flipped(self.results))

        m.d.comb += tracker.coming.eq(Cat(times))
        if self.parameters.timestamp_bits:
            m.d.comb += [
                tracker.fills.eq(arriving.ready),
                tracker.moves.eq(~words.valid | words.ready),
            ]
        takes = Signal(init=1)  # the engine can take a probe, or the end of a group
        closing = Signal()  # the group ends, with the word at hand
        accepted = self.elaborate_tuples(m, words, takes, tracker, engine)
        passed, ends = self.elaborate_control(m, words, takes, tracker, engine)
        m.d.comb += [
            words.ready.eq(accepted | passed),
            closing.eq((accepted & words.payload.closes) | ends),
            tracker.position.eq(self.position),
            engine.store.eq(tracker.stored),
            engine.span.eq(tracker.span),
            engine.second.eq(tracker.second),
            engine.stop.eq(tracker.stop),
            self.activity.eq(engine.activity),
        ]
        m.d.sync += [engine.close.eq(closing), takes.eq(self.takes_next(engine, closing))]

    def elaborate_arrival(self, m):
        """Return the words that come to the input register, and their timestamps.

        These come out of a register of their own, as they are compared before they are at hand.
        """
        if not self.parameters.timestamp_bits:
            return self.words, self.times(self.words.payload)
        word = self.words.payload.shape()
        m.submodules.arriving = register = StreamRegister(
            data.StructLayout({"times": times_layout(self.parameters), "word": word}),
            early=["times"],
        )
        words = stream.Signature(word).create()
        m.d.comb += [
            register.i.valid.eq(self.words.valid),
            register.i.payload.word.eq(self.words.payload),
            register.i.payload.times.eq(Cat(self.times(self.words.payload))),
            self.words.ready.eq(register.i.ready),
            words.valid.eq(register.o.valid),
            words.payload.eq(register.o.payload.word),
            register.o.ready.eq(words.ready),
        ]
        return words, register.o.payload.times

    def takes_next(self, engine, closing):
        """Return whether the engine can take a probe in the next cycle: a group is followed by one
        cycle without."""
        return engine.soon & ~closing

    def times(self, word):
        """Return the timestamps of a region word."""
        return [word.body.tuple.timestamp]

    def overflow(self, tracker):
        """Return the overflow that a star knows of."""
        return tracker.overflow

    def word_flags(self, words):
        """Return what becomes of a region word; anything while there is none.

        It is a tuple that probes or is stored, or a control word; it closes the group, and a star
        follows; it is a tuple that probes or closes, and so waits for the engine.
        """
        word = words.payload
        probe, store = word.kind == InputKind.R, word.kind == InputKind.S
        closes = word.close[0]
        return {
            "probe": probe,
            "store": store,
            "control": word.kind == InputKind.CONTROL,
            "closes": closes,
            "star": word.star[0],
            "grouped": probe | (store & closes),
        }

    def elaborate_tuples(self, m, words, takes, tracker, engine):
        """Accept a tuple in one cycle, store or probe in the next; return whether it is accepted.

        Whether a tuple is accepted depends on few registers, and what happens to it on others: a
        path through both would be the slowest of the accelerator.
        """
        is_, tuple_at_hand = words.payload, words.payload.word.body.tuple
        accepted = Signal()
        tuple_ = Signal(tuple_at_hand.shape(), reset_less=True)
        m.d.comb += [
            tracker.present.eq(words.valid & (is_.grouped | is_.store)),
            accepted.eq(
                tracker.present
                & (~is_.grouped | takes)
                & (~is_.store | ~engine.occupied)
                & tracker.settled
            ),
            tracker.arrival.eq(tuple_.timestamp),
            engine.prepared.eq(tuple_),
        ]
        m.d.sync += [
            tracker.store.eq(accepted & is_.store),
            engine.probe.eq(accepted & is_.probe),
        ]
        with m.If(words.valid):
            m.d.sync += tuple_.eq(tuple_at_hand)
        return accepted

    def elaborate_control(self, m, words, takes, tracker, engine):
        """Look at a control word in one cycle, execute it in the next, or when the engine is idle.

        Returns whether it is executed in this cycle, and whether the group before it ends in this
        cycle.
        """
        control, closes = words.payload.word.body.control, words.payload.closes
        # What it does is looked at in any word: that needs no enable.
        looked = Signal(control.shape(), reset_less=True)
        empties = empties_window(control, self.parameters)
        waits = words.valid & words.payload.control & ~words.ready
        passing, emptying = Signal(), Signal()  # one is at hand that empties no window; … that does
        closed = Signal()  # the group before it has ended already
        executing = Signal()  # the engine is idle: the window is emptied in this cycle
        marks = Signal(reset_less=True)
        m.d.sync += [
            looked.eq(control),
            marks.eq(answers_mark(control)),
            passing.eq(waits & ~empties),
            emptying.eq(waits & empties),
        ]
        ends = Signal()
        m.d.comb += ends.eq((passing | (emptying & ~closed)) & closes & takes)
        with m.If(executing):
            m.d.sync += [closed.eq(0), executing.eq(0)]
        with m.Elif(emptying & closes & ~closed):
            m.d.sync += closed.eq(takes)
        with m.Elif(emptying):
            m.d.sync += executing.eq(engine.idle & ~engine.close)
        self.elaborate_ending(m, words, (passing | emptying) & marks, tracker, engine)
        self.elaborate_execution(m, looked, executing, tracker, engine)
        return (passing & (~closes | takes)) | executing, ends

    def elaborate_ending(self, m, words, mark, tracker, engine):
        """Say what follows a group, in the cycle after the word that closes it."""
        follows = Signal(engine.ending.shape(), reset_less=True, name="ending")
        m.d.sync += follows.mark.eq(mark)
        with m.If(words.valid):
            m.d.sync += [
                follows.star.eq(words.payload.star),
                *(
                    follows.punctuation[name].eq(words.payload.word[name])
                    for name in ("disorder", "illegal", "free")
                ),
            ]
        m.d.comb += [
            engine.ending.eq(follows),
            engine.ending.punctuation.overflow.eq(self.overflow(tracker)),
        ]

    def elaborate_execution(self, m, control, executing, tracker, engine):
        """Empty the window, and begin another if ``control`` says so; the engine may have more."""
        empties, forgets, begin_count, begin_time = (
            Signal(reset_less=True, name=name)
            for name in ("empties", "forgets", "begin_count", "begin_time")
        )
        own = control.index == 1
        m.d.sync += [  # a cycle late, as the engine is asked first
            empties.eq(~begins_window(control)),
            forgets.eq(control.op == Control.CLEAR),
            begin_count.eq((control.op == Control.WINDOW) & own),
            begin_time.eq((control.op == Control.LIFESPAN) & own),
        ]
        m.d.comb += [
            tracker.size.eq(control.value),
            tracker.empty.eq(executing & empties),
            tracker.forget.eq(executing & forgets),
            tracker.begin_count.eq(executing & begin_count),
            tracker.begin_time.eq(executing & begin_time),
            engine.configure.eq(executing),
            engine.control.eq(control),
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

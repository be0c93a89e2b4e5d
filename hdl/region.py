# SPDX-License-Identifier: Apache-2.0
"""Half a join core: stores tuples of one side and probes them with the other side's (Figure 5)."""

from typing import NamedTuple

from amaranth import *
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from .local_reset import reset_nearby
from .memory.axi4 import memory_members
from .streams.registers import StreamRegister, flagged_register
from .window.time_expiry import times_layout
from .window.tracker import WindowTracker
from .words.inputs import Control, InputKind
from .words.operands import answers_mark, begins_window, empties_window
from .words.prepared import activity_layout, region_word
from .words.results import node_result

__all__ = [
    "ControlSteps",
    "PairedRegion",
    "Region",
    "elaborate_execution",
    "elaborate_steps",
    "rounds_after",
]


class ControlSteps(NamedTuple):
    """The steps in which a region executes the control word at hand.

    Parameters
    ----------
    control : View
        Operation and operands of the word, from a register.
    passed : Value
        The word is executed in this cycle, and leaves.
    ends : Value
        The group before the word ends in this cycle.
    marked : Value
        A mark follows that group.
    executing : Signal
        The word empties the window in this cycle, while the engine is idle.
    """

    control: object
    passed: object
    ends: object
    marked: object
    executing: object


def elaborate_steps(m, parameters, words, takes, engine):
    """Examine a control word in one cycle, execute it in the next, or when the engine is idle.

    Parameters
    ----------
    m : Module
        Module of the region.
    parameters : JoinParameters
        Parameters of the accelerator.
    words : stream
        Region words with the flags ``control`` and ``closes``.
    takes : Signal
        The engine can take the end of a group.
    engine : Component
        See :func:`hdl.engine.engine_members`.

    Returns
    -------
    ControlSteps
    """
    control, closes = words.payload.word.body.control, words.payload.closes
    # Every word is examined, whether it is a control word or not, so this needs no enable.
    looked = Signal(control.shape(), reset_less=True)
    empties = empties_window(control, parameters)
    waits = words.valid & words.payload.control & ~words.ready
    # A control word is at hand: one that empties no window, one that empties a window.
    passing, emptying = Signal(), Signal()
    closed = Signal()  # the group before the control word has already ended
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
    return ControlSteps(
        control=looked,
        passed=(passing & (~closes | takes)) | executing,
        ends=ends,
        marked=(passing | emptying) & marks,
        executing=executing,
    )


def elaborate_execution(m, steps, tracker, engine):
    """Empty the window, and begin another one if the control word says so.

    The engine receives the control word as well, and may have more to do.
    """
    control, executing = steps.control, steps.executing
    empties, forgets, begin_count, begin_time = (
        Signal(reset_less=True, name=name)
        for name in ("empties", "forgets", "begin_count", "begin_time")
    )
    own = control.index == 1
    m.d.sync += [  # these may come a cycle late, as the engine is asked first whether it is idle
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


def rounds_after(parameters, word, ending):
    """Return what a word says, to the ``ending`` of its group, about rounds.

    A control word closes groups of several probes, which are not sent in rounds. What it says about
    rounds is of the groups that follow, and the mark tells.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator.
    word : View
        Region word with the flag ``control``.
    ending : View
        The :func:`~hdl.words.prepared.ending_layout` to assign.
    """
    if not parameters.engine.rounds:
        return []
    rounds = word.word.rounds
    return [
        ending.rounds.eq(Mux(word.control, 0, rounds)),
        ending.punctuation.inner.eq(word.control & rounds.any()),
    ]


class Region(wiring.Component):
    """Half of a join core: stores one side's tuples, and probes them with the other side's.

    This is the left region of a core: it probes with tuples of R and stores tuples of S. The right
    region is the same circuit; in its stream, both sides are exchanged
    (:func:`hdl.join_core.mirrored`).

    A word is accepted in one cycle and takes effect in the next.

    A tuple of S goes to the :class:`WindowTracker` and, if it is this region's turn, into the
    engine's memory. A tuple of R becomes a probe: the engine receives it with the span of the
    window at this moment. A tuple of S waits while it might overwrite a key that a probe still
    needs.

    A control word that empties the window first closes the open group, and then waits until the
    engine is idle. Any other control word takes effect between two tuples, and takes 2 cycles.

    Latency: that of the engine, and 2 cycles; 3 with timestamps. Throughput: 1 word per cycle, as
    far as the engine keeps up.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator.
    probe_side : int
        The side that really probes, 0 for R and 1 for S; matters to a custom predicate only.

    Members
    -------
    position : In
        Number of the core, 0 to ``cores - 1``.
    words : In(stream.Signature(region_word(parameters)))
    results : Out(stream.Signature(node_result(parameters, 0)))
    activity : Out(activity_layout(parameters))
    reset : In(1)
        Resets all registers of the region.
    m_axi : Out(memory_port(parameters))
        The region's external memory, if it has one.
    works : Out(1)
        A word waits, the engine works, or a result waits; only with ``clock_requests``.
    vacant : Out(1)
        The region holds no key; likewise.
    """

    def __init__(self, parameters, *, probe_side):
        self.parameters = parameters
        self.probe_side = probe_side
        self._engine = parameters.engine.module(parameters, probe_side=probe_side)
        # An input register (two with timestamps), and a cycle to accept the word.
        self.latency = 2 + (parameters.timestamp_bits > 0) + self._engine.latency
        super().__init__(
            {
                "position": In(range(max(2, parameters.cores))),
                "words": In(stream.Signature(region_word(parameters))),
                "results": Out(stream.Signature(node_result(parameters, 0))),
                "activity": Out(activity_layout(parameters)),
                "reset": In(1),
                **memory_members(parameters),
                **dict.fromkeys(["works", "vacant"] * parameters.engine.clock_requests, Out(1)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        self.elaborate_region(m)
        return reset_nearby(m, platform, reset=self.reset)

    def elaborate_region(self, m):
        """Accept words, and pass them on to the tracker and the engine."""
        arriving, times = self.elaborate_arrival(m)
        words = flagged_register(m, "input", arriving, flags=self.word_flags)
        m.submodules.tracker = tracker = WindowTracker(self.parameters)
        m.submodules.engine = engine = self._engine
        connect(m, engine.results, flipped(self.results))
        if hasattr(engine, "m_axi"):
            connect(m, engine.m_axi, flipped(self.m_axi))

        m.d.comb += tracker.coming.eq(Cat(times))
        if self.parameters.timestamp_bits:
            m.d.comb += [
                tracker.fills.eq(arriving.ready),
                tracker.moves.eq(~words.valid | words.ready),
            ]
        takes = Signal(init=1)  # the engine can take a probe, or the end of a group
        closing = Signal()  # the group ends with the word at hand
        accepted = self.elaborate_tuples(m, words, takes, tracker, engine)
        passed, ends = self.elaborate_control(m, words, takes, tracker, engine)
        m.d.comb += [
            words.ready.eq(accepted | passed),
            closing.eq((accepted & words.payload.closes) | ends),
            engine.store.eq(tracker.stored),
            engine.span.eq(tracker.span),
            engine.second.eq(tracker.second),
            engine.stop.eq(tracker.stop),
            self.activity.eq(engine.activity),
        ]
        if self.parameters.engine.clock_requests:
            m.d.comb += [
                self.works.eq(
                    self.words.valid
                    | arriving.valid
                    | words.valid
                    | ~engine.idle
                    | engine.results.valid
                ),
                self.vacant.eq(tracker.vacant),
            ]
        if self.parameters.engine.parity:
            m.d.comb += self.activity.wrong.eq(engine.activity.wrong | tracker.wrong)
        m.d.sync += [engine.close.eq(closing), takes.eq(self.takes_next(engine, closing))]

    def elaborate_arrival(self, m):
        """Return the words that come to the input register, and their timestamps.

        The timestamps come directly from a register, because they are compared before the word is
        at hand.
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
        """Return whether the engine can take a probe in the next cycle.

        A word that ends a group is followed by one cycle without a probe.
        """
        return engine.soon & ~closing

    def times(self, word):
        """Return the timestamps of a region word."""
        return [word.body.tuple.timestamp]

    def overflow(self, tracker):
        """Return the overflow that a star reports."""
        return tracker.overflow

    def word_flags(self, words):
        """Return the flags of a region word; they may have any value while there is no word.

        ``probe``: the word is a tuple that probes.
        ``store``: the word is a tuple that is stored by the region whose turn it is.
        ``control``: the word is a control word.
        ``closes``: the word closes the group.
        ``star``: a star follows that group.
        ``grouped``: the word is a tuple that probes or closes the group; it waits for the engine.
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

    def turns(self, word):
        """Return whether a tuple to store is stored here, and whether the oldest key leaves for it.

        The word comes from a register of the region, as the tree's registers are far away.
        """
        leaves = word.leaves[1] & (word.leaving[1] == self.position)
        return Cat(word.storing[1] == self.position, leaves)

    def elaborate_tuples(self, m, words, takes, tracker, engine):
        """Accept a tuple in one cycle, store or probe in the next; return whether it is accepted.

        The registers that decide whether a tuple is accepted are few, and others decide what
        happens to it. A path through both would be the slowest of the accelerator.
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
            Cat(tracker.mine, tracker.displaces).eq(self.turns(is_.word)),
            tracker.store.eq(accepted & is_.store),
            engine.probe.eq(accepted & is_.probe),
        ]
        with m.If(words.valid):
            m.d.sync += tuple_.eq(tuple_at_hand)
        return accepted

    def elaborate_control(self, m, words, takes, tracker, engine):
        """Execute the control word at hand, if there is one.

        Return whether it is executed in this cycle, and whether the group before it ends in this
        cycle.
        """
        steps = elaborate_steps(m, self.parameters, words, takes, engine)
        self.elaborate_ending(m, words, steps.marked, tracker, engine)
        elaborate_execution(m, steps, tracker, engine)
        return steps.passed, steps.ends

    def elaborate_ending(self, m, words, mark, tracker, engine):
        """Tell the engine what follows a group, in the cycle after the word that closes it."""
        follows = Signal(engine.ending.shape(), reset_less=True, name="ending")
        m.d.sync += follows.mark.eq(mark)
        with m.If(words.valid):
            m.d.sync += [
                follows.star.eq(words.payload.star),
                *rounds_after(self.parameters, words.payload, follows),
                *(
                    follows.punctuation[name].eq(words.payload.word[name])
                    for name in ("disorder", "illegal", "free")
                ),
            ]
        m.d.comb += [
            engine.ending.eq(follows),
            engine.ending.punctuation.overflow.eq(self.overflow(tracker)),
        ]


class PairedRegion(Region):
    """A :class:`Region` whose words may hold a tuple of each side.

    Both tuples are accepted in one cycle and take effect in the next. The probe sees the window
    before or after the stored tuple, by the order in which the two came.

    With a time-based window, a key may leave on behalf of the later tuple, and the earlier tuple
    must still see it. The two tuples are accepted one after the other if more than one key leaves
    for the two of them, or if the tuple that is stored first may leave before the second tuple.

    Latency: that of the engine, and 2 cycles; 3 with timestamps. Throughput: 1 word per cycle, even
    where one group follows another. A word whose tuples are accepted one after the other takes one
    cycle more.

    Parameters and members are those of a :class:`Region`.
    """

    def word_flags(self, words):
        """Return the flags of a region word, which are those of a :class:`Region` and four more.

        ``tuple``: the word is valid and holds a tuple.
        ``both``: the word holds two tuples.
        ``between``: the word holds two tuples, and the first one is stored.
        ``store_first``: the first tuple of the word, or its only one, is to be stored.
        """
        word = words.payload
        both = word.kind == InputKind.BOTH
        probe, store = (word.kind == InputKind.R) | both, (word.kind == InputKind.S) | both
        return {
            **super().word_flags(words),
            "probe": probe,
            "store": store,
            "grouped": probe | (store & word.close[0]),
            "tuple": words.valid & (probe | store),
            "both": both,
            "between": both & word.first,
            "store_first": store & (~both | word.first),
        }

    def takes_next(self, engine, closing):
        """Return whether the engine can take a probe in the next cycle."""
        return engine.soon

    def elaborate_tuples(self, m, words, takes, tracker, engine):
        """Accept tuples in one cycle, store and probe in the next; return whether all are accepted.

        If the tuples of a word are accepted one after the other, the group ends with the second
        one.
        """
        is_, tuples = words.payload, words.payload.word.body.both
        go = Signal()  # the engine can take the tuples at hand
        accepted = Signal()
        alone = Signal()  # only the first of two tuples is accepted
        second = Signal()  # the first of two tuples was accepted alone, and the second is left
        # A tuple to store, and a tuple to probe with, is among those accepted.
        stores, probes = Signal(), Signal()
        all_settled = self.elaborate_order(m, is_, second, accepted, tracker)
        m.d.comb += [
            tracker.present.eq(is_.tuple),
            go.eq(tracker.present & (~is_.grouped | takes) & (~is_.store | ~engine.occupied)),
            accepted.eq(go & tracker.settled & all_settled),
            alone.eq(go & tracker.settled & ~all_settled & is_.both & ~second),
            # Leave out the second tuple while the first is accepted alone, and the first one after
            # that.
            stores.eq(is_.store & Mux(alone, is_.store_first, ~(second & is_.store_first))),
            probes.eq(is_.probe & Mux(alone, ~is_.store_first, ~second | is_.store_first)),
        ]
        m.d.sync += [
            Cat(tracker.mine, tracker.displaces).eq(self.turns(is_.word)),
            tracker.store.eq((accepted | alone) & stores),
            tracker.after.eq(is_.both & is_.store_first & ~second),
            engine.probe.eq((accepted | alone) & probes),
        ]
        with m.If(accepted | alone):
            m.d.sync += second.eq(alone)
        self.elaborate_prepared(m, words, tuples, tracker, engine)
        return accepted

    def elaborate_order(self, m, is_, second, accepted, tracker):
        """Tell the tracker which tuples are at hand.

        Return whether expiry on behalf of the last one will be complete when that takes effect.
        """
        if not self.parameters.timestamp_bits:
            return Const(1)
        m.d.comb += [
            tracker.rest.eq(second),
            tracker.between.eq(is_.between & ~second),
            tracker.accepted.eq(accepted),
        ]
        return tracker.all_settled

    def times(self, word):
        """Return the timestamps of a region word, in the order of its tuples."""
        both = word.kind == InputKind.BOTH
        s_only = word.kind == InputKind.S
        r, s = (word.body.both[side].timestamp for side in "rs")
        return [Mux(s_only | (both & word.first), s, r), Mux(s_only | (both & ~word.first), s, r)]

    def elaborate_prepared(self, m, words, tuples, tracker, engine):
        """Pass the tuples of the word to tracker and engine, a cycle later."""
        probe, store = (Signal(tuples.r.shape(), reset_less=True, name=name) for name in "rs")
        with m.If(words.valid):
            m.d.sync += [probe.eq(tuples.r), store.eq(tuples.s)]
        m.d.comb += [
            tracker.arrival.eq(store.timestamp),
            engine.prepared.probe.eq(probe),
            engine.prepared.store.eq(store),
            engine.seen.eq(tracker.seen),
        ]

    def overflow(self, tracker):
        """Return the overflow that a star reports.

        It includes the overflow by a tuple that is stored in this cycle and comes before the probe.
        """
        return tracker.overflow | (tracker.after & tracker.store & tracker.mine & ~tracker.stored)

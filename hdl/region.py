# SPDX-License-Identifier: Apache-2.0
"""Half a join core: stores tuples of one side and probes them with the other side's (Figure 5)."""

from amaranth import *
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from .control_steps import elaborate_execution, elaborate_steps, rounds_after
from .external.engine import ExternalEngine
from .index.engine import IndexEngine
from .local_reset import reset_nearby
from .matches.engine import ReducingEngine
from .memory.axi4 import memory_members
from .scan.digests import DigestEngine
from .scan.engine import ScanEngine
from .streams.registers import StreamRegister, flagged_register
from .window.time_expiry import times_layout
from .window.tracker import WindowTracker
from .words.inputs import InputKind
from .words.prepared import region_word
from .words.results import node_result
from .words.spans import activity_layout

__all__ = ["Region"]


def engine_class(parameters):
    """Return the class of engine that the parameters call for."""
    if parameters.engine == "index":
        return IndexEngine
    if parameters.is_external:
        return ExternalEngine
    if parameters.is_aggregated:
        return ReducingEngine
    return ScanEngine if parameters.digest_bits is None else DigestEngine


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
        self._engine = engine_class(parameters)(parameters, probe_side=probe_side)
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
                **dict.fromkeys(["works", "vacant"] * parameters.clock_requests, Out(1)),
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
        if self.parameters.is_external:
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
        if self.parameters.clock_requests:
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
        if self.parameters.parity:
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
        ``mine``: a tuple to store is stored here.
        ``displaces``: the oldest key of this region leaves for a tuple to store.
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
            "mine": word.storing[1] == self.position,
            "displaces": word.leaves[1] & (word.leaving[1] == self.position),
        }

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
            Cat(tracker.mine, tracker.displaces).eq(Cat(is_.mine, is_.displaces)),
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

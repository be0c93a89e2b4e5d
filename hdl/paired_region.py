# SPDX-License-Identifier: Apache-2.0
"""A region that stores one tuple of a word and probes with the other in the same cycle."""

from amaranth import *

from .region import Region
from .words.inputs import InputKind

__all__ = ["PairedRegion"]


class PairedRegion(Region):
    """A :class:`Region` whose words may hold a tuple of each side.

    Both tuples are accepted in one cycle and take effect in the next. The probe sees the window as
    it is after the stored tuple, or before, by the order in which they came. With a time-based
    window, tuples have to leave on behalf of the later tuple too, and must not on behalf of the
    earlier one: where some leave between the two, or the first one may leave before the second, the
    two are accepted one after the other.

    Latency: that of the engine, and 2 cycles; 3 with timestamps. Throughput: a word per cycle, also
    where one group follows another; a word that is accepted by halves takes a cycle more.

    Parameters, members: those of a :class:`Region`.
    """

    def word_flags(self, words):
        """Return what becomes of a region word.

        Beside what a :class:`Region` wants to know: there is a ``tuple``; it has ``both``, and the
        first of two is stored, ``between`` what comes before and the second; the first tuple, or
        the only one, is to be stored.
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

        Of a word that is accepted by halves, the group ends with the second one.
        """
        is_, tuples = words.payload, words.payload.word.body.both
        go = Signal()  # the engine could take them
        accepted = Signal()
        alone = Signal()  # only the first of two is accepted
        second = Signal()  # that was so, and the other one is left
        stores, probes = Signal(), Signal()  # a tuple of this kind is among those accepted
        both_settled = self.elaborate_order(m, is_, second, tracker)
        m.d.comb += [
            tracker.present.eq(is_.tuple),
            go.eq(tracker.present & (~is_.grouped | takes) & (~is_.store | ~engine.occupied)),
            accepted.eq(go & tracker.settled & both_settled),
            alone.eq(go & tracker.settled & ~both_settled & is_.both & ~second),
            # Of two tuples, one is missing if the first is alone, or if the other one was.
            stores.eq(is_.store & Mux(alone, is_.store_first, ~(second & is_.store_first))),
            probes.eq(is_.probe & Mux(alone, ~is_.store_first, ~second | is_.store_first)),
        ]
        m.d.sync += [
            tracker.store.eq((accepted | alone) & stores),
            tracker.after.eq(is_.both & is_.store_first & ~second),
            engine.probe.eq((accepted | alone) & probes),
        ]
        with m.If(accepted | alone):
            m.d.sync += second.eq(alone)
        self.elaborate_prepared(m, words, tuples, tracker, engine)
        return accepted

    def elaborate_order(self, m, is_, second, tracker):
        """Say which of the tuples is at hand; return whether all have left the window that the
        second one does not see."""
        if not self.parameters.timestamp_bits:
            return Const(1)
        m.d.comb += [
            tracker.rest.eq(second),
            tracker.between.eq(is_.between & ~second),
        ]
        return tracker.both_settled

    def times(self, word):
        """Return the timestamps of a region word, in the order of its tuples."""
        both = word.kind == InputKind.BOTH
        s_only = word.kind == InputKind.S
        r, s = (word.body.both[side].timestamp for side in "rs")
        return [Mux(s_only | (both & word.first), s, r), Mux(s_only | (both & ~word.first), s, r)]

    def elaborate_prepared(self, m, words, tuples, tracker, engine):
        """Show the tuples of the word to tracker and engine, a cycle later."""
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
        """Return the overflow that a star knows of: also of a tuple that comes before the probe."""
        return tracker.overflow | (tracker.after & tracker.store & tracker.mine & ~tracker.stored)

# SPDX-License-Identifier: Apache-2.0
"""A region that stores one tuple of a word and probes with the other in the same cycle."""

from amaranth import *

from .region import Region
from .words.inputs import InputKind

__all__ = ["PairedRegion"]


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
            Cat(tracker.mine, tracker.displaces).eq(Cat(is_.mine, is_.displaces)),
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

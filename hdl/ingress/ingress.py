# SPDX-License-Identifier: Apache-2.0
"""The root of the distribution tree: checks words and their order, closes groups, places stars."""

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hdl.local_reset import reset_nearby
from hdl.streams.registers import StreamRegister, flagged_register
from hdl.words.inputs import input_word
from hdl.words.operands import has_tuples, place_tuple
from hdl.words.prepared import region_word
from hdl.words.results import turns_shape

from .preparation import WordPreparation
from .punctuation import Punctuation, RoundMode
from .storage_turns import StorageTurns
from .word_facts import TimeOrder, WordHalves, is_clear, word_facts

__all__ = ["Ingress"]


class Ingress(wiring.Component):
    """Annotate every input word with what all regions must agree on.

    Groups are closed here, once, so that all regions close the same ones. While the order of
    results matters, the ingress tells the combiner's :class:`hdl.trees.order_queue.OrderQueue` the
    sides whose groups end with a star, in the order in which these groups closed.

    A tuple whose timestamp is below that of its predecessor raises ``disorder``. It and all later
    tuples are dropped until CLEAR, while control words still pass and carry the fault. A word that
    is not legal (:func:`hdl.words.operands.is_legal`) is dropped, and all later words carry
    ``illegal``, up to and including CLEAR.

    Tuples leave prepared for the comparison and, with an index, for the lookup of buckets
    (:class:`hdl.ingress.preparation.WordPreparation`).

    A word is first accepted, which depends on the order of time and on ``room``. What the word says
    by itself (:func:`word_facts`) goes into a register with it. So the logic that drops illegal
    words, closes groups and sets bounds starts at registers. No word is taken while reset is on its
    way (:mod:`hdl.local_reset`).

    The ingress also says which core stores a tuple and which core's oldest tuple leaves for it
    (:class:`hdl.ingress.storage_turns.StorageTurns`). CORE words end here.

    A word of two tuples has the effect of its tuples one after the other. It leaves as one word,
    unless the first tuple ends the group of the other side. If its two tuples are out of order,
    only the first one leaves.

    Latency: 2 cycles, 3 with timestamps, and those of the preparation. Throughput: 1 word per
    cycle; a word of two tuples that leaves as two takes 2.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator.

    Members
    -------
    i : In(stream.Signature(input_word(parameters)))
    o : Out(stream.Signature(region_word(parameters)))
    closing : Out(1)
        The sides in ``closing_sides`` get their next star; from a register.
    closing_sides : Out(turns_shape(parameters))
        Which sides, and in which order.
    room : In(1)
        The order queue has room for three ``closing``, or for five with two tuples per word. This
        many can come from the last cycle in which ``room`` is high on: one from the register of
        ``closing`` in that cycle, and one for each of two words that were already accepted, or two
        for each of them if it leaves as two words.
    accepted : Out(2)
        In the previous cycle, a tuple of side R (bit 0), of side S (bit 1) was sent on to the
        preparation.
    disorder : Out(1)
        Time went backwards since the last CLEAR, in the words accepted so far.
    illegal : Out(1)
        An illegal word was dropped in the previous cycle.
    """

    def __init__(self, parameters):
        self.parameters = parameters
        self._preparation = WordPreparation(parameters)
        self.latency = 2 + (parameters.timestamp_bits > 0) + self._preparation.latency
        super().__init__(
            {
                "i": In(stream.Signature(input_word(parameters))),
                "o": Out(stream.Signature(region_word(parameters))),
                "closing": Out(1),
                "closing_sides": Out(turns_shape(parameters)),
                "room": In(1),
                "accepted": Out(2),
                "disorder": Out(1),
                "illegal": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        received = self.elaborate_input(m)
        accepted = self.elaborate_acceptance(m, received)
        m.submodules.turns = turns = StorageTurns(self.parameters)
        refused = turns.segment_refused
        m.submodules.preparation = preparation = self._preparation
        connect(m, preparation.o, flipped(self.o))
        output = preparation.i
        passes = accepted.payload.legal & ~accepted.payload.core
        # A segment that is refused changes nothing; what leaves with it has no meaning.
        advance = Signal()
        m.d.comb += [
            # A CORE word concerns only the turns, which are decided here.
            output.valid.eq(accepted.valid & passes & ~refused),
            advance.eq(accepted.valid & output.ready & ~refused),
            output.payload.disorder.eq(accepted.payload.disorder),
            output.payload.bounds.as_value().eq(accepted.payload.bounds),
            output.payload.limits.as_value().eq(accepted.payload.limits),
        ]
        self.elaborate_legality(m, accepted, output, refused | turns.core_refused)
        m.submodules.punctuation = punctuation = Punctuation(self.parameters)
        self.elaborate_groups(m, accepted, output, punctuation, advance)
        if self.parameters.engine.rounds:
            self.elaborate_rounds(m, accepted, output, punctuation, advance)
        self.elaborate_turns(m, accepted, output, punctuation, turns, advance)
        if not self.parameters.side_by_side:
            self.elaborate_tuple(m, accepted, output, punctuation)
        else:
            self.elaborate_beats(m, accepted, output, punctuation)
        return reset_nearby(m, platform)

    def elaborate_input(self, m):
        """Take words into a register; return its output stream."""
        m.submodules.input = register = StreamRegister(
            input_word(self.parameters), early=["kind", "body"]
        )
        m.d.comb += [
            register.i.payload.eq(self.i.payload),
            register.i.valid.eq(self.i.valid),
            # A register that is still in reset would lose the word.
            self.i.ready.eq(register.i.ready & ~ResetSignal()),
        ]
        return register.o

    def elaborate_acceptance(self, m, words):
        """Take the words that are not dropped into a register, once there is room for their stars.

        Return the output stream of the register. Its payload holds the input word, its
        :func:`word_facts`, its ``kind``, and ``disorder``.
        """
        checked = stream.Signature(words.payload.shape()).create()
        drop, late = Signal(), Const(0)
        if self.parameters.timestamp_bits:
            words, late = self.elaborate_order(m, words, drop)
        m.d.comb += [
            checked.payload.eq(words.payload),
            checked.valid.eq(words.valid & self.room & ~drop),
            words.ready.eq(checked.ready & self.room),
        ]
        if self.parameters.side_by_side:
            place_tuple(m, words.payload, checked.payload)
            with m.If(late):  # only the first tuple goes on: the word gets the kind of its side
                m.d.comb += Value.cast(checked.payload.kind).eq(words.payload.first)

        def flags(i):
            facts = word_facts(self.parameters, i.payload)
            return {"kind": i.payload.kind, "disorder": self.disorder, **facts}

        return flagged_register(m, "accepted", checked, flags=flags)

    def elaborate_order(self, m, words, drop):
        """Check the order of timestamps, and remember that time went backwards.

        Drive ``drop`` while the word at hand is to be dropped. Return the stream of words, and
        whether only the first of the two tuples at hand goes on.
        """
        m.submodules.order = order = TimeOrder(self.parameters)
        connect(m, words, order.i)
        ordered = stream.Signature(words.payload.shape()).create()
        is_ = order.o.payload
        m.d.comb += [
            ordered.payload.eq(is_.word),
            ordered.valid.eq(order.o.valid),
            order.o.ready.eq(ordered.ready),
        ]
        transfer = ordered.valid & ordered.ready
        with m.If(has_tuples(self.parameters, ordered.payload)):  # so the word is legal
            m.d.comb += drop.eq(self.disorder | is_.backward)
            with m.If(transfer):
                m.d.sync += self.disorder.eq(drop | is_.late)
        with m.Elif(transfer & is_clear(ordered.payload)):
            m.d.sync += self.disorder.eq(0)
        return ordered, is_.late

    def elaborate_turns(self, m, words, output, punctuation, turns, advance):
        """Say of every tuple which core stores it, and whose oldest tuple leaves for it."""
        word = words.payload
        m.d.comb += [
            turns.advance.eq(advance),
            turns.tuples.eq(punctuation.probes),
            turns.value.eq(word.word.body.control.value),
            turns.limits.as_value().eq(word.limits),
            *(
                getattr(turns, name).eq(word[name])
                for name in (
                    "core",
                    "exists",
                    "which",
                    "segment",
                    "empties",
                    "begins",
                    "timed",
                    "clear",
                )
            ),
            punctuation.limit.eq(turns.limit),
            *(
                output.payload[name].eq(getattr(turns, name))
                for name in ("storing", "leaving", "leaves")
            ),
        ]

    def elaborate_legality(self, m, words, output, refused):
        """Remember until CLEAR that a word was illegal. An illegal word sets and ends nothing."""
        word = words.payload
        advance = words.valid & words.ready
        illegal, drops = Signal(), Signal()
        m.d.comb += [
            output.payload.illegal.eq(illegal),
            drops.eq(~word.legal | refused),
        ]
        m.d.sync += self.illegal.eq(advance & drops)
        with m.If(advance):
            m.d.sync += illegal.eq((illegal & ~word.clear) | drops)

    def elaborate_groups(self, m, words, output, punctuation, advance):
        """Let the punctuation decide which groups the word at hand closes; tell the combiner."""
        word = words.payload
        turns = punctuation.star
        if self.parameters.side_by_side:
            turns = Cat(turns, punctuation.s_first)
        m.d.comb += [
            punctuation.advance.eq(advance),
            *(
                getattr(punctuation, name).eq(word[name])
                for name in ("finish", "set_precision", "wanted", "single", "unordered")
            ),
            *(
                output.payload[name].eq(getattr(punctuation, name))
                for name in ("close", "star", "free")
            ),
        ]
        m.d.sync += [
            self.accepted.eq(punctuation.probes & advance.replicate(2)),
            self.closing_sides.eq(turns),
            self.closing.eq(punctuation.starring),
        ]

    def elaborate_rounds(self, m, words, output, punctuation, advance):
        """Say of every word in which rounds results come from there on."""
        word = words.payload
        m.submodules.rounds = mode = RoundMode(self.parameters)
        m.d.comb += [
            mode.advance.eq(advance),
            mode.tuples.eq(punctuation.probes),
            mode.set_precision.eq(word.set_precision),
            mode.wanted.eq(word.rounds),
            mode.segment.eq(word.segment),
            mode.empties.eq(word.empties),
            output.payload.rounds.eq(mode.rounds),
        ]

    def elaborate_tuple(self, m, words, output, punctuation):
        """Pass a word on as it is."""
        word = words.payload
        m.d.comb += [
            words.ready.eq(output.ready),
            punctuation.probes.eq(Cat(word.is_r, word.is_s)),
            output.payload.word.kind.eq(word.kind),
            output.payload.word.body.eq(word.word.body),
        ]

    def elaborate_beats(self, m, words, output, punctuation):
        """Pass the tuples of a word on together if possible, otherwise one after the other."""
        word, scheduled = words.payload, output.payload.word
        m.submodules.halves = halves = WordHalves()
        m.d.comb += [
            halves.tuples.eq(Cat(word.is_r, word.is_s)),
            halves.first.eq(word.first),
            halves.advance.eq(words.valid & output.ready),
            words.ready.eq(output.ready & halves.last),
            punctuation.probes.eq(halves.present),
            # Encode R, S, CONTROL or BOTH. A legal word without tuples is a control word.
            scheduled.kind.eq(Cat(halves.present[1], ~halves.present.xor())),
            scheduled.body.as_value().eq(word.word.body.as_value()),
        ]
        m.d.comb += [
            scheduled.first.eq(word.first),
            punctuation.first.eq(word.first),
            halves.apart.eq(punctuation.apart),
        ]

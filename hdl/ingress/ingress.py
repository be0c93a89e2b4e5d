# SPDX-License-Identifier: Apache-2.0
"""The root of the distribution tree: checks words and their order, closes groups, places stars."""

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hdl.index.cells import CellPreparation
from hdl.local_reset import reset_nearby
from hdl.streams.registers import clocked, flagged_register, stream_stage
from hdl.words.inputs import Control, InputKind, input_word
from hdl.words.operands import bounds_set, ends_groups, is_legal, value_limits
from hdl.words.prepared import region_word

from .preparation import ProbePreparation
from .punctuation import Punctuation

__all__ = ["Ingress"]


class Ingress(wiring.Component):
    """Annotate every input word with what all regions must agree on.

    Groups are closed here, once, so that every region closes the same ones. The sides whose group
    ends with a star are told to the :class:`hdl.trees.order_queue.OrderQueue` of the combiner, in
    the order in which they closed. A tuple whose timestamp is below its predecessor's raises
    ``disorder``; it and all tuples after it are dropped until CLEAR, while control words still
    pass, carrying the fault. A word that is not legal (:func:`hdl.words.operands.is_legal`) is
    dropped, and all words after it carry ``illegal``, up to CLEAR. Tuples leave prepared for the
    comparison (:class:`hdl.ingress.preparation.ProbePreparation`) and, with an index, for looking
    up buckets (:class:`hdl.index.cells.CellPreparation`).

    A word is accepted first, which is where the order of time and ``room`` are looked at. What it
    says by itself (:func:`word_facts`) goes with it into a register, so that illegal words are
    dropped, groups are decided and bounds are set out of registers. While reset is on its way
    (:mod:`hdl.local_reset`), no word is taken.

    Latency: :attr:`latency` cycles: 5, and those of the latter; 1 if not ``pipelined``. Throughput:
    1 word per cycle.

    Parameters
    ----------
    parameters : JoinParameters
        Of the accelerator.

    Members
    -------
    i : In(stream.Signature(input_word(parameters)))
    o : Out(stream.Signature(region_word(parameters)))
    closing : Out(1)
        The sides in ``closing_sides`` get their next star; from a register, if ``pipelined``.
    closing_sides : Out(2)
        Bit 0 for R, bit 1 for S; if both, R comes first.
    room : In(1)
        There is room for as many ``closing`` as may be in flight: for 3, from the last cycle with
        ``room`` on, that cycle's own among them; so for 2 without ``room``. One of them is in the
        register of ``closing``, two are of words that were accepted. For 1 if not ``pipelined``.
    accepted : Out(2)
        A tuple of side R (bit 0) or S (bit 1) was sent on to the preparation in the cycle before;
        in this one, if not ``pipelined``.
    disorder : Out(1)
        Time went backwards since the last CLEAR, as far as words are accepted.
    illegal : Out(1)
        An illegal word was dropped in the cycle before; in this one, if not ``pipelined``.
    """

    def __init__(self, parameters):
        self.parameters = parameters
        self._preparation = ProbePreparation(parameters)
        self._cells = CellPreparation(parameters) if parameters.engine == "index" else None
        self.latency = 2 * parameters.pipelined + self._preparation.latency
        self.latency += self._cells.latency if self._cells else 0
        super().__init__(
            {
                "i": In(stream.Signature(input_word(parameters))),
                "o": Out(stream.Signature(region_word(parameters))),
                "closing": Out(1),
                "closing_sides": Out(2),
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
        m.submodules.preparation = preparation = self._preparation
        if self._cells:
            m.submodules.cells = cells = self._cells
            connect(m, preparation.o, cells.i)
            connect(m, cells.o, flipped(self.o))
        else:
            connect(m, preparation.o, flipped(self.o))
        output = preparation.i
        m.d.comb += [
            output.valid.eq(accepted.valid & accepted.payload.legal),
            accepted.ready.eq(output.ready),
            output.payload.word.kind.eq(accepted.payload.kind),
            output.payload.word.body.eq(accepted.payload.word.body),
            output.payload.disorder.eq(accepted.payload.disorder),
            output.payload.bounds.as_value().eq(accepted.payload.bounds),
            output.payload.limits.as_value().eq(accepted.payload.limits),
        ]
        self.elaborate_legality(m, accepted, output)
        self.elaborate_groups(m, accepted, output)
        return reset_nearby(m, platform, pipelined=self.parameters.pipelined)

    def elaborate_input(self, m):
        """Take words into a register; return the stream of them."""
        pipelined = self.parameters.pipelined
        m.submodules.input = register = stream_stage(
            input_word(self.parameters), pipelined=pipelined, early=["kind", "body"]
        )
        # A register that is still in reset would lose the word.
        awake = ~ResetSignal() if pipelined else Const(1)
        m.d.comb += [
            register.i.payload.eq(self.i.payload),
            register.i.valid.eq(self.i.valid),
            self.i.ready.eq(register.i.ready & awake),
        ]
        return register.o

    def elaborate_acceptance(self, m, words):
        """Take words that are not dropped into a register, once there is room for their stars.

        Return the stream of them: beside an input word its :func:`word_facts`, its ``kind``, and
        ``disorder``.
        """
        checked = stream.Signature(words.payload.shape()).create()
        drop = self.elaborate_time(m, words)
        m.d.comb += [
            checked.payload.eq(words.payload),
            checked.valid.eq(words.valid & self.room & ~drop),
            words.ready.eq(checked.ready & self.room),
        ]

        def flags(i):
            facts = word_facts(self.parameters, i.payload)
            return {"kind": i.payload.kind, "disorder": self.disorder, **facts}

        pipelined = self.parameters.pipelined
        return flagged_register(m, "accepted", checked, flags=flags, pipelined=pipelined)

    def elaborate_time(self, m, words):
        """Watch the timestamps; return whether the word at hand is dropped."""
        drop = Signal()
        if not self.parameters.timestamp_bits:
            return drop
        newest = Signal(self.parameters.timestamp_bits)
        timestamp = words.payload.body.tuple.timestamp
        transfer = words.valid & words.ready
        with m.If(~words.payload.kind.as_value()[1]):  # a tuple, legal therefore
            m.d.comb += drop.eq(self.disorder | (timestamp < newest))
            with m.If(transfer):
                m.d.sync += [newest.eq(timestamp), self.disorder.eq(drop)]
        with m.Elif(transfer & is_clear(words.payload)):
            m.d.sync += [newest.eq(0), self.disorder.eq(0)]
        return drop

    def elaborate_legality(self, m, words, output):
        """Remember until CLEAR that a word was illegal; the facts of such a word are all zero."""
        stage = clocked(m, pipelined=self.parameters.pipelined)
        word = words.payload
        advance = words.valid & words.ready
        illegal = Signal()
        m.d.comb += output.payload.illegal.eq(illegal)
        stage += self.illegal.eq(advance & ~word.legal)
        with m.If(advance):
            m.d.sync += illegal.eq((illegal & ~word.clear) | ~word.legal)

    def elaborate_groups(self, m, words, output):
        """Let the punctuation decide which groups the word at hand closes; tell the combiner."""
        stage = clocked(m, pipelined=self.parameters.pipelined)
        word = words.payload
        advance = words.valid & words.ready
        m.submodules.punctuation = punctuation = Punctuation(self.parameters)
        m.d.comb += [
            punctuation.probes.eq(Cat(word.is_r, word.is_s)),
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
        stage += [
            self.accepted.eq(punctuation.probes & advance.replicate(2)),
            self.closing_sides.eq(punctuation.star),
            self.closing.eq(punctuation.starring),
        ]


def word_facts(parameters, word):
    """Return what an input word says by itself, so that nothing else has to look into it.

    ``legal``: it means something. ``clear``: it is CLEAR. ``is_r``, ``is_s``: it is a tuple of this
    side. ``finish``: it closes the groups of both sides.
    ``set_precision``: it does, and the ``wanted`` period from star to star follows, which is
    ``single`` if it is one and ``unordered`` if it is longer than a group. ``bounds``: which it
    sets. ``limits``: which its value exceeds.
    """
    control = word.body.control
    is_control = word.kind == InputKind.CONTROL
    bits = parameters.probe_bits
    longest = 1 << bits
    low, high = control.value[:bits], control.value[bits:]
    shorter = (low != 0) & (high == 0)  # than the longest, which zero and too long ones mean
    return {
        # What goes to both schedules is kept apart: in the Verilog, neighbours become one port, and
        # these are neighbours in another order for the other side.
        "legal": is_legal(parameters, word),
        "clear": is_clear(word),
        "is_r": word.kind == InputKind.R,
        "wanted": Mux(shorter, low, longest),
        "is_s": word.kind == InputKind.S,
        "set_precision": is_control & (control.op == Control.PRECISION),
        "finish": ends_groups(parameters, word),
        "single": Mux(shorter, low == 1, longest == 1),
        "unordered": Mux(shorter, low > parameters.probes, longest > parameters.probes),
        "bounds": bounds_set(parameters, word),
        "limits": value_limits(parameters, word),
    }


def is_clear(word):
    """Is this input word CLEAR?"""
    return (word.kind == InputKind.CONTROL) & (word.body.control.op == Control.CLEAR)

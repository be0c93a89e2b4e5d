# SPDX-License-Identifier: Apache-2.0
"""What a word says by itself and beside its predecessor: facts, order of time, halves."""

from amaranth import *
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from hdl.ecp5 import is_below
from hdl.streams.registers import StreamRegister
from hdl.words.inputs import Control, InputKind, input_word
from hdl.words.operands import (
    begins_window,
    bounds_set,
    core_exists,
    empties_window,
    ends_groups,
    executes,
    has_tuples,
    held_tuples,
    is_legal,
    times,
    value_limits,
)
from hdl.words.values import rounds_code

__all__ = ["TimeOrder", "WordHalves", "is_clear", "ordered_word", "word_facts"]


def word_facts(parameters, word):
    """Return what an input word says by itself, so that later stages need not decode it.

    ``legal``: the word is legal. An illegal word holds no tuple, ends no group and sets nothing.
    ``clear``: the word is CLEAR.
    ``is_r``, ``is_s``: the word holds a tuple of this side.
    ``first``, if a word may hold two tuples: the side of the tuple that comes first.
    ``finish``: the word closes the groups of both sides.
    ``set_precision``: the word sets the precision.
    ``wanted``: the period from star to star that PRECISION asks for; zero if it asks for no stars.
    ``single``, ``unordered``: this period is one; it is longer than a group, or there is none.
    ``rounds``, with rounds: the code of the rounds that INNER asks for; zero for PRECISION.
    ``core``: the word is CORE.
    ``exists``: the value of the word is the number of a core.
    ``which``: for each core, whether the lowest bits of the value are its number.
    ``segment``: the word is SEGMENT.
    ``empties``: the sides whose windows the word empties.
    ``begins``: the word is WINDOW or LIFESPAN.
    ``timed``: it is LIFESPAN.
    ``bounds``: the bounds that the word sets.
    ``limits``: the limits that the value of the word exceeds.

    PRECISION and INNER set the precision: INNER asks for a period of one. In other words,
    ``wanted``, ``single``, ``unordered`` and ``rounds`` may have any value. In words that do not
    hold two tuples, ``first`` may have any value.
    """
    control = word.body.control
    is_control = word.kind == InputKind.CONTROL
    bits = parameters.engine.probe_bits
    longest = 1 << bits
    low, high = control.value[:bits], control.value[bits:]
    held = held_tuples(parameters, word)
    number = control.value[: ceil_log2(max(2, parameters.cores))]
    # The period is shorter than the longest one. Numbers that are too large, and those below zero,
    # stand for the longest period; zero stands for no stars.
    none = control.value == 0
    shorter = (low != 0) & (high == 0)
    order = {"first": word.first} if parameters.side_by_side else {}
    inner, sets, rounds = Const(0), control.op == Control.PRECISION, {}
    if parameters.engine.rounds:
        inner = control.op == Control.INNER
        sets = control.op.as_value().matches(Control.PRECISION, Control.INNER)
        rounds = {"rounds": Mux(inner, rounds_code(parameters, control.value), 0)}
    return {
        **order,
        # Facts that go to both schedules are not neighbours here. Neighbours become one port in the
        # Verilog, and the schedules of the two sides take these facts in different orders.
        "legal": is_legal(parameters, word),
        "clear": is_clear(word),
        "is_r": held[0],
        "wanted": Mux(inner, 1, Mux(shorter, low, Mux(none, 0, longest))),
        **rounds,
        "is_s": held[1],
        "set_precision": is_control & sets,
        "finish": ends_groups(parameters, word),
        "single": inner | Mux(shorter, low == 1, ~none & (longest == 1)),
        "unordered": ~inner
        & Mux(shorter, low > parameters.engine.probes, none | (longest > parameters.engine.probes)),
        "core": is_control & (control.op == Control.CORE),
        "exists": core_exists(parameters, control),
        "which": Cat(number == core for core in range(parameters.cores)),
        "segment": is_control & (control.op == Control.SEGMENT),
        "empties": emptied(parameters, word),
        "begins": is_control & begins_window(control),
        "timed": control.op == Control.LIFESPAN,
        "bounds": bounds_set(parameters, word),
        "limits": value_limits(parameters, word),
    }


def emptied(parameters, word):
    """Return the sides whose windows an input word empties."""
    control = word.body.control
    begins = begins_window(control)
    own = Cat(control.index == 0, control.index == 1)
    empties = executes(parameters, word) & empties_window(control, parameters)
    return empties.replicate(2) & (own | (~begins).replicate(2))


def is_clear(word):
    """Return whether an input word is CLEAR."""
    return (word.kind == InputKind.CONTROL) & (word.body.control.op == Control.CLEAR)


class WordHalves(wiring.Component):
    """Let the tuples of a word go on in one beat, or one after the other in two.

    A word of two tuples takes two beats if they are to go on ``apart``: first the tuple of side
    ``first``, then the other one. Every other word takes one beat.

    Latency: 0 cycles. Throughput: 1 beat per cycle.

    Members
    -------
    tuples : In(2)
        The word at hand holds a tuple of side R (bit 0), of side S (bit 1).
    first : In(1)
        Side of the tuple that comes first, if there are two.
    apart : In(1)
        If there are two tuples, they go on in two beats. Only the value in the first beat counts.
    present : Out(2)
        Tuples of the beat at hand, in the same form as ``tuples``.
    last : Out(1)
        The beat at hand is the last one of its word.
    advance : In(1)
        The beat at hand is taken.
    """

    def __init__(self):
        self.latency = 0
        super().__init__(
            {
                "tuples": In(2),
                "first": In(1),
                "apart": In(1),
                "present": Out(2),
                "last": Out(1),
                "advance": In(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        second = Signal()  # the first of two beats has been taken
        divides = Signal()  # this beat is the first of two
        m.d.comb += [
            divides.eq(self.tuples.all() & self.apart & ~second),
            self.last.eq(~divides),
        ]
        with m.If(second | divides):
            m.d.comb += self.present.eq(Mux(self.first ^ second, 0b10, 0b01))
        with m.Else():
            m.d.comb += self.present.eq(self.tuples)
        with m.If(self.advance):
            m.d.sync += second.eq(divides)
        return m


def ordered_word(parameters):
    """Return the layout of an input word with flags about its timestamps.

    ``backward``: the first tuple is older than the last tuple of the previous word with tuples,
      since CLEAR.
    ``late``: the word holds two tuples, and the second one is older than the first.
    """
    return data.StructLayout({"backward": 1, "late": 1, "word": input_word(parameters)})


class TimeOrder(wiring.Component):
    """Compare the timestamps of a word a cycle before the word is accepted.

    So the decision to accept a word depends on registers instead of comparisons.

    Latency: 1 cycle. Throughput: 1 word per cycle.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator, which has timestamps.

    Members
    -------
    i : In(stream.Signature(input_word(parameters)))
    o : Out(stream.Signature(ordered_word(parameters)))
        Directly from a register.
    """

    def __init__(self, parameters):
        self.parameters = parameters
        self.latency = 1
        super().__init__(
            {
                "i": In(stream.Signature(input_word(parameters))),
                "o": Out(stream.Signature(ordered_word(parameters))),
            }
        )

    def elaborate(self, platform):
        m = Module()
        layout = ordered_word(self.parameters)
        m.submodules.output = output = StreamRegister(layout, early=list(layout.members))
        word, ordered = self.i.payload, output.i.payload
        newest = Signal(self.parameters.timestamp_bits)
        if not self.parameters.side_by_side:
            last = word.body.tuple.timestamp
            m.d.comb += ordered.backward.eq(is_below(m, last, newest))
        else:
            _, last = times(word)
            self.compare_pair(m, word, newest, ordered)
        wiring.connect(m, output.o, wiring.flipped(self.o))
        m.d.comb += [
            ordered.word.eq(word),
            output.i.valid.eq(self.i.valid),
            self.i.ready.eq(output.i.ready),
        ]
        with m.If(self.i.valid & self.i.ready):
            with m.If(has_tuples(self.parameters, word)):
                m.d.sync += newest.eq(last)
            with m.Elif(is_clear(word)):
                m.d.sync += newest.eq(0)
        return m

    def compare_pair(self, m, word, newest, ordered):
        """Compare the timestamps of both places, before it is known which tuple comes first."""
        r, s = word.body.both.r.timestamp, word.body.both.s.timestamp
        both = word.kind == InputKind.BOTH
        old_r, old_s = (is_below(m, time, newest) for time in (r, s))
        m.d.comb += [
            ordered.backward.eq(Mux(both & word.first, old_s, old_r)),
            ordered.late.eq(both & Mux(word.first, is_below(m, r, s), is_below(m, s, r))),
        ]

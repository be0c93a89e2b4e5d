# SPDX-License-Identifier: Apache-2.0
"""Whether time goes backwards, from word to word and within a word."""

from amaranth import *
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hdl.comparison.order import is_below
from hdl.streams.registers import StreamRegister
from hdl.words.inputs import InputKind, input_word
from hdl.words.places import has_tuples, times

from .word_facts import is_clear

__all__ = ["TimeOrder", "ordered_word"]


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
        if self.parameters.tuples_per_word == 1:
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

# SPDX-License-Identifier: Apache-2.0
"""Inputs of a shell, merged by time into the words of an accelerator."""

from functools import reduce
from operator import or_

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hdl.families.choice import family_of
from hdl.scalegate.entry import COUNTER_BITS, DEADLINE_BITS
from hdl.scalegate.gate import ScaleGate
from hdl.scalegate.words import GateKind

from .kept_watermark import KeptWatermark
from .source_words import SourceWords
from .spoken_watermarks import SpokenWatermarks

__all__ = ["MergedInputs"]


class MergedInputs(wiring.Component):
    """Merge the words of several inputs in front of an accelerator with a ScaleGate.

    A control word of the accelerator comes at all inputs, and goes on once. What the words say to
    the merge is in :class:`hdl.shells.source_words.SourceWords`. An accelerator that takes
    watermarks gets those of the gate (:class:`hdl.shells.spoken_watermarks.SpokenWatermarks`).

    A reset lasts two cycles at least.

    Latency: that of the gate, 6 cycles with two inputs and 12 with eight; an order to exclude an
    input takes two cycles to the gate. Throughput: 1 word per cycle.

    Parameters
    ----------
    parameters : JoinParameters or AggregateParameters
        Parameters of the accelerator.
    inputs, r_inputs
        See :meth:`hdl.families.family.Family.inputs`; at least two inputs.

    Attributes
    ----------
    sides : tuple of int
        Side whose tuples come at each input: 0 for R, 1 for S; all 0 for an aggregate.

    Members
    -------
    i : In(stream.Signature(family.input_word)).array(inputs)
        Of a join: words of R's inputs, then words of S's inputs.
    o : Out(stream.Signature(family.input_word))
    exclude : In(inputs)
        Exclude these inputs now, if they stall.
    deadline : In(DEADLINE_BITS)
        Stalled cycles after which an input is excluded; zero for never.
    stalls : Out(COUNTER_BITS).array(inputs)
        Cycles in which each input was waited for; they wrap.
    late, excluded : Out(inputs)
        An input has sent a late tuple, was excluded; high for one cycle or more.
    differ : Out(1)
        The inputs brought different control words; high for one cycle or more.
    wrong : Out(1)
        An input brought a tuple of the other side, or an order that does not exist; likewise.
    waits : Out(1)
        Two cycles ago a word was in the merge.
    """

    def __init__(self, parameters, *, inputs=2, r_inputs=None):
        self._family = family = family_of(parameters)
        self.sides = family.inputs(inputs, r_inputs).sides
        if inputs < 2:
            raise ValueError(f"A merge needs at least two inputs, not {inputs!r}")
        self.parameters = parameters
        layout = family.input_word
        self._gate = ScaleGate(family.time_bits, layout, sources=inputs)
        self.latency = self._gate.latency
        self._speech = None
        if family.takes_watermarks:
            self._speech = SpokenWatermarks(parameters, sources=inputs)
        super().__init__(
            {
                "i": In(stream.Signature(layout)).array(inputs),
                "o": Out(stream.Signature(layout)),
                "exclude": In(inputs),
                "deadline": In(DEADLINE_BITS),
                "stalls": Out(COUNTER_BITS).array(inputs),
                "late": Out(inputs),
                "excluded": Out(inputs),
                "differ": Out(1),
                "wrong": Out(1),
                "waits": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.gate = gate = self._gate
        words = [
            SourceWords(self.parameters, sides=self.sides, number=number)
            for number in range(len(self.sides))
        ]
        for number, (source, i) in enumerate(zip(words, self.i, strict=True)):
            m.submodules[f"words_{number}"] = source
            connect(m, flipped(i), source.i)
            said = source.o
            if self._speech is not None:
                m.submodules[f"kept_{number}"] = kept = KeptWatermark(said.payload.shape())
                connect(m, said, kept.i)
                said = kept.o
            connect(m, said, gate.i[number])
        # What the words of all inputs say meets here, so it is in registers before it does.
        orders = [Signal.like(self.exclude, name=f"orders_{n}") for n in range(len(words))]
        ordered, wrong = Signal.like(self.exclude), Signal(len(words))
        m.d.sync += [
            *(mine.eq(source.exclude) for mine, source in zip(orders, words, strict=True)),
            ordered.eq(reduce(or_, orders)),
            wrong.eq(Cat(source.wrong for source in words)),
        ]
        m.d.comb += [
            gate.exclude.eq(self.exclude | ordered),
            gate.deadline.eq(self.deadline),
            gate.forget.eq(1),  # whoever looks at the faults remembers them
            self.late.eq(gate.late if self._speech is None else self._speech.late),
            self.excluded.eq(gate.excluded),
            self.differ.eq(gate.differ),
            self.waits.eq(gate.waits),
            self.wrong.eq(wrong.any()),
            *(mine.eq(theirs) for mine, theirs in zip(self.stalls, gate.stalls, strict=True)),
        ]
        self.elaborate_exit(m, gate)
        return m

    def elaborate_exit(self, m, gate):
        """Lead what leaves the gate to the accelerator, as far as it is a word of it."""
        if self._speech is not None:
            m.submodules.speech = self._speech
            connect(m, gate.o, self._speech.i)
            connect(m, self._speech.o, flipped(self.o))
            return
        merged = gate.o.payload
        passes = (merged.kind == GateKind.TUPLE) | (merged.kind == GateKind.BARRIER)
        m.d.comb += [
            self.o.payload.eq(merged.body),
            self.o.valid.eq(gate.o.valid & passes),
            gate.o.ready.eq(self.o.ready | ~passes),
        ]

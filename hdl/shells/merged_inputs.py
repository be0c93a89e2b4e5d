# SPDX-License-Identifier: Apache-2.0
"""Two inputs of a shell, one for each side, merged by time into the words of an accelerator."""

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hdl.scalegate.entry import COUNTER_BITS, DEADLINE_BITS
from hdl.scalegate.gate import ScaleGate
from hdl.scalegate.words import GateKind
from hdl.words.inputs import input_word

from .source_words import SourceWords

__all__ = ["MergedInputs", "check_inputs"]

#: R's words and S's words.
SIDES = 2


def check_inputs(parameters, inputs):
    """Raise :exc:`ValueError` unless an accelerator can have so many inputs."""
    if inputs not in (1, SIDES):
        raise ValueError(f"A shell has 1 or {SIDES} inputs, not {inputs!r}")
    if inputs == SIDES and not parameters.timestamp_bits:
        raise ValueError(
            f"{SIDES} inputs are merged by timestamp, so 'timestamp_bits' must not be zero"
        )
    if inputs == SIDES and parameters.tuples_per_word != 1:
        raise ValueError(
            f"{SIDES} inputs take words of one side each, so 'tuples_per_word' must be 1, "
            f"not {parameters.tuples_per_word!r}"
        )


class MergedInputs(wiring.Component):
    """Merge the words of R and of S in front of an accelerator: the smallest ScaleGate.

    A control word of the accelerator comes at both inputs, and goes on once. What the words say to
    the merge is in :class:`hdl.shells.source_words.SourceWords`.

    A reset lasts two cycles at least.

    Latency: 3 cycles. Throughput: 1 tuple per cycle; a control word takes 2 cycles.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator (:func:`check_inputs`).

    Members
    -------
    i : In(stream.Signature(input_word(parameters))).array(2)
        R's words, and S's words.
    o : Out(stream.Signature(input_word(parameters)))
    exclude : In(2)
        Exclude these inputs now, if they stall.
    deadline : In(DEADLINE_BITS)
        Stalled cycles after which an input is excluded; zero for never.
    stalls : Out(COUNTER_BITS).array(2)
        Cycles in which each input was waited for; they wrap.
    late, excluded : Out(2)
        An input has sent a late tuple, was excluded; high for one cycle or more.
    differ : Out(1)
        The inputs brought different control words; high for one cycle or more.
    wrong : Out(1)
        An input brought a tuple of the other side, or an order that does not exist; likewise.
    waits : Out(1)
        In the previous cycle a word was in the merge.
    """

    def __init__(self, parameters):
        self.parameters = parameters
        check_inputs(parameters, SIDES)
        layout = input_word(parameters)
        self._gate = ScaleGate(parameters.timestamp_bits, layout, sources=SIDES)
        self.latency = self._gate.latency
        super().__init__(
            {
                "i": In(stream.Signature(layout)).array(SIDES),
                "o": Out(stream.Signature(layout)),
                "exclude": In(SIDES),
                "deadline": In(DEADLINE_BITS),
                "stalls": Out(COUNTER_BITS).array(SIDES),
                "late": Out(SIDES),
                "excluded": Out(SIDES),
                "differ": Out(1),
                "wrong": Out(1),
                "waits": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.gate = gate = self._gate
        words = [SourceWords(self.parameters, side=side) for side in range(SIDES)]
        for side, (source, i) in enumerate(zip(words, self.i, strict=True)):
            m.submodules[f"words_{side}"] = source
            connect(m, flipped(i), source.i)
            connect(m, source.o, gate.i[side])
        m.d.comb += [
            gate.exclude.eq(self.exclude | Cat(source.exclude for source in reversed(words))),
            gate.deadline.eq(self.deadline),
            gate.forget.eq(1),  # whoever looks at the faults remembers them
            self.late.eq(gate.late),
            self.excluded.eq(gate.excluded),
            self.differ.eq(gate.differ),
            self.waits.eq(gate.waits),
            self.wrong.eq(Cat(source.wrong for source in words).any()),
            *(mine.eq(theirs) for mine, theirs in zip(self.stalls, gate.stalls, strict=True)),
        ]
        merged = gate.o.payload
        passes = (merged.kind == GateKind.TUPLE) | (merged.kind == GateKind.BARRIER)
        m.d.comb += [
            self.o.payload.eq(merged.body),
            self.o.valid.eq(gate.o.valid & passes),
            gate.o.ready.eq(self.o.ready | ~passes),
        ]
        return m

# SPDX-License-Identifier: Apache-2.0
"""What a ScaleGate says of time, in words of the accelerator behind it."""

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hdl.comparison.order import is_below
from hdl.families.choice import family_of
from hdl.scalegate.words import GateKind, gate_word

__all__ = ["SpokenWatermarks"]


class SpokenWatermarks(wiring.Component):
    """Turn the words of a ScaleGate into input words of an accelerator that takes watermarks.

    A tuple and a control word go on as they are. What the gate says of watermarks, and what
    :class:`hdl.shells.kept_watermark.KeptWatermark` has put among the tuples, become words that say
    a watermark. In front of a late tuple comes a watermark of its place, so whether the accelerator
    still takes the tuple does not depend on the timing.

    Time is forgotten by the control word that lets the accelerator forget it, and by no other one.
    A tuple is *late* if it is below what has been reached since then, also if a barrier has let the
    gate begin again at zero.

    ``o`` depends on ``i`` in the same cycle.

    Latency: 0 cycles. Throughput: 1 word per cycle; a late tuple takes two.

    Parameters
    ----------
    parameters : AggregateParameters
        Parameters of the accelerator.
    sources : int
        Sources of the gate.

    Members
    -------
    i : In(stream.Signature(gate_word(family.time_bits, family.input_word, sources=sources)))
    o : Out(stream.Signature(family.input_word))
    late : Out(sources)
        A source has sent a late tuple; high for one cycle, from registers.
    """

    def __init__(self, parameters, *, sources):
        self.parameters = parameters
        self.sources = sources
        self.latency = 0
        self._family = family = family_of(parameters)
        layout = gate_word(family.time_bits, family.input_word, sources=sources)
        super().__init__(
            {
                "i": In(stream.Signature(layout)),
                "o": Out(stream.Signature(family.input_word)),
                "late": Out(sources),
            }
        )

    def elaborate(self, platform):
        m = Module()
        family, word, o = self._family, self.i.payload, self.o
        told = Signal()  # the watermark in front of a late tuple has gone on
        is_tuple, speaks, ends = Signal(), Signal(), Signal()
        late_first = Signal()  # a late tuple waits for that watermark
        taken = self.i.valid & self.i.ready
        m.d.comb += [
            is_tuple.eq((word.kind == GateKind.TUPLE) & ~family.is_control(word.body)),
            late_first.eq(is_tuple & word.late & ~told),
            speaks.eq(
                late_first
                | (word.kind == GateKind.WATERMARK)
                | ((word.kind == GateKind.TUPLE) & ~is_tuple)
            ),
            ends.eq(word.kind == GateKind.LEAVE),
            o.valid.eq(self.i.valid & ~ends),
            self.i.ready.eq(ends | (o.ready & ~late_first)),
        ]
        with m.If(speaks):
            m.d.comb += family.say_watermark(o.payload, word.time)
        with m.Else():
            m.d.comb += o.payload.eq(word.body)
        with m.If(o.valid & o.ready):
            m.d.sync += told.eq(late_first)
        self.elaborate_late(m, word, taken, is_tuple)
        return m

    def elaborate_late(self, m, word, taken, is_tuple):
        """Remember what has been reached, and tell of the source of a tuple below it."""
        reached, below = Signal.like(word.time), Signal()
        m.d.comb += below.eq(is_below(m, word.time, reached))
        with m.If(taken):
            with m.Switch(word.kind):
                with m.Case(GateKind.TUPLE, GateKind.WATERMARK):
                    with m.If(~below):
                        m.d.sync += reached.eq(word.time)
                with m.Case(GateKind.BARRIER):
                    with m.If(self._family.forgets_time(word.body.body.control)):
                        m.d.sync += reached.eq(0)
        late = taken & is_tuple & (word.late | below)
        m.d.sync += self.late.eq(
            late.replicate(self.sources) & Cat(word.source == n for n in range(self.sources))
        )

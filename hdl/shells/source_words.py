# SPDX-License-Identifier: Apache-2.0
"""What the words of one input of a shell say to the ScaleGate that merges the inputs."""

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hdl.families.choice import family_of
from hdl.scalegate.words import GateKind, source_word
from hdl.words.operands import clamped_time

__all__ = ["SourceWords"]


class SourceWords(wiring.Component):
    """Turn the words of an input into words of a source of a ScaleGate.

    A tuple goes on with its timestamp. A control word of the accelerator becomes a barrier, so it
    waits until all other inputs bring the same one. Control words that are meant for the merge are
    orders (:meth:`hdl.families.family.Family.is_order`): a watermark and a departure go on as such,
    and an order to exclude an input, or one that does not exist, ends here. A watermark below all
    times says nothing, and one beyond them stands for the last time.

    ``wrong`` tells of a tuple of another side, of an order that does not exist, and of one to
    exclude an input that does not exist. A tuple of the wrong side goes on all the same.

    ``o`` depends on ``i`` in the same cycle.

    Latency: 0 cycles. Throughput: 1 word per cycle.

    Parameters
    ----------
    parameters : JoinParameters or AggregateParameters
        Parameters of the accelerator, which has timestamps and one tuple in a word.
    sides : sequence of int
        Side whose tuples come at each input (:class:`hdl.families.family.InputNames`).
    number : int
        Number of this input.

    Members
    -------
    i : In(stream.Signature(family.input_word))
    o : Out(stream.Signature(source_word(family.time_bits, family.input_word)))
    exclude : Out(len(sides))
        The inputs that are to be excluded; high for one cycle.
    wrong : Out(1)
        High for one cycle.
    """

    def __init__(self, parameters, *, sides, number):
        self.parameters = parameters
        self.sides = tuple(sides)
        self.number = number
        self.latency = 0
        self._family = family_of(parameters)
        layout = self._family.input_word
        super().__init__(
            {
                "i": In(stream.Signature(layout)),
                "o": Out(stream.Signature(source_word(self._family.time_bits, layout))),
                "exclude": Out(len(self.sides)),
                "wrong": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        family, word, control = self._family, self.i.payload, self.i.payload.body.control
        leaves, names_input = family.leaves(control), family.excludes(control)
        taken = Signal()  # the word ends here
        is_control, is_order, known, excludes = Signal(), Signal(), Signal(), Signal()
        m.d.comb += [
            is_control.eq(family.is_control(word)),
            is_order.eq(is_control & family.is_order(control)),
            known.eq(family.is_known(control)),
            taken.eq(is_order & (names_input | ~known)),
            self.o.valid.eq(self.i.valid & ~taken),
            self.i.ready.eq(self.o.ready | taken),
            self.o.payload.body.eq(word),
            self.o.payload.time.eq(word.body.tuple.timestamp),
            excludes.eq(self.i.valid & is_order & names_input),
            self.exclude.eq(self.named(control.value) & excludes.replicate(len(self.sides))),
        ]
        with m.If(is_order):
            m.d.comb += [
                self.o.payload.kind.eq(Mux(leaves, GateKind.LEAVE, GateKind.WATERMARK)),
                self.o.payload.time.eq(clamped_time(control.value, self._family.time_bits)),
            ]
        with m.Elif(is_control):
            m.d.comb += self.o.payload.kind.eq(GateKind.BARRIER)
        with m.Else():
            m.d.comb += self.o.payload.kind.eq(GateKind.TUPLE)
        other = ~is_control & (word.kind.as_value() != self.sides[self.number])
        nobody = excludes & ~self.named(control.value).any()
        m.d.comb += self.wrong.eq(
            self.i.valid & self.i.ready & (other | (is_order & ~known) | nobody)
        )
        return m

    def named(self, value):
        """Return a bit for each input, of which the one that ``value`` names is set.

        Of one input for each side, it is the other one, whatever the value.
        """
        if self.sides == (0, 1):
            return C(1 << (1 - self.number), 2)
        return Cat(value == n for n in range(len(self.sides)))

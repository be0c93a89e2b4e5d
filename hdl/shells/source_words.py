# SPDX-License-Identifier: Apache-2.0
"""What the words of one input of a shell say to the ScaleGate that merges the inputs."""

from amaranth import *
from amaranth.lib import enum, stream, wiring
from amaranth.lib.wiring import In, Out

from hdl.scalegate.words import GateKind, source_word
from hdl.words.inputs import InputKind, input_word

__all__ = ["SOURCE_OPERATION", "SourceOrder", "SourceWords"]

#: Operation of a control word that is meant for the merge of the inputs, not for the accelerator,
#: which has no operation of this number.
SOURCE_OPERATION = 15


class SourceOrder(enum.Enum, shape=2):
    """What such a control word says, by its index."""

    #: This input sends no tuple below ``value`` any more.
    WATERMARK = 0
    #: This input leaves, and comes back with its next word.
    LEAVE = 1
    #: Another input is excluded if it stalls: of two inputs the other one, of more inputs the one
    #: with the number ``value``.
    EXCLUDE = 2


class SourceWords(wiring.Component):
    """Turn input words of one side into words of a source of a ScaleGate.

    A tuple goes on with its timestamp. A control word of the accelerator becomes a barrier, so it
    waits until all other inputs bring the same one. Control words of :data:`SOURCE_OPERATION` are
    taken here; one with an index that is no :class:`SourceOrder` is dropped.

    ``wrong`` tells of a word of another side, of such an index, or of an order to exclude an input
    that does not exist. A tuple of the wrong side goes on all the same.

    ``o`` depends on ``i`` in the same cycle.

    Latency: 0 cycles. Throughput: 1 word per cycle.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator, which has timestamps and one tuple in a word.
    sides : sequence of int
        Side whose tuples come at each input: 0 for R, 1 for S.
    number : int
        Number of this input.

    Members
    -------
    i : In(stream.Signature(input_word(parameters)))
    o : Out(stream.Signature(source_word(timestamp_bits, input_word(parameters))))
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
        layout = input_word(parameters)
        super().__init__(
            {
                "i": In(stream.Signature(layout)),
                "o": Out(stream.Signature(source_word(parameters.timestamp_bits, layout))),
                "exclude": Out(len(self.sides)),
                "wrong": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        word, control = self.i.payload, self.i.payload.body.control
        taken = Signal()  # the word ends here
        is_control, is_order, known, excludes = Signal(), Signal(), Signal(), Signal()
        m.d.comb += [
            is_control.eq(word.kind == InputKind.CONTROL),
            is_order.eq(is_control & (control.op.as_value() == SOURCE_OPERATION)),
            known.eq(control.index <= SourceOrder.EXCLUDE.value),
            taken.eq(is_order & ((control.index == SourceOrder.EXCLUDE.value) | ~known)),
            self.o.valid.eq(self.i.valid & ~taken),
            self.i.ready.eq(self.o.ready | taken),
            self.o.payload.body.eq(word),
            self.o.payload.time.eq(word.body.tuple.timestamp),
            excludes.eq(self.i.valid & is_order & (control.index == SourceOrder.EXCLUDE.value)),
            self.exclude.eq(self.named(control.value) & excludes.replicate(len(self.sides))),
        ]
        with m.If(is_order):
            m.d.comb += [
                self.o.payload.kind.eq(
                    Mux(
                        control.index == SourceOrder.LEAVE.value,
                        GateKind.LEAVE,
                        GateKind.WATERMARK,
                    )
                ),
                self.o.payload.time.eq(control.value),
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
        """Return a bit for each input, of which the one that ``value`` names is set."""
        if len(self.sides) == 2:
            return C(1 << (1 - self.number), 2)
        return Cat(value == n for n in range(len(self.sides)))

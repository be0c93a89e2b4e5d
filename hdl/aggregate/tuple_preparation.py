# SPDX-License-Identifier: Apache-2.0
"""What the cores need of a tuple: its keys' places, and what it contributes to each reduction."""

from amaranth import *
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.utils import ceil_log2

from hdl.streams.registers import StreamRegister
from hdl.windowed.expression import lower

from .reductions import lifted_value
from .words import AggregateControl, AggregateKind, aggregate_word, core_tuple, lifted_layout

__all__ = ["TuplePreparation", "prepared_word"]


def keyed_layout(parameters):
    """Return the layout of a tuple with its keys as numbers, which differ where ``has`` is set."""
    count = parameters.tuple_keys
    return data.StructLayout(
        {
            "has": count,
            "keys": data.ArrayLayout(unsigned(parameters.key_bits), count),
            "lifted": lifted_layout(parameters),
        }
    )


def staged_word(parameters, tuple_layout):
    """Return the layout of a word between two stages, with a tuple of that layout.

    ``time`` is the time of a tuple, or the operand of a control word.
    """
    return data.StructLayout(
        {
            "kind": AggregateKind,
            "op": AggregateControl,
            "time": unsigned(parameters.timestamp_bits + 1),
            "tuple": tuple_layout,
        }
    )


def prepared_word(parameters):
    """Return the layout of a prepared word.

    ``exceeds``: a key of the tuple is beyond the capacity; ``key`` is the first such key.
    """
    placed = {name: field.shape for name, field in core_tuple(parameters)}
    beyond = {"exceeds": 1, "key": unsigned(parameters.key_bits)}
    return staged_word(parameters, data.StructLayout({**placed, **beyond}))


class TuplePreparation(wiring.Component):
    """Evaluate the operator's expressions of a tuple, and find the core and row of each key.

    The number of a key is that of the bits of its parts, the first part lowest. If two keys of a
    tuple are equal, the later one is left out: the keys of a tuple are a set.

    Key ``k`` is in row ``k // cores`` of core ``k % cores``. If ``cores`` is no power of two, the
    quotient is the upper part of a product with the rounded-up reciprocal, which is exact for keys
    of this width.

    Latency: :attr:`latency` cycles. Throughput: 1 word per cycle.

    Parameters
    ----------
    parameters : AggregateParameters
        Parameters of the accelerator.

    Members
    -------
    i : In(stream.Signature(aggregate_word(parameters)))
    o : Out(stream.Signature(prepared_word(parameters)))
    """

    def __init__(self, parameters):
        self.parameters = parameters
        self.latency = 3
        super().__init__(
            {
                "i": In(stream.Signature(aggregate_word(parameters))),
                "o": Out(stream.Signature(prepared_word(parameters))),
            }
        )

    def elaborate(self, platform):
        m = Module()
        parameters = self.parameters
        m.submodules.arrival = arrival = StreamRegister(aggregate_word(parameters))
        m.submodules.keyed = keyed = StreamRegister(
            staged_word(parameters, keyed_layout(parameters))
        )
        m.submodules.placed = placed = StreamRegister(prepared_word(parameters))
        connect(m, flipped(self.i), arrival.i)
        connect(m, placed.o, flipped(self.o))
        for here, there in ((arrival.o, keyed.i), (keyed.o, placed.i)):
            m.d.comb += [there.valid.eq(here.valid), here.ready.eq(there.ready)]
        self.elaborate_expressions(m, arrival.o.payload, keyed.i.payload)
        self.elaborate_places(m, keyed.o.payload, placed.i.payload)
        return m

    def elaborate_expressions(self, m, word, keyed):
        """Evaluate the expressions of a tuple."""
        operator, body = self.parameters.operator, word.body
        fields = {field.name: body.tuple[field.name] for field in operator.fields}
        fields["timestamp"] = body.tuple.timestamp
        is_tuple = word.kind == AggregateKind.TUPLE
        m.d.comb += [
            keyed.kind.eq(word.kind),
            keyed.op.eq(body.control.op),
            keyed.time.eq(Mux(is_tuple, body.tuple.timestamp, body.control.value)),
        ]
        for rule in operator.reductions:
            m.d.comb += keyed.tuple.lifted[rule.name].eq(lifted_value(rule, fields))
        if not operator.keys:
            m.d.comb += keyed.tuple.has.eq(1)
        earlier = []
        for n, key in enumerate(operator.keys):
            parts = [
                Signal(field.bits, name=f"key_{n}_{field.name}") for field in operator.key_fields
            ]
            m.d.comb += [
                part.eq(lower(text, fields)) for part, text in zip(parts, key.parts, strict=True)
            ]
            number = Cat(parts)
            has = Const(1, 1) if key.when is None else lower(key.when, fields) != 0
            again = [known & (number == other) for known, other in earlier]
            m.d.comb += [
                keyed.tuple["keys"][n].eq(number),
                keyed.tuple.has[n].eq(has & ~Cat(again).any()),
            ]
            earlier.append((has, number))

    def elaborate_places(self, m, keyed, placed):
        """Find the core and row of every key."""
        m.d.comb += [
            placed.kind.eq(keyed.kind),
            placed.op.eq(keyed.op),
            placed.time.eq(keyed.time),
            placed.tuple.lifted.eq(keyed.tuple.lifted),
        ]
        for n in reversed(range(self.parameters.tuple_keys)):
            key, target = keyed.tuple["keys"][n], placed.tuple.targets[n]
            beyond = key >= self.parameters.keys
            core, row = self.place(m, key, n)
            m.d.comb += [
                target.valid.eq(keyed.tuple.has[n] & ~beyond),
                target.core.eq(core),
                target.row.eq(row),
            ]
            with m.If(keyed.tuple.has[n] & beyond):
                m.d.comb += [placed.tuple.exceeds.eq(1), placed.tuple.key.eq(key)]

    def place(self, m, key, n):
        """Return the core and the row of a key."""
        cores = self.parameters.cores
        digit = ceil_log2(cores)
        if cores == 1 << digit:
            return key[:digit], key[digit:]
        shift = len(key) + digit
        row = Signal(len(key), name=f"quotient_{n}")
        m.d.comb += row.eq((key * Const(-(-(1 << shift) // cores)))[shift:])
        return (key - row * cores)[:digit], row

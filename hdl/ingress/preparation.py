# SPDX-License-Identifier: Apache-2.0
"""Prepares a tuple once for all regions: its criterion as a probe, its key as it is stored."""

from amaranth import *
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hdl.comparison.comparator import packed
from hdl.comparison.digest import split_key
from hdl.streams.steady import SteadyRegister, steady
from hdl.words.cells import has_cells
from hdl.words.inputs import InputKind, bound_shape
from hdl.words.operands import limit_value, saturated
from hdl.words.prepared import (
    comparison_groups,
    criterion_layout,
    decision_members,
    is_own_criterion,
    region_word,
    scheduled_word,
    stored_layout,
)

__all__ = ["ProbePreparation"]


class ProbePreparation(wiring.Component):
    """Turn the key of every tuple into the criterion that stored keys are compared with.

    For a band, ``low <= r - s <= high`` becomes a range of stored keys: ``r - high .. r - low`` for
    a probe of R, ``s + low .. s + high`` for a probe of S, clamped to the field. A range that lies
    outside the field becomes a range that contains no key. The range and the key as it is stored
    are unsigned (see :func:`hdl.words.prepared.stored_layout`), so clamping depends on two bits
    only.

    The bounds are registers, open after reset and set by the control words that pass. The word
    itself says which bounds it sets (:func:`hdl.words.operands.bounds_set`).

    For other comparators, the criterion is the key as it is, or its digest and its rest. The
    digests of a band are left to :class:`hdl.ingress.digest_preparation.DigestPreparation`.

    A value that is out of the range of its operation is clamped, so that no region has to check it.
    The word itself says which limit is exceeded (:func:`hdl.words.operands.value_limits`).

    Latency: 3 cycles: to add the bounds, to locate the range, to clamp it. Throughput: 1 word per
    cycle.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator.

    Members
    -------
    i : In(steady(scheduled_word(parameters)))
    o : Out(steady(region_word(parameters)))
    """

    def __init__(self, parameters):
        self.parameters = parameters
        self.latency = 3
        super().__init__(
            {
                "i": In(steady(scheduled_word(parameters))),
                "o": Out(steady(region_word(parameters))),
            }
        )

    def elaborate(self, platform):
        m = Module()
        bands = self.parameters.keys if self.parameters.comparator == "band" else ()
        sums = data.StructLayout(
            {
                field.name: data.StructLayout(
                    {"first": signed(field.bits + 2), "final": signed(field.bits + 2)}
                )
                for field in bands
            }
        )
        places = data.StructLayout(
            {
                field.name: data.StructLayout(dict.fromkeys(("low", "high", "nothing"), 1))
                for field in bands
            }
        )
        added = {"scheduled": scheduled_word(self.parameters), "sums": sums}
        gated = bool(bands) and self.parameters.engine == "index"
        m.submodules.sums = first = SteadyRegister(data.StructLayout(added), gated=gated)
        m.submodules.places = second = SteadyRegister(
            data.StructLayout({**added, "places": places}), gated=gated
        )
        m.submodules.output = output = SteadyRegister(region_word(self.parameters), gated=gated)
        connect(m, output.o, flipped(self.o))
        m.d.comb += [
            first.i.valid.eq(self.i.valid),
            first.i.payload.scheduled.eq(self.i.payload),
            second.i.valid.eq(first.o.valid),
            second.i.payload.scheduled.eq(first.o.payload.scheduled),
            second.i.payload.sums.eq(first.o.payload.sums),
            output.i.valid.eq(second.o.valid),
        ]
        limit_value(m, self.parameters, first.i.payload.scheduled)
        for field in bands:
            self.elaborate_sums(m, field, first.i.payload.sums[field.name])
            place_range(
                m, field, first.o.payload.sums[field.name], second.i.payload.places[field.name]
            )
        criterion = key = second.o.payload.scheduled.word.body.tuple.key
        stored = Signal(stored_layout(self.parameters))
        m.d.comb += [
            stored[name].eq(part) for name, part in stored_parts(self.parameters, key).items()
        ]
        if bands:
            criterion = self.elaborate_ranges(m, second.o.payload.sums, second.o.payload.places)
        elif self.parameters.digest_bits is not None:
            criterion = stored
        self.elaborate_word(m, second.o.payload.scheduled, stored, criterion, output.i.payload)
        return m

    def elaborate_sums(self, m, field, sums):
        """Keep the bounds of a field; add them to keys of S, subtract them from keys of R."""
        word = self.i.payload.word
        shape = bound_shape(field)
        low = Signal(shape, init=-(1 << field.bits), name=f"{field.name}_low")
        high = Signal(shape, init=(1 << field.bits) - 1, name=f"{field.name}_high")
        for end, bound in (("low", low), ("high", high)):
            with m.If(self.i.valid & self.i.payload.bounds[field.name][end]):
                m.d.sync += bound.eq(saturated(word.body.control.value, shape.width))
        key = unsigned_key(field, word.body.tuple.key[field.name])
        of_r = ~Value.cast(word.kind)[0]  # or a control word, whose sums are not used
        for name, of_probe_r, of_probe_s in (("first", high, low), ("final", low, high)):
            # A subtraction is one carry chain: add the complement, and a carry from an extra bit
            # below.
            operand = Mux(of_r, ~of_probe_r, of_probe_s).as_signed()
            m.d.comb += sums[name].eq(
                (Cat(1, key, 0).as_signed() + Cat(of_r, operand).as_signed()) >> 1
            )

    def elaborate_word(self, m, scheduled, key, criterion, prepared):
        """Assemble the prepared word."""
        word = scheduled.word
        m.d.comb += prepared.kind.eq(word.kind)
        for name in decision_members(self.parameters):
            m.d.comb += prepared[name].eq(scheduled[name])
        with m.If(word.kind == InputKind.CONTROL):
            m.d.comb += prepared.body.control.eq(word.body.control)
        with m.Else():
            m.d.comb += prepared.body.tuple.timestamp.eq(word.body.tuple.timestamp)
            if not is_own_criterion(self.parameters):
                m.d.comb += prepared.body.tuple.criterion.eq(criterion)
            m.d.comb += prepared.body.tuple.key.eq(key)
            if self.parameters.is_aggregated:
                m.d.comb += prepared.body.tuple.value.eq(word.body.tuple.value)

    def elaborate_ranges(self, m, sums, places):
        """Clamp the ranges of stored keys to their fields; return them as a criterion."""
        criterion = Signal(criterion_layout(self.parameters))
        stored = stored_layout(self.parameters)
        ranges = Signal(data.StructLayout({"low": stored, "high": stored}))
        for field in self.parameters.keys:
            first, final = sums[field.name].first, sums[field.name].final
            place = places[field.name]
            most = (1 << field.bits) - 1
            m.d.comb += [
                ranges.low[field.name].eq(Mux(place.nothing, most, Mux(place.low, 0, first))),
                ranges.high[field.name].eq(Mux(place.nothing, 0, Mux(place.high, most, final))),
            ]
        for n, group in enumerate(comparison_groups(self.parameters)):
            m.d.comb += [
                criterion[f"low_{n}"].eq(packed(group, ranges.low, guard=0)),
                criterion[f"high_{n}"].eq(packed(group, ranges.high, guard=1)),
            ]
        return criterion


def place_range(m, field, sums, place):
    """Say whether a range begins below its field, ends above it, or lies outside of it."""
    below = sums.final < 0
    above = ~(sums.first < 0) & sums.first[field.bits]
    m.d.comb += [
        place.low.eq(sums.first < 0),
        place.high.eq(~(sums.final < 0) & sums.final[field.bits]),
        place.nothing.eq(below | above),
    ]


def stored_parts(parameters, key):
    """Return the parts of a key as regions store it, by the names in their layout."""
    if parameters.digest_bits is not None and not has_cells(parameters):
        digest, rest = split_key(Value.cast(key), parameters.digest_bits)
        return {"digest": digest, "rest": rest}
    if parameters.comparator == "band":
        return {field.name: unsigned_key(field, key[field.name]) for field in parameters.keys}
    return {field.name: key[field.name] for field in parameters.keys}


def unsigned_key(field, key):
    """Return ``key`` without its sign: the least value of the field becomes zero."""
    sign = 1 << field.bits - 1 if field.signed else 0
    return (Value.cast(key) ^ sign)[: field.bits]

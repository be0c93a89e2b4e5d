# SPDX-License-Identifier: Apache-2.0
"""Tuples prepared for comparison and lookup."""

from itertools import pairwise

from amaranth import *
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hdl.predicates.band import comparison_groups, packed, unsigned_key
from hdl.streams.registers import SteadyQueue, SteadyRegister, delayed, steady
from hdl.words.inputs import InputKind, bound_shape
from hdl.words.operands import limit_value, saturated
from hdl.words.prepared import (
    criterion_layout,
    decision_members,
    is_own_criterion,
    region_word,
    scheduled_word,
    stored_layout,
)

__all__ = ["ProbePreparation", "WordPreparation"]


class ProbePreparation(wiring.Component):
    """Turn the key of every tuple into the criterion that stored keys are compared with.

    For a band, ``low <= r - s <= high`` becomes a range of stored keys: ``r - high .. r - low`` for
    a probe of R, ``s + low .. s + high`` for a probe of S, clamped to the field. A range that lies
    outside the field becomes a range that contains no key. The range and the key as it is stored
    are unsigned (see :class:`hdl.predicates.band.Band`), so clamping depends on two bits
    only.

    The bounds are registers, open after reset and set by the control words that pass. The word
    itself says which bounds it sets (:func:`hdl.words.operands.bounds_set`).

    For other comparators, the criterion is the key as it is, or its digest and its rest. The
    digests of a band are left to :class:`hdl.predicates.cells.DigestPreparation`.

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
        bands = self.parameters.bounded
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
        gated = visits_cells(self.parameters)
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
            stored[name].eq(part)
            for name, part in self.parameters.rule.stored(self.parameters, key).items()
        ]
        if bands:
            criterion = self.elaborate_ranges(m, second.o.payload.sums, second.o.payload.places)
        elif self.parameters.engine.digest_bits is not None:
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
            for name in self.parameters.engine.beside(self.parameters):
                m.d.comb += prepared.body.tuple[name].eq(word.body.tuple[name])

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


#: Sides of the two lanes, by their names in a word of two tuples.
LANES = {"r": InputKind.R, "s": InputKind.S}


class WordPreparation(wiring.Component):
    """Prepare tuples in a steady pipeline, with a queue at its end.

    If ``parameters.side_by_side``, there is one lane for tuples of R and one for tuples of S. A
    lane prepares a tuple in every word, whether the word holds one or not, and receives every
    control word. Beside the lanes, delay registers carry which tuples the word holds and which one
    comes first.

    Latency: :attr:`latency` cycles, those of a lane and 1 of the queue. Throughput: 1 word per
    cycle.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator.

    Members
    -------
    i : In(stream.Signature(scheduled_word(parameters)))
        If ``parameters.side_by_side``, a tuple of S is in ``both.s`` even if it is the only one.
        ``ready`` comes from a register.
    o : Out(stream.Signature(region_word(parameters)))
    """

    def __init__(self, parameters):
        self.parameters = parameters
        names = LANES if parameters.side_by_side else [""]
        self._lanes = {name: lane_stages(parameters.lane) for name in names}
        self.stages = sum(stage.latency for stage in next(iter(self._lanes.values())).values())
        self.latency = self.stages + 1
        super().__init__(
            {
                "i": In(stream.Signature(scheduled_word(parameters))),
                "o": Out(stream.Signature(region_word(parameters))),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.queue = queue = SteadyQueue(self.o.payload.shape(), stages=self.stages)
        connect(m, queue.o, flipped(self.o))
        enter = self.i.valid & self.i.ready
        lanes = {name: self.elaborate_lane(m, name) for name in self._lanes}
        m.d.comb += [
            self.i.ready.eq(queue.room),
            *(first.valid.eq(enter) for first, _ in lanes.values()),
        ]
        if self.parameters.side_by_side:
            self.elaborate_pair(m, lanes, queue.i)
            return m
        ((first, last),) = lanes.values()
        m.d.comb += [
            first.payload.eq(self.i.payload),
            queue.i.valid.eq(last.valid),
            queue.i.payload.eq(last.payload),
        ]
        return m

    def elaborate_lane(self, m, name):
        """Connect the stages of a lane in series; return its input and its output."""
        for label, stage in self._lanes[name].items():
            m.submodules[f"{label}_{name}" if name else label] = stage
        stages = list(self._lanes[name].values())
        for before, after in pairwise(stages):
            connect(m, before.o, after.i)
        return stages[0].i, stages[-1].o

    def elaborate_pair(self, m, lanes, word):
        """Lead the tuples of a word into the lanes of their sides, and join the lanes again."""
        scheduled = self.i.payload
        is_control = scheduled.word.kind == InputKind.CONTROL
        for side, (first, _) in lanes.items():
            lane = first.payload
            m.d.comb += [
                lane.word.kind.eq(Mux(is_control, InputKind.CONTROL, LANES[side])),
                lane.bounds.eq(scheduled.bounds),
                lane.limits.eq(scheduled.limits),
                *(lane[name].eq(scheduled[name]) for name in decision_members(self.parameters)),
                lane.word.body.tuple.eq(scheduled.word.body.both[side]),
            ]
            with m.If(is_control):
                m.d.comb += lane.word.body.control.eq(scheduled.word.body.control)
        r, s = (last for _, last in lanes.values())
        beside = self.elaborate_beside(m)
        prepared = word.payload
        m.d.comb += [
            word.valid.eq(r.valid),
            prepared.kind.as_value().eq(beside["kind"]),
            prepared.first.eq(beside["first"]),
            *(prepared[name].eq(r.payload[name]) for name in decision_members(self.parameters)),
            prepared.body.both.r.eq(r.payload.body.tuple),
            prepared.body.both.s.eq(s.payload.body.tuple),
        ]
        with m.If(prepared.kind == InputKind.CONTROL):
            m.d.comb += prepared.body.control.eq(r.payload.body.control)

    def elaborate_beside(self, m):
        """Delay what the lanes do not carry of a word.

        Return it as it is when the word is at the outputs of the lanes.
        """
        word = self.i.payload.word
        beside = {"kind": Value.cast(word.kind), "first": word.first}
        for n in range(self.stages):
            beside = delayed(m, beside, f"beside_{n}", flags=())
        return beside


def lane_stages(parameters):
    """Return the components that prepare a tuple, in order, by name.

    Where probes visit cells, these take most of the chip. A register at the entrance then
    separates them from the logic that decides about a word.
    """
    stages = {
        "preparation": ProbePreparation(parameters),
        **parameters.rule.preparation(parameters),
        **parameters.engine.preparation(parameters),
    }
    if visits_cells(parameters):
        return {"arrival": SteadyRegister(scheduled_word(parameters), gated=True), **stages}
    return stages


def visits_cells(parameters):
    """Return whether a probe visits the cells that its ranges touch."""
    found = parameters.engine.prepared_members(parameters).get("cells")
    return found is not None and found.size > 0

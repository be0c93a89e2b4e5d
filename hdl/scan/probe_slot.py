# SPDX-License-Identifier: Apache-2.0
"""Slot for one probe in a scanner: its span, its criterion, and a comparator per lane."""

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.predicates.rule import Comparator
from hdl.words.prepared import criterion_layout, pointer_layout, span_layout, stored_layout

from .layouts import row_layout
from .ring import KeyRing

__all__ = ["ProbeSlot", "SpanMask"]


class SpanMask(wiring.Component):
    """Lane mask: which lanes of a row lie inside a span.

    Rows are presented in ring order, from the tail of the first probe to the head of the last. So
    two equality comparisons and one bit of state replace magnitude comparisons modulo the ring.
    Rows between the last tail and the first head do not change the mask and need not be presented.

    Latency: 2 cycles from ``row`` to ``lanes``, as for a :class:`hdl.scan.ring.KeyRing`.
    Throughput: 1 row per cycle.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator.

    Members
    -------
    load : In(1)
        Take ``span`` and ``used``, for the rows from the next cycle on.
    span : In
    used : In(1)
        The slot has a probe in this pass; otherwise no lane is inside.
    present : In(1)
        ``row`` is a row of the pass that can change the mask.
    presented : In(1)
        ``present``, delayed by one cycle.
    first : In(1)
        The row presented a cycle ago was the first row of the pass.
    row : In
        Row that is read, with wrap bit.
    lanes : Out(lanes)
        Lanes inside the span; unchanged until another row is presented.
    """

    def __init__(self, parameters):
        self.parameters = parameters
        self.latency = KeyRing.LATENCY
        super().__init__(
            {
                "load": In(1),
                "span": In(span_layout(parameters)),
                "used": In(1),
                "present": In(1),
                "presented": In(1),
                "first": In(1),
                "row": In(pointer_layout(parameters)["row"].shape),
                "lanes": Out(parameters.engine.lanes),
            }
        )

    def elaborate(self, platform):
        m = Module()
        tail = Signal.like(self.span.tail, reset_less=True)
        head = Signal.like(self.span.head, reset_less=True)
        used = Signal(reset_less=True)
        with m.If(self.load):
            m.d.sync += [tail.eq(self.span.tail), head.eq(self.span.head), used.eq(self.used)]

        # First cycle: is this the row of the tail, or of the head?
        at_tail, at_head = Signal(reset_less=True), Signal(reset_less=True)
        tail_lane = Signal.like(tail.lane, reset_less=True)
        head_lane = Signal.like(head.lane, reset_less=True)
        with m.If(self.present):
            m.d.sync += [
                at_tail.eq(used & (self.row == tail.row)),
                at_head.eq(self.row == head.row),
                tail_lane.eq(tail.lane),
                head_lane.eq(head.lane),
            ]
        # Second cycle: which lanes are inside? The last lane's bit tells whether the tail has been
        # passed and the head has not been reached.
        lanes = Signal.like(self.lanes, reset_less=True)
        m.d.comb += self.lanes.eq(lanes)
        within = lanes[-1] & ~self.first
        with m.If(self.presented):
            for lane in range(self.parameters.engine.lanes):
                begun = within | (at_tail & (tail_lane <= lane))
                ended = at_head & (head_lane <= lane)
                m.d.sync += lanes[lane].eq(begun & ~ended)
        return m


class ProbeSlot(wiring.Component):
    """Hold a probe while its group fills, then compare it with every key of its span.

    The next probe may wait in the slot while the current one is compared.

    Latency: 4 cycles from presenting a row to its ``matches``: those of the key ring, and 2 for the
    comparison, more if a predicate of one's own takes more than one (:attr:`waits`). Throughput:
    ``lanes`` keys per cycle.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator.
    probe_side : int
        Side of the probes, 0 for R and 1 for S.

    Members
    -------
    add : In(1)
        Hold ``span`` and ``criterion`` as those of the next probe.
    span, criterion : In
    begin : In(1)
        A pass begins with the next row; the waiting probe takes part if ``used`` is high.
    used : In(1)
    begin_keys : In(1)
        ``begin``, delayed by the latency of the key ring. The waiting probe stays unchanged until
        then.
    present, presented, first, row : In
        Inputs of the :class:`SpanMask`.
    masked : In(1)
        ``presented``, delayed by one cycle.
    compare : In(1)
        ``keys`` held a row of the pass as many cycles ago as its comparison takes.
    keys : In
    matches : Out(lanes)
        Lanes whose key matches the probe and lies inside its span.
    mask : Out(lanes)
        Lanes of ``keys`` that lie inside the probe's span.
    """

    def __init__(self, parameters, *, probe_side):
        self.parameters = parameters
        self.probe_side = probe_side
        self._comparators = [
            Comparator(parameters, probe_side=probe_side) for _ in range(parameters.engine.lanes)
        ]
        #: Cycles that a comparison takes beyond the first.
        self.waits = self._comparators[0].latency - 1
        self.latency = KeyRing.LATENCY + 1 + self.waits + 1
        super().__init__(
            {
                "add": In(1),
                "span": In(span_layout(parameters)),
                "criterion": In(criterion_layout(parameters)),
                "begin": In(1),
                "used": In(1),
                "begin_keys": In(1),
                "present": In(1),
                "presented": In(1),
                "first": In(1),
                "row": In(pointer_layout(parameters)["row"].shape),
                "masked": In(1),
                "compare": In(1),
                "keys": In(row_layout(parameters, stored_layout(parameters))),
                "matches": Out(parameters.engine.lanes),
                "mask": Out(parameters.engine.lanes),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.mask = mask = SpanMask(self.parameters)
        next_span = Signal.like(self.span, reset_less=True)
        with m.If(self.add):
            m.d.sync += next_span.eq(self.span)
        m.d.comb += [
            mask.load.eq(self.begin),
            mask.span.eq(next_span),
            mask.used.eq(self.used),
            mask.present.eq(self.present),
            mask.presented.eq(self.presented),
            mask.first.eq(self.first),
            mask.row.eq(self.row),
            self.mask.eq(mask.lanes),
        ]
        criterion = self.elaborate_criterion(m)
        masked = Signal.like(self.mask, reset_less=True)  # of the keys compared a cycle ago
        with m.If(self.masked):
            m.d.sync += masked.eq(mask.lanes)
        for cycle in range(self.waits):
            waited = Signal.like(masked, name=f"masked_{cycle + 1}")
            m.d.sync += waited.eq(masked)
            masked = waited
        for lane, comparator in enumerate(self._comparators):
            m.submodules[f"comparator_{lane}"] = comparator
            m.d.comb += [
                comparator.key.eq(self.keys[lane]),
                *(getattr(comparator.criterion, name).eq(part) for name, part in criterion.items()),
            ]
        matches = Signal.like(self.matches, reset_less=True)
        m.d.comb += self.matches.eq(matches)
        with m.If(self.compare):
            found = Cat(comparator.match for comparator in self._comparators)
            m.d.sync += matches.eq(found & masked)
        return m

    def elaborate_criterion(self, m):
        """Hold the waiting criterion and the current one, each part in a register of its own.

        The simulator would cut one wide register into pieces in every cycle.
        """
        parts = {}
        for name, field in criterion_layout(self.parameters):
            waiting = Signal(field.shape, name=f"next_{name}", reset_less=True)
            parts[name] = Signal(field.shape, name=name, reset_less=True)
            with m.If(self.add):
                m.d.sync += waiting.eq(self.criterion[name])
            with m.If(self.begin_keys):
                m.d.sync += parts[name].eq(waiting)
        return parts

# SPDX-License-Identifier: Apache-2.0
"""Scan: compares every key of the sub-window with every probe of a group (Algorithm 3)."""

from amaranth import *
from amaranth.lib.wiring import In

from hdl.words.prepared import criterion_layout, stored_layout
from hdl.words.spans import span_layout

from .population import PopulationCount
from .probe_slot import ProbeSlot
from .row_scanner import RowScanner

__all__ = ["Scanner"]


class Scanner(RowScanner):
    """Read the span of a group row by row; its slots compare each key with each probe.

    Latency, throughput: those of a :class:`hdl.scan.row_scanner.RowScanner`.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator.
    probe_side : int
        Side of the probes, 0 for R and 1 for S.

    Members
    -------
    span : In
        Span of the probe whose ``criterion`` a slot takes.

    All others are those of a :class:`hdl.scan.row_scanner.RowScanner`.
    """

    def __init__(self, parameters, *, probe_side):
        self._slots = [
            ProbeSlot(parameters, probe_side=probe_side) for _ in range(parameters.probes)
        ]
        super().__init__(
            parameters,
            slot_latency=self._slots[0].latency,
            key=stored_layout(parameters),
            criterion=criterion_layout(parameters),
            bits=parameters.probes,
            span=In(span_layout(parameters)),
        )

    def elaborate(self, platform):
        m = Module()
        take, step, row, last = self.elaborate_sequence(m)
        first, edge = self.elaborate_edges(m, take, step, row)

        stages = self.elaborate_stages(m, take, step, row, last, edge=edge)
        arriving = stages[-1]
        compared = self.elaborate_comparing(m, arriving)
        was_first = Signal(reset_less=True)
        m.d.sync += was_first.eq(first)
        for n, slot in enumerate(self._slots):
            m.submodules[f"slot_{n}"] = slot
            m.d.comb += [
                slot.add.eq(self.add_to[n]),
                slot.span.eq(self.span),
                slot.criterion.eq(self.criterion),
                slot.begin.eq(take),
                slot.used.eq(self.group.payload.ending.count > n),
                slot.begin_keys.eq(arriving["begin"]),
                slot.present.eq(edge),
                slot.presented.eq(stages[1]["edge"]),
                slot.first.eq(was_first),
                slot.row.eq(row),
                slot.masked.eq(arriving["edge"]),
                slot.compare.eq(compared["step"]),
                slot.keys.eq(self.keys),
            ]
        self.elaborate_outcome(m, compared, [slot.matches for slot in self._slots])
        self.elaborate_population(m, arriving)
        return m

    def elaborate_edges(self, m, take, step, row):
        """Tell rows in which a span begins or ends from rows inside all spans.

        Returns whether the row being read is the first of the pass, and whether the masks may
        change with it: the row is such an edge, or follows one.
        """
        group = self.group.payload
        first = Signal(reset_less=True)
        opening = Signal(reset_less=True)  # the span of some probe has not begun
        begun = Signal(reset_less=True)  # with the previous row, all spans had begun
        closing = Signal(reset_less=True)  # the span of some probe ends in this row or has ended
        newest_tail = Signal.like(row)
        before_head = Signal.like(row)  # the row before the oldest head
        edge = Signal()
        m.d.comb += edge.eq(step & (opening | closing))
        with m.If(step):
            m.d.sync += [
                first.eq(0),
                begun.eq(row == newest_tail),
                closing.eq(closing | (row == before_head)),
            ]
            with m.If(begun):
                m.d.sync += opening.eq(0)
        with m.If(take):
            m.d.sync += [
                first.eq(1),
                Cat(opening, begun).eq(0b01),
                closing.eq(group.oldest_head == group.first),
                newest_tail.eq(group.newest_tail),
                before_head.eq(group.oldest_head - 1),
            ]
        return first, edge

    def elaborate_population(self, m, arriving):
        """Count comparisons; the masks are counted again only when they may have changed."""
        masks = Cat(slot.mask for slot in self._slots)
        m.submodules.population = population = PopulationCount(len(masks))
        steps = Signal(population.latency)  # `step`, delayed by the latency of the count
        m.d.sync += steps.eq(Cat(arriving["step"], steps))
        m.d.comb += [
            population.update.eq(arriving["edge"]),
            population.i.eq(masks),
            self.comparisons.eq(Mux(steps[-1], population.o, 0)),
        ]

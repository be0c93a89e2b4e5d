# SPDX-License-Identifier: Apache-2.0
"""Scan of digests: finds the lanes that may hold a match for any probe of a group."""

from functools import reduce
from operator import or_

from amaranth import *
from amaranth.lib.wiring import In

from hdl.words.cells import has_cells
from hdl.words.prepared import criterion_layout, stored_layout
from hdl.words.spans import span_layout

from .digest_slot import DigestSlot
from .double_cells import DoubleCells
from .row_scanner import RowScanner
from .span_count import SpanCount

__all__ = ["DigestScanner"]


class DigestScanner(RowScanner):
    """Read the span of a group row by row; its slots compare each digest with that of each probe.

    ``matches`` has one bit per lane, which is set if any probe has the lane's digest. The bits are
    not masked by the spans, so a candidate may lie outside the span of its probe, just as it may
    have another key.

    A range of a band that is wider than its cells says nothing about digests. In a pass with such a
    probe, every lane is a candidate.

    Latency, throughput: those of a :class:`hdl.scan.row_scanner.RowScanner`.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator; with digests.

    Members
    -------
    span : In
        Span of the probe whose ``criterion``, a digest, a slot takes.
    every : In(1)
        For a band: a range of that probe is wider than its cells.

    All others are those of a :class:`hdl.scan.row_scanner.RowScanner`.
    """

    def __init__(self, parameters):
        scanned = parameters.scanned
        self._slots = [DigestSlot(parameters) for _ in range(parameters.probes)]
        self._cells = DoubleCells(parameters) if has_cells(parameters) else None
        super().__init__(
            parameters,
            slot_latency=self._slots[0].latency + 1,
            prepares=self._cells.latency if self._cells else 0,
            key=stored_layout(scanned),
            criterion=criterion_layout(scanned),
            bits=1,
            span=In(span_layout(parameters)),
            **({"every": In(1)} if self._cells else {}),
        )

    def elaborate(self, platform):
        m = Module()
        take, step, row, last = self.elaborate_sequence(m)
        keys, more = self.keys, {}
        if self._cells:
            m.submodules.cells = self._cells
            m.d.comb += self._cells.cells.eq(self.keys)
            keys, more = self._cells.doubles, {"every": self.elaborate_every(m, take)}
        arriving = self.elaborate_stages(m, take, step, row, last, **more)[-1]
        compared = self.elaborate_comparing(m, arriving)
        for n, slot in enumerate(self._slots):
            m.submodules[f"slot_{n}"] = slot
            m.d.comb += [
                slot.add.eq(self.add_to[n]),
                slot.criterion.eq(self.criterion),
                slot.begin_keys.eq(arriving["begin"]),
                slot.keys.eq(keys),
            ]
        found = Signal(self.parameters.lanes, reset_less=True)
        candidates = [slot.matches for slot in self._slots]
        if self._cells:
            every = Signal(name="compared_every", reset_less=True)
            m.d.sync += every.eq(arriving["every"])
            candidates.append(every.replicate(len(found)))
        with m.If(compared["step"]):
            m.d.sync += found.eq(reduce(or_, candidates))
        self.elaborate_outcome(m, compared, [found])
        m.submodules.count = count = SpanCount(self.parameters)
        m.d.comb += [
            count.add.eq(self.add_to.any()),
            count.span.eq(self.span),
            count.begin.eq(take),
            count.step.eq(step),
            self.comparisons.eq(count.comparisons),
        ]
        return m

    def elaborate_every(self, m, take):
        """Return whether the pass in progress has a probe that may match any digest."""
        collected, passing = Signal(), Signal()
        adds = self.add_to.any() & self.every
        with m.If(take):
            m.d.sync += [passing.eq(collected), collected.eq(adds)]
        with m.Else():
            m.d.sync += collected.eq(collected | adds)
        return passing

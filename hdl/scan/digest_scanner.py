# SPDX-License-Identifier: Apache-2.0
"""Scan of digests: finds the lanes that may hold a match for any probe of a group."""

from functools import reduce
from operator import or_

from amaranth import *
from amaranth.lib.wiring import In

from hdl.words.prepared import criterion_layout, stored_layout
from hdl.words.spans import span_layout

from .digest_slot import DigestSlot
from .row_scanner import RowScanner
from .span_count import SpanCount

__all__ = ["DigestScanner"]


class DigestScanner(RowScanner):
    """Read the span of a group row by row; its slots compare each digest with that of each probe.

    ``matches`` has one bit per lane, which is set if any probe has the lane's digest. The bits are
    not masked by the spans, so a candidate may lie outside the span of its probe, just as it may
    have another key.

    Latency, throughput: those of a :class:`hdl.scan.row_scanner.RowScanner`.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator; with digests.

    Members
    -------
    span : In
        Span of the probe whose ``criterion``, a digest, a slot takes.

    All others are those of a :class:`hdl.scan.row_scanner.RowScanner`.
    """

    def __init__(self, parameters):
        scanned = parameters.scanned
        self._slots = [DigestSlot(scanned) for _ in range(parameters.probes)]
        super().__init__(
            parameters,
            slot_latency=self._slots[0].latency + 1,
            key=stored_layout(scanned),
            criterion=criterion_layout(scanned),
            bits=1,
            span=In(span_layout(parameters)),
        )

    def elaborate(self, platform):
        m = Module()
        take, step, row, last = self.elaborate_sequence(m)
        arriving = self.elaborate_stages(m, take, step, row, last)[-1]
        compared = self.elaborate_comparing(m, arriving)
        for n, slot in enumerate(self._slots):
            m.submodules[f"slot_{n}"] = slot
            m.d.comb += [
                slot.add.eq(self.add_to[n]),
                slot.criterion.eq(self.criterion),
                slot.begin_keys.eq(arriving["begin"]),
                slot.keys.eq(self.keys),
            ]
        found = Signal(self.parameters.lanes, reset_less=True)
        with m.If(compared["step"]):
            m.d.sync += found.eq(reduce(or_, (slot.matches for slot in self._slots)))
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

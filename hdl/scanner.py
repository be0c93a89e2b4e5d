# SPDX-License-Identifier: Apache-2.0
"""The scan: every key of the sub-window against every resident probe (Algorithm 3)."""

from amaranth import *
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from .comparator import Comparator
from .key_ring import KeyRing
from .layouts import group_layout, match_layout, pointer_layout, row_layout

__all__ = ["Scanner", "SpanMask"]


class SpanMask(wiring.Component):
    """Which lanes of the row at hand lie inside one probe's span.

    Rows are presented in ring order from the first probe's tail to the last probe's head, so two
    equality comparisons and a bit of memory replace magnitude comparisons modulo the ring.

    Latency: 0 cycles. Throughput: 1 row per cycle.

    Parameters
    ----------
    parameters : JoinParameters
        Of the accelerator.

    Members
    -------
    load : In(1)
        A new pass begins with the next row.
    tail, head : In
        The probe's span, constant during the pass.
    step : In(1)
        ``row`` is a row of the pass.
    row : In
        With wrap bit.
    lanes : Out(lanes)
    """

    def __init__(self, parameters):
        self.parameters = parameters
        self.latency = 0
        pointer = pointer_layout(parameters)
        super().__init__(
            {
                "load": In(1),
                "tail": In(pointer),
                "head": In(pointer),
                "step": In(1),
                "row": In(pointer["row"].shape),
                "lanes": Out(parameters.lanes),
            }
        )

    def elaborate(self, platform):
        m = Module()
        inside = Signal()  # the tail is behind, the head still ahead
        at_tail = self.row == self.tail.row
        at_head = self.row == self.head.row
        for lane in range(self.parameters.lanes):
            begun = inside | (at_tail & (self.tail.lane <= lane))
            ended = at_head & (self.head.lane <= lane)
            m.d.comb += self.lanes[lane].eq(self.step & begun & ~ended)
        with m.If(self.step):
            m.d.sync += inside.eq((inside | at_tail) & ~at_head)
        with m.If(self.load):
            m.d.sync += inside.eq(0)
        return m


class Scanner(wiring.Component):
    """Read the span of a group row by row and compare each key with each probe of the group.

    A pass begins in the cycle after its group is taken; the next group is taken while the last row
    of the pass is read, so passes follow each other without an idle cycle. The end of a pass
    travels with its last row. ``matches`` cannot be refused: the scanner stops reading rows
    when there is no ``room`` for :attr:`in_flight` more.

    Latency: :attr:`latency` cycles from reading a row to its ``matches``: those of the memory, one
    for the comparisons and one to see whether there are any matches. Throughput: ``lanes`` keys per
    cycle; a pass takes as many cycles as its span touches rows, at least one.

    Parameters
    ----------
    parameters : JoinParameters
        Of the accelerator.
    probe_side : int
        Side of the probes, 0 for R and 1 for S.

    Members
    -------
    group : In(stream.Signature(group_layout(parameters)))
        The payload stays for ``KeyRing.LATENCY`` cycles after the transfer.
    running : Out(1)
        A pass is under way.
    oldest : Out
        Where the pass under way began; the ring must be kept from there.
    reading : Out(1)
        A row of the pass is read in this cycle.
    address : Out
    keys : In
        Of a :class:`KeyRing`.
    matches_valid : Out(1)
    matches : Out
        Outcome of a row, if it has a match or is the last of its pass.
    room : In(1)
    comparisons : Out
        Comparisons of a probe with a key of its window in this cycle.
    """

    def __init__(self, parameters, *, probe_side):
        self.parameters = parameters
        self.probe_side = probe_side
        self.latency = KeyRing.LATENCY + 2
        #: Rows that may follow after ``room`` fell: those read and not yet seen at the output, and
        #: one that is read before a registered ``room`` is seen.
        self.in_flight = self.latency + 2
        super().__init__(
            {
                "group": In(stream.Signature(group_layout(parameters))),
                "running": Out(1),
                "oldest": Out(pointer_layout(parameters)),
                "reading": Out(1),
                "address": Out(range(parameters.ring_rows)),
                "keys": In(row_layout(parameters)),
                "matches_valid": Out(1),
                "matches": Out(match_layout(parameters)),
                "room": In(1),
                "comparisons": Out(range(parameters.lanes * parameters.probes + 1)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        pointer = pointer_layout(self.parameters)

        # Sequencing. An empty span still takes one cycle.
        row = Signal(pointer["row"].shape)
        step = Signal()
        last = Signal()
        take = Signal()
        m.d.comb += [
            step.eq(self.running & self.room),
            self.group.ready.eq(~self.running | (step & last)),
            take.eq(self.group.valid & self.group.ready),
            self.reading.eq(step),
            self.address.eq(row),
        ]
        stop = Signal.like(row)
        with m.If(step):
            m.d.sync += [row.eq(row + 1), last.eq((row + 2)[: len(row)] == stop)]
            with m.If(last):
                m.d.sync += self.running.eq(0)
        with m.If(take):
            group = self.group.payload
            m.d.sync += [
                self.running.eq(1),
                self.oldest.eq(group.slots[0].span.tail),
                row.eq(group.slots[0].span.tail.row),
                stop.eq(group.stop),
                last.eq(group.short),
            ]

        masks = self.elaborate_masks(m, take, step, row)
        self.elaborate_comparison(m, take, masks, step, row, last)
        return m

    def elaborate_masks(self, m, take, step, row):
        """Mark the keys of the row being read that belong to each probe's span."""
        masks = Signal(data.ArrayLayout(self.parameters.probes, self.parameters.lanes))
        for n, slot in enumerate(self.group.payload.slots):
            m.submodules[f"mask_{n}"] = mask = SpanMask(self.parameters)
            used = Signal(name=f"used_{n}")
            tail = Signal.like(mask.tail, name=f"tail_{n}")
            head = Signal.like(mask.head, name=f"head_{n}")
            with m.If(take):
                m.d.sync += [
                    used.eq(self.group.payload.count > n),
                    tail.eq(slot.span.tail),
                    head.eq(slot.span.head),
                ]
            m.d.comb += [
                mask.load.eq(take),
                mask.tail.eq(tail),
                mask.head.eq(head),
                mask.step.eq(step & used),
                mask.row.eq(row),
            ]
            m.d.comb += [masks[lane][n].eq(mask.lanes[lane]) for lane in range(len(masks))]
        return masks

    def elaborate_comparison(self, m, take, masks, step, row, last):
        """Compare the row that was read; register the outcome, then whether there is any."""
        # What belongs to the row on its way through the memory.
        arriving = {"masks": masks, "step": step, "row": row, "last": last, "take": take}
        for cycle in range(KeyRing.LATENCY):
            previous, arriving = arriving, {}
            for name, value in previous.items():
                arriving[name] = Signal(Value.cast(value).shape(), name=f"{name}_{cycle}")
                m.d.sync += arriving[name].eq(value)

        # The row that arrives together with `take` is the last one that meets the old probes.
        probes = Signal(group_layout(self.parameters))  # their spans are unused
        with m.If(arriving["take"]):
            m.d.sync += probes.eq(self.group.payload)

        outcome = Signal(match_layout(self.parameters))
        outcome_valid = Signal()
        m.d.sync += [
            outcome_valid.eq(arriving["step"]),
            outcome.row.eq(arriving["row"]),
            outcome.last.eq(arriving["last"]),
            outcome.count.eq(probes.count),
            outcome.star.eq(probes.star),
            outcome.mark.eq(probes.mark),
            outcome.punctuation.eq(probes.punctuation),
        ]
        for lane in range(self.parameters.lanes):
            for n in range(self.parameters.probes):
                bit = lane * self.parameters.probes + n
                comparator = Comparator(self.parameters, probe_side=self.probe_side)
                m.submodules[f"comparator_{lane}_{n}"] = comparator
                m.d.comb += [
                    comparator.criterion.eq(probes.slots[n].criterion),
                    comparator.key.eq(self.keys[lane]),
                ]
                m.d.sync += outcome.matches[bit].eq(comparator.match & arriving["masks"][bit])

        m.d.sync += [
            self.matches.eq(outcome),
            self.matches_valid.eq(outcome_valid & (outcome.last | outcome.matches.any())),
        ]
        m.d.comb += self.comparisons.eq(count_ones(arriving["masks"]))


def count_ones(value):
    """Number of ones in ``value``, as a balanced tree of adders."""
    if len(value) == 1:
        return value
    half = len(value) // 2
    return count_ones(value[:half]) + count_ones(value[half:])

# SPDX-License-Identifier: Apache-2.0
"""The scan: every key of the sub-window against every probe of a group (Algorithm 3)."""

from functools import reduce
from operator import or_

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hdl.layouts import criterion_layout, ending_layout, pointer_layout, span_layout, stored_layout

from .key_ring import KeyRing
from .layouts import group_layout, match_layout, row_layout
from .population import PopulationCount
from .probe_slot import ProbeSlot

__all__ = ["Scanner"]


class Scanner(wiring.Component):
    """Read the span of a group row by row; its slots compare each key with each probe.

    A pass begins in the cycle after its group is taken; the next group is taken while the last row
    of the pass is read, so passes follow each other without an idle cycle. The end of a pass
    travels with its last row. ``matches`` cannot be refused: the scanner stops reading rows
    when there is no ``room`` for :attr:`in_flight` more.

    Latency: :attr:`latency` cycles from reading a row to its ``matches``: those of a slot, and one
    to see whether there are any matches. Throughput: ``lanes`` keys per cycle; a pass takes as many
    cycles as its span touches rows, at least one.

    Parameters
    ----------
    parameters : JoinParameters
        Of the accelerator.
    probe_side : int
        Side of the probes, 0 for R and 1 for S.

    Members
    -------
    add_to : In(probes)
        Slot that holds ``span`` and ``criterion`` as those of the next probe; see
        :class:`hdl.scan.group_collector.GroupCollector`.
    span : In
    criterion : In
    group : In(stream.Signature(group_layout(parameters)))
        Its ``ending``, and the slots, stay for ``KeyRing.LATENCY`` cycles after the transfer.
    running : Out(1)
        A pass is under way.
    oldest : Out
        The row where the pass under way began; the ring must be kept from there.
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
        Comparisons of a probe with a key of its window, some cycles ago.
    """

    def __init__(self, parameters, *, probe_side):
        self.parameters = parameters
        self._slots = [
            ProbeSlot(parameters, probe_side=probe_side) for _ in range(parameters.probes)
        ]
        self.latency = self._slots[0].latency + 1
        #: Rows that may follow after ``room`` fell: those read and not yet seen at the output, and
        #: one that is read before a registered ``room`` is seen.
        self.in_flight = self.latency + 2
        super().__init__(
            {
                "add_to": In(parameters.probes),
                "criterion": In(criterion_layout(parameters)),
                "span": In(span_layout(parameters)),
                "group": In(stream.Signature(group_layout(parameters))),
                "running": Out(1),
                "oldest": Out(pointer_layout(parameters)["row"].shape),
                "reading": Out(1),
                "address": Out(range(parameters.ring_rows)),
                "keys": In(row_layout(parameters, stored_layout(parameters))),
                "matches_valid": Out(1),
                "matches": Out(match_layout(parameters)),
                "room": In(1),
                "comparisons": Out(range(parameters.lanes * parameters.probes + 1)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        row = Signal(pointer_layout(self.parameters)["row"].shape, reset_less=True)
        last = Signal()
        take = Signal()
        step = self.reading
        m.d.comb += [
            step.eq(self.running & self.room),
            self.group.ready.eq(~self.running | (step & last)),
            take.eq(self.group.valid & self.group.ready),
            self.address.eq(row),
        ]
        self.elaborate_sequence(m, take, step, row, last)
        first, edge = self.elaborate_edges(m, take, step, row)

        # What belongs to the row on its way through the memory.
        stages = [
            {
                "step": step,
                "row": row[: len(self.address)],
                "last": last,
                "begin": take,
                "edge": edge,
            }
        ]
        for cycle in range(KeyRing.LATENCY):
            following = {}
            for name, value in stages[-1].items():
                following[name] = Signal(
                    Value.cast(value).shape(),
                    name=f"{name}_{cycle + 1}",
                    reset_less=name in ("row", "last"),
                )
                m.d.sync += following[name].eq(value)
            stages.append(following)
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
        self.elaborate_outcome(m, compared)
        self.elaborate_population(m, arriving)
        return m

    def elaborate_sequence(self, m, take, step, row, last):
        """Count rows. An empty span still takes one cycle."""
        group = self.group.payload
        before_last = Signal.like(row)
        oldest = Signal.like(row)
        m.d.comb += self.oldest.eq(oldest)
        with m.If(step):
            m.d.sync += [row.eq(row + 1), last.eq(row == before_last)]
            with m.If(last):
                m.d.sync += self.running.eq(0)
        with m.If(take):
            m.d.sync += [
                self.running.eq(1),
                oldest.eq(group.first),
                row.eq(group.first),
                before_last.eq(group.stop - 2),
                last.eq(group.short),
            ]

    def elaborate_edges(self, m, take, step, row):
        """Tell rows in which some span begins or ends from those inside all spans.

        Returns whether the row being read is the first of the pass, and whether it is such an edge,
        or follows one.
        """
        group = self.group.payload
        first = Signal()
        opening = Signal()  # some probe has not begun
        begun = Signal()  # all have, with the row before
        closing = Signal()  # some probe has ended, or does in this row
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

    def elaborate_comparing(self, m, arriving):
        """Return what belongs to the row that is compared while the next one arrives."""
        compared = {
            "step": Signal(name="compared"),
            "row": Signal.like(arriving["row"], name="compared_row"),
            "last": Signal(name="compared_last", reset_less=True),
            "ending": Signal(ending_layout(self.parameters), name="ending", reset_less=True),
        }
        ending = Signal(ending_layout(self.parameters), reset_less=True)  # of the pass that arrives
        with m.If(arriving["begin"]):
            m.d.sync += ending.eq(self.group.payload.ending)
        with m.If(arriving["last"]):
            m.d.sync += compared["ending"].eq(ending)
        m.d.sync += [compared[name].eq(arriving[name]) for name in ("step", "row", "last")]
        return compared

    def elaborate_outcome(self, m, compared):
        """Register what belongs to a row beside its matches, then whether there are any."""
        outcome = Signal(match_layout(self.parameters), reset_less=True)
        valid = Signal()
        row = Signal.like(compared["row"])
        last = Signal(reset_less=True)
        m.d.sync += [
            valid.eq(compared["step"]),
            row.eq(compared["row"]),
            last.eq(compared["last"]),
        ]
        with m.If(compared["last"]):
            m.d.sync += outcome.ending.eq(compared["ending"])
        m.d.comb += [outcome.row.eq(row), outcome.last.eq(last)]
        m.d.comb += [outcome.matches[n].eq(slot.matches) for n, slot in enumerate(self._slots)]
        m.d.sync += self.matches_valid.eq(valid & (last | reduce(or_, outcome.matches).any()))
        matches = Signal.like(outcome)
        m.d.comb += self.matches.eq(matches)
        with m.If(valid):
            m.d.sync += matches.eq(outcome)

    def elaborate_population(self, m, arriving):
        """Count comparisons; the count is made anew for rows whose masks are new."""
        masks = Cat(slot.mask for slot in self._slots)
        m.submodules.population = population = PopulationCount(len(masks))
        steps = Signal(population.latency)  # `step`, along the way of the count
        m.d.sync += steps.eq(Cat(arriving["step"], steps))
        m.d.comb += [
            population.update.eq(arriving["edge"]),
            population.i.eq(masks),
            self.comparisons.eq(Mux(steps[-1], population.o, 0)),
        ]

# SPDX-License-Identifier: Apache-2.0
"""Scanners: rows compared with the slots of probes, their counts, and where rounds end."""

from functools import reduce
from operator import or_

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from hdl.tree import tree_levels
from hdl.words.prepared import (
    criterion_layout,
    ending_layout,
    pointer_layout,
    span_layout,
    stored_layout,
)
from hdl.words.values import longest_round, rounds_shape

from .layouts import group_layout, match_layout, row_layout
from .probe_slot import ProbeSlot
from .ring import KeyRing

__all__ = ["PopulationCount", "RoundEnds", "RowScanner", "Scanner"]


class RoundEnds(wiring.Component):
    """Tell for each row of a pass in which lanes a round ends (:mod:`hdl.words.values`).

    A round ends with its last key if that key is in the span of the pass. Rounds are sent for one
    probe at a time, so the span is that of the only probe. In a pass without rounds, or without
    probes, no round ends.

    Latency: ``latency`` cycles. Throughput: 1 row per cycle.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator; with rounds.
    latency : int
        Cycles from a row to its ``ends``, at least one.

    Members
    -------
    load : In(1)
        The pass of ``group`` begins with the row of the next cycle.
    group : In(group_layout(parameters))
    step : In(1)
        ``row`` is read; from the next cycle on it is no longer the first one.
    row : In
        Row of the ring, without wrap bit.
    last : In(1)
        It is the last row of the pass.
    ends : Out(lanes)
        Lanes with the last key of a round, of the row ``latency`` cycles ago.
    rounds : Out(rounds_shape(parameters))
        Size of the rounds of that row's pass, as a code.
    """

    def __init__(self, parameters, *, latency):
        if latency < 1:
            raise ValueError(f"The ends of rounds take at least one cycle, not {latency!r}")
        self.parameters = parameters
        self.latency = latency
        super().__init__(
            {
                "load": In(1),
                "group": In(group_layout(parameters)),
                "step": In(1),
                "row": In(range(parameters.ring_rows)),
                "last": In(1),
                "ends": Out(parameters.engine.lanes),
                "rounds": Out(rounds_shape(parameters)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        group = self.group
        rounds = Signal.like(self.rounds, name="rounds_now", reset_less=True)
        tail, head = (
            Signal.like(group[name], name=name, reset_less=True)
            for name in ("tail_lane", "head_lane")
        )
        first = Signal(reset_less=True)
        with m.If(self.step):
            m.d.sync += first.eq(0)
        with m.If(self.load):
            vacant = (group.ending.count == 0) | (group.stop == group.first)
            m.d.sync += [
                rounds.eq(Mux(vacant, 0, group.ending.rounds)),
                tail.eq(group.tail_lane),
                head.eq(group.head_lane),
                first.eq(1),
            ]
        # The last row holds keys in all lanes if the span ends before the first lane of a row.
        ends = Cat(
            self.is_end(rounds, lane)
            & (~first | (tail <= lane))
            & (~self.last | (head == 0) | (head > lane))
            for lane in range(self.parameters.engine.lanes)
        )
        for cycle in range(self.latency):
            later = Signal(len(ends), name=f"ends_{cycle}", reset_less=True)
            size = Signal.like(rounds, name=f"rounds_{cycle}", reset_less=True)
            m.d.sync += [later.eq(ends), size.eq(rounds)]
            ends, rounds = later, size
        m.d.comb += [self.ends.eq(ends), self.rounds.eq(rounds)]
        return m

    def is_end(self, rounds, lane):
        """Return whether the key in a lane of the row is the last one of a round of this size."""
        in_row = ceil_log2(
            self.parameters.engine.lanes
        )  # rounds of 2**in_row keys are as long as a row
        held = []
        for n in range(longest_round(self.parameters) + 1):
            own = (1 << min(n, in_row)) - 1
            if lane & own == own:
                held.append((rounds == n + 1) & self.row[: max(0, n - in_row)].all())
        return Cat(held).any()


class PopulationCount(wiring.Component):
    """Count the ones of a word through a tree of registered sums of four.

    Latency: ``len(tree_levels(width, 4))`` cycles. Throughput: 1 word per cycle.

    Parameters
    ----------
    width : int
        Width of the word in bits, at least one.

    Members
    -------
    update : In(1)
        Count ``i``; otherwise ``o`` keeps its value.
    i : In(width)
    o : Out(range(width + 1))
    """

    ARITY = 4

    def __init__(self, width):
        self.width = width
        self.latency = len(tree_levels(width, self.ARITY))
        super().__init__({"update": In(1), "i": In(width), "o": Out(range(width + 1))})

    def elaborate(self, platform):
        m = Module()
        update, counts, most = self.update, list(self.i), 1
        for level in range(self.latency):
            most = min(most * self.ARITY, self.width)
            sums = []
            for n in range(0, len(counts), self.ARITY):
                total = Signal(
                    range(most + 1), name=f"sum_{level}_{n // self.ARITY}", reset_less=True
                )
                with m.If(update):
                    m.d.sync += total.eq(sum(counts[n : n + self.ARITY]))
                sums.append(total)
            delayed = Signal(name=f"update_{level}")
            m.d.sync += delayed.eq(update)
            update, counts = delayed, sums
        m.d.comb += self.o.eq(counts[0])
        return m


class RowScanner(wiring.Component):
    """Read the span of a group row by row; subclasses compare keys with probes.

    A pass begins in the cycle after its group is taken. The next group is taken while the last row
    of the pass is read, so passes follow each other without an idle cycle. The end of a pass
    travels with its last row. ``matches`` has no back-pressure; instead, no row is read without
    ``room``.

    Latency: :attr:`latency` cycles from reading a row to its ``matches``: those of a slot, and 1 to
    detect whether there are any matches. Throughput: ``lanes`` keys per cycle; a pass takes as many
    cycles with ``room`` as its span touches rows, but at least one.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator.
    slot_latency : int
        Cycles from reading a row to the outcome of its slots: :attr:`arrival` and 2, the number of
        pipeline stages that carry the other data of the row.
    prepares : int
        Cycles from the :class:`KeyRing` to the slots, in which keys are prepared for comparison.
    key, criterion : Layout
        Layouts of what is compared of a key and of a probe.
    bits : int
        Width of ``matches`` for each lane.
    more : wiring members
        Additional members of the subclass.

    Members
    -------
    add_to : In(probes)
        Slot that holds ``criterion`` as that of the next probe; see
        :class:`hdl.scan.serializers.GroupCollector`.
    criterion : In
    group : In(stream.Signature(group_layout(parameters)))
        Next group. Its ``ending`` and the slots stay unchanged for :attr:`arrival` cycles after the
        transfer.
    running : Out(1)
        A pass is in progress.
    oldest : Out
        First row of the pass in progress; only while ``running``.
    reading : Out(1)
        A row of the pass is read in this cycle.
    address : Out
        Row that is read; only while ``reading``.
    keys : In
        Contents of a :class:`KeyRing` at ``address``, after its latency.
    matches_valid : Out(1)
        ``matches`` is valid.
    matches : Out
        Outcome of a row that has a match, is the last of its pass, or ends a round; ``ending`` is
        valid for the last row only.
    room : In(1)
        A row may be read. The queue that takes the outcomes drives ``room`` from a register, high
        while it has more than :attr:`in_flight` free entries.
    comparisons : Out
        Number of comparisons of a probe with a key of its window in one cycle, some cycles ago.
    """

    def __init__(self, parameters, *, slot_latency, key, criterion, bits, prepares=0, **more):
        self.parameters = parameters
        #: Cycles from reading a row to its keys at the slots.
        self.arrival = KeyRing.LATENCY + prepares
        self.latency = slot_latency + 1
        #: Entries that the queue of outcomes reserves when it has no ``room``. One entry less would
        #: do: outcomes can arrive for the rows in the pipeline, and for one row that is read before
        #: the registered ``room`` is seen.
        self.in_flight = self.latency + 2
        self._rounds = (
            RoundEnds(parameters, latency=slot_latency) if parameters.engine.rounds else None
        )
        super().__init__(
            {
                "add_to": In(parameters.engine.probes),
                "criterion": In(criterion),
                **more,
                "group": In(stream.Signature(group_layout(parameters))),
                "running": Out(1),
                "oldest": Out(pointer_layout(parameters)["row"].shape),
                "reading": Out(1),
                "address": Out(range(parameters.ring_rows)),
                "keys": In(row_layout(parameters, key)),
                "matches_valid": Out(1),
                "matches": Out(match_layout(parameters, bits)),
                "room": In(1),
                "comparisons": Out(range(parameters.engine.lanes * parameters.engine.probes + 1)),
            }
        )

    def elaborate_sequence(self, m):
        """Step through the rows of the pass. An empty span takes one cycle, too.

        Returns whether a group is taken, whether a row is read, which one, and whether it is the
        last.
        """
        row = Signal(pointer_layout(self.parameters)["row"].shape, reset_less=True)
        last = Signal(reset_less=True)
        take = Signal()
        step = self.reading
        m.d.comb += [
            step.eq(self.running & self.room),
            self.group.ready.eq(~self.running | (step & last)),
            take.eq(self.group.valid & self.group.ready),
            self.address.eq(row),
        ]
        group = self.group.payload
        # The pass has at most one row.
        short = (
            (group.ending.count == 0) | (group.stop == group.first) | (group.stop == group.second)
        )
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
                last.eq(short),
            ]
        if self._rounds:
            m.submodules.rounds = rounds = self._rounds
            m.d.comb += [
                rounds.load.eq(take),
                rounds.group.eq(group),
                rounds.step.eq(step),
                rounds.row.eq(row),
                rounds.last.eq(last),
            ]
        return take, step, row, last

    def elaborate_stages(self, m, take, step, row, last, **more):
        """Return the data that accompany a row to the slots, one dict per pipeline stage."""
        stages = [
            {"step": step, "row": row[: len(self.address)], "last": last, "begin": take, **more}
        ]
        for cycle in range(self.arrival):
            following = {}
            for name, value in stages[-1].items():
                following[name] = Signal(
                    Value.cast(value).shape(),
                    name=f"{name}_{cycle + 1}",
                    reset_less=name in ("row", "last"),
                )
                m.d.sync += following[name].eq(value)
            stages.append(following)
        return stages

    def elaborate_comparing(self, m, arriving, waits=0):
        """Return the data that accompany a row while it is compared, a stage after it arrives.

        ``waits`` are the cycles that the comparison takes beyond that stage.
        """
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
        for cycle in range(waits):
            later = {
                name: Signal.like(value, name=f"compared_{name}_{cycle + 1}")
                for name, value in compared.items()
            }
            m.d.sync += [later[name].eq(value) for name, value in compared.items()]
            compared = later
        return compared

    def elaborate_outcome(self, m, compared, found):
        """Register the outcome of a row with its data, then whether it holds any match."""
        outcome = Signal(self.matches.shape(), reset_less=True)
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
        m.d.comb += [outcome.matches[n].eq(lanes) for n, lanes in enumerate(found)]
        sent = last | reduce(or_, outcome.matches).any()
        if self._rounds:
            sent |= outcome.ends.any()
            m.d.comb += [outcome.ends.eq(self._rounds.ends), outcome.rounds.eq(self._rounds.rounds)]
        m.d.sync += self.matches_valid.eq(valid & sent)
        matches = Signal.like(outcome)
        m.d.comb += self.matches.eq(matches)
        with m.If(valid):
            m.d.sync += matches.eq(outcome)


class Scanner(RowScanner):
    """Read the span of a group row by row; its slots compare each key with each probe.

    Latency, throughput: those of a :class:`hdl.scan.scanner.RowScanner`.

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

    All others are those of a :class:`hdl.scan.scanner.RowScanner`.
    """

    def __init__(self, parameters, *, probe_side):
        self._slots = [
            ProbeSlot(parameters, probe_side=probe_side) for _ in range(parameters.engine.probes)
        ]
        super().__init__(
            parameters,
            slot_latency=self._slots[0].latency,
            key=stored_layout(parameters),
            criterion=criterion_layout(parameters),
            bits=parameters.engine.probes,
            span=In(span_layout(parameters)),
        )

    def elaborate(self, platform):
        m = Module()
        take, step, row, last = self.elaborate_sequence(m)
        first, edge = self.elaborate_edges(m, take, step, row)

        stages = self.elaborate_stages(m, take, step, row, last, edge=edge)
        arriving = stages[-1]
        compared = self.elaborate_comparing(m, arriving, self._slots[0].waits)
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

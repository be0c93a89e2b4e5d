# SPDX-License-Identifier: Apache-2.0
"""Base of all scanners: reads the rows of a pass one by one, and reports those with matches."""

from functools import reduce
from operator import or_

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hdl.words.spans import ending_layout, pointer_layout

from .key_ring import KeyRing
from .layouts import group_layout, match_layout, row_layout
from .round_ends import RoundEnds

__all__ = ["RowScanner"]


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
        :class:`hdl.scan.group_collector.GroupCollector`.
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
        self._rounds = RoundEnds(parameters, latency=slot_latency) if parameters.rounds else None
        super().__init__(
            {
                "add_to": In(parameters.probes),
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
                "comparisons": Out(range(parameters.lanes * parameters.probes + 1)),
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

    def elaborate_comparing(self, m, arriving):
        """Return the data that accompany a row while it is compared, a stage after it arrives."""
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

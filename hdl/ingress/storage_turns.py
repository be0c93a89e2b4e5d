# SPDX-License-Identifier: Apache-2.0
"""Turns of the cores for both sides, and the control words that change them."""

from amaranth import *
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hdl.words.inputs import control_layout, limits_layout

from .core_lists import CoreLists
from .side_turns import SideTurns

__all__ = ["StorageTurns"]

#: What both sides need to know of the lists.
SHARED = ("newest", "write", "entry", "first", "last", "plain", "begins")


class StorageTurns(wiring.Component):
    """Say of the next tuple of each side which core stores it and whose oldest tuple leaves.

    A CORE word adds a core to the list of the next segment, SEGMENT begins that segment for both
    sides, WINDOW and LIFESPAN begin a window, and other words that empty a window restart the
    turns. None of them but SEGMENT changes which cores are live. CLEAR also discards the list that
    is being written.

    Latency: 0 cycles to what is refused; 1 cycle to everything else. Throughput: 1 word per cycle,
    with up to one tuple of each side.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator.

    Members
    -------
    advance : In(1)
        The word at hand, or the tuple at hand of two, is taken.
    tuples : In(2)
        Tuples of side R (bit 0) and S (bit 1) at hand.
    core, exists, segment, clear, empties, begins, timed : In
        What is known of the word at hand (:func:`hdl.ingress.word_facts.word_facts`); all zero if
        the word is not legal.
    value, limits : In
        Operand of the word, and the limits that it exceeds.
    core_refused, segment_refused : Out(1)
        The word at hand is CORE, or SEGMENT, and has no effect because it is not allowed here.
    storing, leaving : Out
        For each side, the core that stores its next tuple, and the core whose oldest tuple leaves.
    leaves : Out(2)
        For each side, whether a tuple leaves.
    limit : Out
        ``slack`` times the number of cores that store.
    """

    def __init__(self, parameters):
        self.parameters = parameters
        self.latency = 0
        cores = data.ArrayLayout(range(max(2, parameters.cores)), 2)
        super().__init__(
            {
                "advance": In(1),
                "tuples": In(2),
                "core": In(1),
                "exists": In(1),
                "segment": In(1),
                "clear": In(1),
                "empties": In(2),
                "begins": In(1),
                "timed": In(1),
                "value": In(control_layout(parameters)["value"].shape),
                "limits": In(limits_layout(parameters)),
                "core_refused": Out(1),
                "segment_refused": Out(1),
                "storing": Out(cores),
                "leaving": Out(cores),
                "leaves": Out(2),
                "limit": Out(range(parameters.cores * parameters.slack + 1)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.lists = lists = CoreLists(self.parameters)
        exceeded = self.limits.WINDOW
        size = Mux(exceeded.below, 1, Mux(exceeded.above, self.parameters.capacity, self.value))
        m.d.comb += [
            lists.value.eq(self.value[: len(lists.value)]),
            lists.exists.eq(self.exists),
            lists.append.eq(self.core),
            lists.begin.eq(self.segment),
            lists.forget.eq(self.clear),
            lists.advance.eq(self.advance),
            self.core_refused.eq(lists.core_refused),
            self.segment_refused.eq(lists.segment_refused),
            self.limit.eq(lists.limit),
        ]
        sides = [SideTurns(self.parameters) for _ in "rs"]
        m.d.comb += lists.needed.eq(sides[0].spans_three | sides[1].spans_three)
        for n, turns in enumerate(sides):
            m.submodules[f"turns_{'rs'[n]}"] = turns
            m.d.comb += [
                turns.tuple.eq(self.tuples[n]),
                turns.restart.eq(self.empties[n]),
                turns.segment.eq(self.segment),
                turns.advance.eq(self.advance),
                turns.begin.eq(self.begins),
                turns.size.eq(size[: len(turns.size)]),
                turns.timed.eq(self.timed),
                turns.value.eq(lists.core),
                *(getattr(turns, shared).eq(getattr(lists, shared)) for shared in SHARED),
                self.storing[n].eq(turns.core),
                self.leaving[n].eq(turns.oldest),
                self.leaves[n].eq(turns.expires),
            ]
        return m

# SPDX-License-Identifier: Apache-2.0
"""Prepares the tuples of scheduled words; two tuples of a word are prepared in parallel."""

from itertools import pairwise

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hdl.index.cells import CellPreparation
from hdl.streams.delay import delayed
from hdl.streams.steady import SteadyQueue, SteadyRegister
from hdl.words.cells import has_cells
from hdl.words.inputs import InputKind
from hdl.words.prepared import decision_members, region_word, scheduled_word

from .digest_preparation import DigestPreparation
from .preparation import ProbePreparation

__all__ = ["WordPreparation"]

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
        Otherwise, the layout is that of ``parameters.lane``. ``ready`` comes from a register.
    o : Out(stream.Signature(region_word(parameters)))
    """

    def __init__(self, parameters):
        self.parameters = parameters
        scheduled = parameters if parameters.side_by_side else parameters.lane
        names = LANES if parameters.side_by_side else [""]
        self._lanes = {name: lane_stages(parameters.lane) for name in names}
        self.stages = sum(stage.latency for stage in next(iter(self._lanes.values())).values())
        self.latency = self.stages + 1
        super().__init__(
            {
                "i": In(stream.Signature(scheduled_word(scheduled))),
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

    With a band and an index, the cells take most of the chip. A register at the entrance then
    separates them from the logic that decides about a word.
    """
    stages = {"preparation": ProbePreparation(parameters)}
    if has_cells(parameters):
        return {**stages, "digests": DigestPreparation(parameters)}
    if parameters.engine != "index":
        return stages
    if parameters.comparator == "band":
        stages = {"arrival": SteadyRegister(scheduled_word(parameters), gated=True), **stages}
    return {**stages, "cells": CellPreparation(parameters)}

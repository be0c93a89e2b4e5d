# SPDX-License-Identifier: Apache-2.0
"""Prepares two tuples side by side."""

from itertools import pairwise

from amaranth import *
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect

from hdl.index.cells import CellPreparation
from hdl.streams.registers import StreamRegister
from hdl.words.inputs import InputKind
from hdl.words.prepared import decision_members, region_word, scheduled_word

from .preparation import ProbePreparation

__all__ = ["TupleLanes"]

#: Sides of the lanes, by their names in a word of two tuples.
LANES = {"r": InputKind.R, "s": InputKind.S}


class TupleLanes(wiring.Component):
    """Prepare the tuples of R in one lane, and those of S in another.

    A lane prepares a tuple in every word, whether there is one or not, and gets every control word.
    So both lanes move in step.

    Latency: :attr:`latency` cycles, those of a lane. Throughput: 1 word per cycle.

    Parameters
    ----------
    parameters : JoinParameters
        Of the accelerator, whose tuples go side by side.

    Members
    -------
    i : In(stream.Signature(scheduled_word(parameters)))
        A tuple of S is in ``both.s``, even if it is the only one.
    o : Out(stream.Signature(region_word(parameters)))
    """

    def __init__(self, parameters):
        self.parameters = parameters
        self._lanes = {
            side: [ProbePreparation(parameters.lane), CellPreparation(parameters.lane)]
            for side in LANES
        }
        self.latency = sum(stage.latency for stage in self._lanes["r"])
        super().__init__(
            {
                "i": In(stream.Signature(scheduled_word(parameters))),
                "o": Out(stream.Signature(region_word(parameters))),
            }
        )

    def elaborate(self, platform):
        m = Module()
        entering, order = self.elaborate_order(m)
        r, s = (self.elaborate_lane(m, side) for side in LANES)
        word = self.o.payload
        m.d.comb += [
            self.i.ready.eq(entering.ready),
            self.o.valid.eq(order.valid),
            word.kind.eq(order.payload.kind),
            word.first.eq(order.payload.first),
            *(word[name].eq(r.payload[name]) for name in decision_members()),
            *(lane.ready.eq(self.o.ready) for lane in (order, r, s)),
        ]
        m.d.comb += [
            word.body.both.r.eq(r.payload.body.tuple),
            word.body.both.s.eq(s.payload.body.tuple),
        ]
        with m.If(word.kind == InputKind.CONTROL):
            m.d.comb += word.body.control.eq(r.payload.body.control)
        return m

    def elaborate_lane(self, m, side):
        """Prepare the tuples of a side; return the stream of them."""
        preparation, cells = self._lanes[side]
        m.submodules[f"preparation_{side}"] = preparation
        m.submodules[f"cells_{side}"] = cells
        connect(m, preparation.o, cells.i)
        scheduled, lane = self.i.payload, preparation.i.payload
        is_control = scheduled.word.kind == InputKind.CONTROL
        m.d.comb += [
            preparation.i.valid.eq(self.i.valid),
            lane.word.kind.eq(Mux(is_control, InputKind.CONTROL, LANES[side])),
            *(lane[name].eq(scheduled[name]) for name in ("bounds", "limits", *decision_members())),
        ]
        m.d.comb += lane.word.body.tuple.eq(scheduled.word.body.both[side])
        with m.If(is_control):
            m.d.comb += lane.word.body.control.eq(scheduled.word.body.control)
        return cells.o

    def elaborate_order(self, m):
        """Pass on beside the lanes what a lane does not know: which tuples there are.

        Returns the stream into the first register and that out of the last.
        """
        word = self.i.payload.word
        shape = data.StructLayout({"kind": InputKind, "first": 1})
        stages = [StreamRegister(shape) for _ in range(self.latency)]
        for n, stage in enumerate(stages):
            m.submodules[f"order_{n}"] = stage
        for before, after in pairwise(stages):
            connect(m, before.o, after.i)
        first = stages[0].i
        m.d.comb += [
            first.valid.eq(self.i.valid),
            first.payload.kind.eq(word.kind),
            first.payload.first.eq(word.first),
        ]
        return first, stages[-1].o

# SPDX-License-Identifier: Apache-2.0
"""Turns a row of match bits into its lanes, one after another."""

from functools import reduce
from operator import or_

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hdl.streams.registers import StreamRegister

from .layouts import lane_matches_layout, match_layout

__all__ = ["LaneSerializer"]


def split(bits):
    """Return the lowest bit that is set, as a bit, and ``bits`` without it.

    Both come out of a carry chain: a bit is the lowest unless the borrow passes it. As logic,
    synthesis makes a step for every two or three bits of whatever tree it is given.
    """
    borrowed = (bits - 1)[: len(bits)]
    return bits & ~borrowed, bits & borrowed


def position(bits):
    """Return the number of the only bit that is set; zero if none is."""
    digits = range((len(bits) - 1).bit_length())
    return Cat(Cat(bits[n] for n in range(len(bits)) if n >> d & 1).any() for d in digits)


class LaneSerializer(wiring.Component):
    """Send a row lane by lane: the lanes that have a match, in order.

    The last row of a pass ends with its last lane, with matches or without. A row waits for one
    cycle, in which it is seen which of its lanes have something to send. The lane that is sent
    comes out of a register, a bit for each, so that no choice among all lanes waits for another.

    Latency: 3 cycles. Throughput: 1 lane per cycle.

    Parameters
    ----------
    parameters : JoinParameters
        Of the accelerator.
    bits : int
        Those of ``matches`` for each lane.

    Members
    -------
    i : In(stream.Signature(match_layout(parameters, bits)))
    o : Out(stream.Signature(lane_matches_layout(parameters, bits)))
    """

    def __init__(self, parameters, *, bits):
        self.parameters = parameters
        self.bits = bits
        self.latency = 3
        super().__init__(
            {
                "i": In(stream.Signature(match_layout(parameters, bits))),
                "o": Out(stream.Signature(lane_matches_layout(parameters, bits))),
            }
        )

    def elaborate(self, platform):
        m = Module()
        lanes = self.parameters.lanes
        m.submodules.output = output = StreamRegister(self.o.payload.shape())
        connect(m, output.o, flipped(self.o))

        waiting = Signal(match_layout(self.parameters, self.bits), reset_less=True)
        waits = Signal()  # there is such a row
        marked = Signal(lanes, reset_less=True)  # its lanes that are sent
        row = Signal(match_layout(self.parameters, self.bits), reset_less=True)  # being sent
        sending = Signal()  # there is such a row
        chosen = Signal(lanes, reset_less=True)  # the lane that is sent now, one-hot
        later = Signal(lanes, reset_less=True)  # those that follow
        more = Signal()  # there are such
        take = Signal()  # the row that waits is the next to be sent
        lane = output.i
        m.d.comb += [
            take.eq(~more & (lane.ready | ~sending)),
            lane.valid.eq(sending),
            lane.payload.matches.eq(Cat((matches & chosen).any() for matches in row.matches)),
            lane.payload.lane.eq(position(chosen)),
            lane.payload.row.eq(row.row),
            lane.payload.last.eq(row.last & chosen[-1]),
            lane.payload.ending.eq(row.ending),
            self.i.ready.eq(take | ~waits),
        ]
        with m.If(take):
            m.d.sync += [row.eq(waiting), sending.eq(waits)]
        with m.If(take | lane.ready):
            # Both outcomes are computed before it is known which row goes on.
            (first, rest), (following, remaining) = split(marked), split(later)
            m.d.sync += [
                chosen.eq(Mux(take, first, following)),
                later.eq(Mux(take, rest, remaining)),
                more.eq(Mux(take, rest.any() & waits, remaining.any())),
            ]
        with m.If(self.i.ready):
            ends = self.i.payload.last << lanes - 1
            m.d.sync += [
                waiting.eq(self.i.payload),
                waits.eq(self.i.valid),
                marked.eq(reduce(or_, self.i.payload.matches) | ends),
            ]
        return m

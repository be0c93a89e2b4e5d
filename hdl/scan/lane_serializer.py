# SPDX-License-Identifier: Apache-2.0
"""Lane serializer: splits a row of match bits into its lanes, one per cycle."""

from functools import reduce
from operator import or_

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hdl.streams.registers import StreamRegister

from .layouts import lane_matches_layout, match_layout

__all__ = ["LaneSerializer"]


def split(bits):
    """Return the lowest bit that is set, as a one-hot value, and ``bits`` without it.

    Both are computed by a carry chain: a set bit is the lowest one unless the borrow passes it.
    Mapped to LUTs, any tree takes one level per two or three bits.
    """
    borrowed = (bits - 1)[: len(bits)]
    return bits & ~borrowed, bits & borrowed


def position(bits):
    """Return the index of the only bit that is set; zero if none is."""
    digits = range((len(bits) - 1).bit_length())
    return Cat(Cat(bits[n] for n in range(len(bits)) if n >> d & 1).any() for d in digits)


class LaneSerializer(wiring.Component):
    """Send the lanes of a row that have a match, in order, one per cycle.

    The last row of a pass also sends its last lane. With rounds, lanes in which a round ends are
    sent as well. These lanes need no match. A row waits for one cycle while the lanes to send are
    determined. The current lane is held in a one-hot register, so that no two selections among all
    lanes follow each other in one cycle.

    Latency: 3 cycles. Throughput: 1 lane per cycle.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator.
    bits : int
        Width of ``matches`` for each lane.

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
        waits = Signal()  # `waiting` is valid
        marked = Signal(lanes, reset_less=True)  # lanes of `waiting` to send
        row = Signal(match_layout(self.parameters, self.bits), reset_less=True)  # row being sent
        sending = Signal()  # `row` is valid
        chosen = Signal(lanes, reset_less=True)  # current lane, one-hot
        later = Signal(lanes, reset_less=True)  # lanes left after the current one
        more = Signal()  # any of `later` is set
        take = Signal()  # `waiting` moves to `row`
        lane = output.i
        m.d.comb += [
            take.eq(~more & (lane.ready | ~sending)),
            lane.valid.eq(sending),
            lane.payload.matches.eq(Cat((matches & chosen).any() for matches in row.matches)),
            lane.payload.lane.eq(position(chosen)),
            lane.payload.row.eq(row.row),
            lane.payload.last.eq(row.last & chosen[-1]),
            lane.payload.ending.eq(row.ending),
            *self.rounds_of(lane.payload, row, chosen),
            self.i.ready.eq(take | ~waits),
        ]
        with m.If(take):
            m.d.sync += [row.eq(waiting), sending.eq(waits)]
        with m.If(take | lane.ready):
            # Both outcomes are computed before it is known which of them is needed.
            (first, rest), (following, remaining) = split(marked), split(later)
            m.d.sync += [
                chosen.eq(Mux(take, first, following)),
                later.eq(Mux(take, rest, remaining)),
                more.eq(Mux(take, rest.any() & waits, remaining.any())),
            ]
        with m.If(self.i.ready):
            ends = self.i.payload.last << lanes - 1
            if self.parameters.rounds:
                ends |= self.i.payload.ends
            m.d.sync += [
                waiting.eq(self.i.payload),
                waits.eq(self.i.valid),
                marked.eq(reduce(or_, self.i.payload.matches) | ends),
            ]
        return m

    def rounds_of(self, lane, row, chosen):
        """Return the assignments of what the chosen lane of a row says about rounds."""
        if not self.parameters.rounds:
            return []
        return [lane.rounds.eq(row.rounds), lane.ends.eq((row.ends & chosen).any())]

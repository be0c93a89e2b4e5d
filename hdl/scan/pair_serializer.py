# SPDX-License-Identifier: Apache-2.0
"""Pair serializer: turns the match bits of a lane into one result word per cycle."""

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hdl.streams.registers import StreamRegister
from hdl.words.results import ResultKind, node_result
from hdl.words.rounds import round_of

from .layouts import lane_matches_layout

__all__ = ["PairSerializer"]


def lowest(bits):
    """Return the index of the lowest bit that is set, and ``bits`` without that bit."""
    index = Const(0, range(len(bits)))
    for n in reversed(range(len(bits))):
        index = Mux(bits[n], n, index)
    return index[: (len(bits) - 1).bit_length()], bits & (bits - 1)[: len(bits)]


class PairSerializer(wiring.Component):
    """Send each match as a pair, in order of probe, then the star and the mark of the group.

    With rounds, the star of a round follows the pairs of its last lane.

    Latency: 2 cycles. Throughput: 1 word per cycle.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator.

    Members
    -------
    i : In(stream.Signature(lane_matches_layout(parameters, probes)))
    o : Out(stream.Signature(node_result(parameters, 0)))
    """

    def __init__(self, parameters):
        self.parameters = parameters
        self.latency = 2
        super().__init__(
            {
                "i": In(stream.Signature(lane_matches_layout(parameters, parameters.probes))),
                "o": Out(stream.Signature(node_result(parameters, 0))),
            }
        )

    def elaborate(self, platform):
        m = Module()
        probes = self.parameters.probes
        m.submodules.output = output = StreamRegister(self.o.payload.shape(), early=["kind"])
        connect(m, output.o, flipped(self.o))

        lane = Signal(lane_matches_layout(self.parameters, self.parameters.probes), reset_less=True)
        loaded = Signal()
        rounds = self.parameters.rounds
        todo = Signal(probes + rounds + 2)  # pairs, star of a round, star, mark
        index, rest = lowest(todo)
        base = Signal(self.parameters.probe_bits)  # probes since the last star, before this group
        word = output.i
        pair = word.payload.body.pair
        is_pair = todo[:probes].any()
        done = Signal()
        m.d.comb += [
            word.valid.eq(todo.any()),
            done.eq((rest == 0) & (word.ready | ~word.valid)),
            self.i.ready.eq(done),
        ]
        with m.If(is_pair):
            m.d.comb += [
                word.payload.kind.eq(ResultKind.PAIR),
                pair.probe.eq(base + index),
                pair.lane.eq(lane.lane),
                pair.row.eq(lane.row),
            ]
        with m.Else():
            m.d.comb += [
                word.payload.kind.eq(Mux(todo[:-1].any(), ResultKind.STAR, ResultKind.MARK)),
                word.payload.body.punctuation.eq(lane.ending.punctuation),
            ]
            if rounds:
                self.elaborate_star(m, word.payload.body.punctuation, todo[probes:])
        if rounds:
            m.d.comb += word.payload.round.eq(
                round_of(m, self.parameters, lane.rounds, lane.lane, lane.row)
            )
        with m.If(word.ready):
            m.d.sync += todo.eq(rest)
        with m.If(done):
            following = self.i.payload
            star, mark = following.ending.star, following.ending.mark
            m.d.sync += loaded.eq(self.i.valid)
            with m.If(self.i.valid):
                punctuation = Cat(star, mark) & following.last.replicate(2)
                ends = following.ends if rounds else Const(0, 0)
                m.d.sync += [lane.eq(following), todo.eq(Cat(following.matches, ends, punctuation))]
            with m.If(loaded & lane.last):
                m.d.sync += base.eq(Mux(lane.ending.star, 0, base + lane.ending.count))
        return m

    def elaborate_star(self, m, punctuation, todo):
        """Let the star of a round report no faults, and only that star and a mark be ``inner``."""
        of_round, star, _ = todo
        with m.If(of_round):
            m.d.comb += [Value.cast(punctuation).eq(0), punctuation.inner.eq(1)]
        with m.Elif(star):
            m.d.comb += punctuation.inner.eq(0)

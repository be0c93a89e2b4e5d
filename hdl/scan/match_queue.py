# SPDX-License-Identifier: Apache-2.0
"""Turns rows of match bits into one result word per cycle."""

from functools import reduce
from operator import or_

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hdl.streams.pointer_queue import PointerQueue
from hdl.streams.registers import StreamRegister
from hdl.words.results import ResultKind, node_result

from .layouts import lane_matches_layout, match_layout

__all__ = ["LaneSerializer", "MatchQueue", "PairSerializer"]


def lowest(bits):
    """Return the lowest bit that is set, as a number, and ``bits`` without it."""
    index = Const(0, range(len(bits)))
    for n in reversed(range(len(bits))):
        index = Mux(bits[n], n, index)
    return index[: (len(bits) - 1).bit_length()], bits & (bits - 1)[: len(bits)]


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


class PairSerializer(wiring.Component):
    """Send each match as a pair, in order of probe, then the star and the mark of the group.

    Latency: 2 cycles. Throughput: 1 word per cycle.

    Parameters
    ----------
    parameters : JoinParameters
        Of the accelerator.

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
        todo = Signal(probes + 2)  # pairs, then star, then mark
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
                word.payload.kind.eq(Mux(todo[probes], ResultKind.STAR, ResultKind.MARK)),
                word.payload.body.punctuation.eq(lane.ending.punctuation),
            ]
        with m.If(word.ready):
            m.d.sync += todo.eq(rest)
        with m.If(done):
            following = self.i.payload
            star, mark = following.ending.star, following.ending.mark
            m.d.sync += loaded.eq(self.i.valid)
            with m.If(self.i.valid):
                punctuation = Cat(star, mark) & following.last.replicate(2)
                m.d.sync += [lane.eq(following), todo.eq(Cat(following.matches, punctuation))]
            with m.If(loaded & lane.last):
                m.d.sync += base.eq(Mux(lane.ending.star, 0, base + lane.ending.count))
        return m


class MatchQueue(wiring.Component):
    """Queue the rows that have matches, and send each match as a pair, in order of lane and probe.

    After the last row of a pass follow its star and its mark, if it has them. The scan goes on
    while a crowded row is sent, until the queue is so full that the rows in flight would not fit.

    With digests, there is one bit for each lane: whether some probe may match. These candidates
    leave lane by lane, and what comes back as ``verified`` is sent.

    Latency: :attr:`latency` cycles from ``matches`` to the first word: 3, and 3 more with several
    lanes; verifying comes on top of that. Throughput: 1 word per cycle.

    Parameters
    ----------
    parameters : JoinParameters
        Of the accelerator.
    in_flight : int
        Rows that may still come after ``room`` fell.
    depth : int
        Rows that can wait, a power of two.
    bits : int
        Those of ``matches`` for each lane.

    Members
    -------
    matches_valid : In(1)
    matches : In
    room : Out(1)
        From a register.
    results : Out(stream.Signature(node_result(parameters, 0)))
    candidates : Out(stream.Signature(lane_matches_layout(parameters, 1)))
    verified : In(stream.Signature(lane_matches_layout(parameters, probes)))
        Both only with digests.
    """

    def __init__(self, parameters, *, in_flight, bits, depth=16):
        if depth <= in_flight:
            raise ValueError(f"A queue of {depth} rows cannot hold {in_flight} rows in flight")
        self.parameters = parameters
        self.in_flight = in_flight
        self.depth = depth
        self.bits = bits
        self._lanes = LaneSerializer(parameters, bits=bits) if parameters.lanes > 1 else None
        self._pairs = PairSerializer(parameters)
        self.latency = 1 + self._pairs.latency + (self._lanes.latency if self._lanes else 0)
        self._looped = parameters.digest_bits is not None
        loop = {
            "candidates": Out(stream.Signature(lane_matches_layout(parameters, 1))),
            "verified": In(stream.Signature(lane_matches_layout(parameters, parameters.probes))),
        }
        super().__init__(
            {
                "matches_valid": In(1),
                "matches": In(match_layout(parameters, bits)),
                "room": Out(1),
                "results": Out(stream.Signature(node_result(parameters, 0))),
                **(loop if self._looped else {}),
            }
        )

    def elaborate(self, platform):
        m = Module()
        layout = match_layout(self.parameters, self.bits)
        m.submodules.queue = queue = PointerQueue(layout, depth=self.depth, reserve=self.in_flight)
        m.submodules.pairs = pairs = self._pairs
        connect(m, pairs.o, flipped(self.results))
        m.d.comb += [
            queue.last.eq(self.matches),
            queue.add.eq(self.matches_valid),
            self.room.eq(queue.room),
        ]

        rows = stream.Signature(layout).create()
        m.d.comb += [
            rows.valid.eq(queue.filled),
            rows.payload.eq(queue.first),
            queue.take.eq(rows.valid & rows.ready),
        ]
        found = pairs.i
        if self._looped:
            connect(m, flipped(self.verified), pairs.i)
            found = flipped(self.candidates)
        if self._lanes:
            m.submodules.lanes = lanes = self._lanes
            connect(m, rows, lanes.i)
            connect(m, lanes.o, found)
        else:
            only = found.payload
            m.d.comb += [
                found.valid.eq(rows.valid),
                rows.ready.eq(found.ready),
                only.matches.eq(Value.cast(rows.payload.matches)),
                only.row.eq(rows.payload.row),
                only.last.eq(rows.payload.last),
                only.ending.eq(rows.payload.ending),
            ]
        return m

# SPDX-License-Identifier: Apache-2.0
"""Proofs about how a scan turns match bits into results."""

from amaranth import *

from hdl.scan import lane_serializer, pair_serializer
from hdl.scan.lane_serializer import LaneSerializer
from hdl.scan.match_queue import MatchQueue
from hdl.scan.pair_serializer import PairSerializer
from hdl.words.results import ResultKind

from .bench import Bench
from .proof import Proof
from .small import scan_parameters
from .stream_rules import answers_within, keeps_sequence, offer, take

__all__ = ["PROOFS"]


class Numbering:
    """Number of probes since the last star, before each group that enters."""

    def __init__(self, bench, put, ending, last):
        bits = 2
        self.base = bench.register(bits, "base")
        following = Mux(ending.star, 0, self.base + ending.count)
        bench.next(self.base.eq(Mux(put & last, following, self.base)))


def pair_serializer_bench():
    """Lanes with any matches of two probes, then star and mark."""
    parameters = scan_parameters()
    bench = Bench()
    dut = bench.add(PairSerializer(parameters))
    put = offer(bench, dut.i)
    got = take(bench, dut.o, "output")
    lane = dut.i.payload
    base = Numbering(bench, put, lane.ending, lane.last).base
    parts = Cat(lane.matches, lane.last & lane.ending.star, lane.last & lane.ending.mark)
    kept = bench.wire(Cat(base, lane.lane, lane.row, lane.ending.punctuation.as_value()))
    shape = len(lane.row)

    def is_part(held, n):
        number, lane_number, row = held[:2], held[2], held[3 : 3 + shape]
        return result_is(dut.o.payload, n, number, lane_number, row, held[3 + shape :], 2)

    inside = keeps_sequence(bench, "serializer", put, parts, kept, got, is_part, most=6)
    stuck = dut.o.ready & ~dut.o.valid & (inside != 0)
    answers_within(bench, "a word leaves while any is inside", stuck, dut.latency)
    idle = dut.i.valid & ~dut.i.ready & dut.o.ready
    answers_within(bench, "a lane is taken as soon as its words are sent", idle, 6)
    keeps_up(bench, dut, parts.any())
    bench.cover("a mark follows a star", got & (dut.o.payload.kind == ResultKind.MARK))
    return bench


def keeps_up(bench, dut, brings):
    """Claim that a word leaves in every cycle while input is offered and the output is taken."""
    going = bench.register(range(dut.latency + 2), "going")
    busy = dut.i.valid & brings & dut.o.ready
    bench.next(going.eq(Mux(busy, going + (going <= dut.latency), 0)))
    bench.claim("a word leaves in every cycle", (going <= dut.latency) | ~busy | dut.o.valid)


def result_is(word, n, number, lane, row, punctuation, pairs):
    """Return whether a word is the ``n``-th of a lane: one of its pairs, its star, or its mark."""
    if n < pairs:
        pair = word.body.pair
        return (
            (word.kind == ResultKind.PAIR)
            & (pair.probe == (number + n)[: len(pair.probe)])
            & (pair.lane == lane)
            & (pair.row == row)
        )
    kind = ResultKind.STAR if n == pairs else ResultKind.MARK
    return (word.kind == kind) & (word.body.punctuation.as_value() == punctuation)


def lane_serializer_bench():
    """Rows of three lanes with two bits each."""
    parameters = scan_parameters(lanes=3)
    bench = Bench()
    dut = bench.add(LaneSerializer(parameters, bits=2))
    put = offer(bench, dut.i)
    got = take(bench, dut.o, "output")
    row, lane = dut.i.payload, dut.o.payload
    parts = bench.wire(lanes_of(row))
    bench.assume(~dut.i.valid | parts.any())  # other rows are not queued
    kept = bench.wire(Value.cast(row))

    def is_part(held, n):
        of = bench.view(row, held)
        return (
            (lane.lane == n)
            & (lane.matches == matches_of(of, n))
            & (lane.row == of.row)
            & (lane.last == (of.last & (n == 2)))
            & (lane.ending.as_value() == of.ending.as_value())
        )

    inside = keeps_sequence(bench, "serializer", put, parts, kept, got, is_part, most=12)
    stuck = dut.o.ready & ~dut.o.valid & (inside != 0)
    answers_within(bench, "a lane leaves while any is inside", stuck, dut.latency)
    idle = dut.i.valid & ~dut.i.ready & dut.o.ready
    answers_within(bench, "a row is taken as soon as the lanes before it are sent", idle, 6)
    keeps_up(bench, dut, C(1))
    bench.cover("the last lane leaves without matches", got & lane.last & (lane.matches == 0))
    return bench


def lanes_of(row):
    """Return the lanes of a row that leave: those with a match, and the last one of a pass."""
    some = [matches_of(row, n).any() for n in range(3)]
    return Cat(*some[:-1], some[-1] | row.last)


def matches_of(row, lane):
    """Return the match bits of one lane of a row."""
    return Cat(Value.cast(bits)[lane] for bits in row.matches)


def match_queue_bench():
    """Rows of two lanes that arrive if there was room a cycle ago."""
    parameters = scan_parameters()
    in_flight = 2
    bench = Bench()
    dut = bench.add(MatchQueue(parameters, in_flight=in_flight, bits=2, depth=4))
    comes = bench.any(1, "comes")
    row = bench.any(dut.matches.shape(), "row")
    bench.set(dut.matches_valid, comes)
    bench.set(Value.cast(dut.matches), Value.cast(row))
    # A row is read while there is room, and arrives a cycle later. So a row that was read before
    # `room` fell arrives in addition to those that the register does not account for yet.
    bench.assume(~comes | bench.past(dut.room, init=1))
    got = take(bench, dut.results, "results")
    base = Numbering(bench, comes, row.ending, row.last).base
    matches = Cat(matches_of(row, lane) for lane in range(2))
    parts = Cat(matches, row.last & row.ending.star, row.last & row.ending.mark)
    kept = bench.wire(Cat(base, row.row, row.ending.punctuation.as_value()))
    bits = len(row.row)

    def is_part(held, n):
        number, place = held[:2], held[2 : 2 + bits]
        if n >= 4:
            return result_is(dut.results.payload, n, 0, 0, 0, held[2 + bits :], 4)
        probe, lane = n % 2, n // 2
        return result_is(dut.results.payload, 0, number + probe, lane, place, 0, 1)

    inside = keeps_sequence(bench, "queue", comes, parts, kept, got, is_part, most=60)
    queue = bench.inside(dut, "queue")
    bench.claim("rows in flight fit when there is no room", queue.level <= 4)
    bench.claim(
        "room says that more than the rows in flight would have fitted",
        dut.room == (bench.past(queue.level) < 4 - in_flight),
    )
    # A row without matches that ends nothing takes a cycle of its own.
    stuck = dut.results.ready & ~dut.results.valid & (inside != 0)
    answers_within(bench, "a word leaves while any is inside", stuck, dut.latency + 2)
    bench.cover("queue is full", queue.level == 4)
    return bench


PROOFS = [
    Proof(
        name="pair-serializer",
        says="each match leaves once, in the order of probes, then star and mark, numbered from the"
        " last star",
        component="PairSerializer, 2 probes",
        build=pair_serializer_bench,
        depth=9,
        mutate=(PairSerializer, pair_serializer.lowest),
        spared={"without word.payload.kind.eq(ResultKind.PAIR)": "a PAIR is zero"},
    ),
    Proof(
        name="lane-serializer",
        says="each lane with a match leaves once, in order, and the last one of a pass",
        component="LaneSerializer, 3 lanes",
        build=lane_serializer_bench,
        depth=10,
        mutate=(LaneSerializer, lane_serializer.split, lane_serializer.position),
        spared=dict.fromkeys(
            ("if n >> d & 1)).any()", "len(bits) - 1 -> len(bits) + 1"),
            "of three lanes, one has each digit, and none a third one",
        ),
    ),
    Proof(
        name="match-queue",
        says="rows that come while there was room leave as their matches, in order; none is lost",
        component="MatchQueue, 4 rows of 2 lanes and 2 probes",
        build=match_queue_bench,
        depth=12,
        mutate=(MatchQueue,),
    ),
]

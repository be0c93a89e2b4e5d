# SPDX-License-Identifier: Apache-2.0
"""Proofs about how a scan turns match bits into results."""

from amaranth import *

from hdl.scan import serializers as lane_serializer
from hdl.scan import serializers as pair_serializer
from hdl.scan.serializers import LaneSerializer, MatchQueue, PairSerializer
from hdl.words import values as rounds
from hdl.words.results import ResultKind
from hdl.words.values import longest_round

from .proof import proof
from .small import scan_parameters
from .stream_rules import answers_within, keeps_sequence, offer, take

__all__ = ["keeps_up"]


class Numbering:
    """Number of probes since the last star, before each group that enters."""

    def __init__(self, bench, put, ending, last):
        bits = 2
        self.base = bench.register(bits, "base")
        following = Mux(ending.star, 0, self.base + ending.count)
        bench.next(self.base.eq(Mux(put & last, following, self.base)))


def pair_serializer_bench(bench, parameters):
    """Lanes with any matches of the probes, the end of a round, star and mark."""
    dut = bench.add(PairSerializer(parameters))
    put = offer(bench, dut.i)
    got = take(bench, dut.o, "output")
    lane, probes = dut.i.payload, parameters.engine.probes
    base = Numbering(bench, put, lane.ending, lane.last).base
    ends = Cat(lane.last & lane.ending.star, lane.last & lane.ending.mark)
    parts = (
        Cat(lane.matches, lane.ends, ends) if parameters.engine.rounds else Cat(lane.matches, ends)
    )
    held_lane = bench.wire(Value.cast(lane))

    def is_part(held, n):
        of, number = bench.view(lane, held[2:]), held[:2]
        punctuation = of.ending.punctuation
        if parameters.engine.rounds:
            return of_round(bench, parameters, dut.o.payload, n, number, of)
        return result_is(dut.o.payload, n, number, of.lane, of.row, punctuation.as_value(), probes)

    inside = keeps_sequence(
        bench, "serializer", put, parts, Cat(base, held_lane), got, is_part, most=6
    )
    stuck = dut.o.ready & ~dut.o.valid & (inside != 0)
    answers_within(bench, "a word leaves while any is inside", stuck, dut.latency)
    idle = dut.i.valid & ~dut.i.ready & dut.o.ready
    answers_within(bench, "a lane is taken as soon as its words are sent", idle, 6)
    keeps_up(bench, dut, parts.any())
    bench.cover("a mark follows a star", got & (dut.o.payload.kind == ResultKind.MARK))


def of_round(bench, parameters, word, n, number, lane):
    """Return whether a word is the ``n``-th of a lane with rounds, and has its round.

    A lane gives its pair, the star of a round, the star of the probe, and a mark, in this order.
    """
    punctuation, said = lane.ending.punctuation, word.body.punctuation
    place, round_ = Cat(lane.lane, lane.row), C(0, 2)
    for code in range(1, longest_round(parameters) + 2):  # rounds of 2 ** (code - 1) keys
        round_ = Mux(lane.rounds == code, place[code - 1 :], round_)
    has_round = word.round == round_[:2]
    if n == 0:
        return has_round & result_is(word, 0, number, lane.lane, lane.row, 0, 1)
    if n == 1:
        is_star = word.kind == ResultKind.STAR
        return has_round & is_star & said.inner & (said.as_value()[:-1] == 0)
    kept = bench.view(punctuation, punctuation.as_value())
    told = Cat(kept.as_value()[:-1], kept.inner & (n == 3))
    return result_is(word, n - 1, number, lane.lane, lane.row, told, 1)


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


def lane_serializer_bench(bench, parameters):
    """Rows of lanes with two bits each, in which rounds may end."""
    dut = bench.add(LaneSerializer(parameters, bits=2))
    put = offer(bench, dut.i)
    got = take(bench, dut.o, "output")
    row, lane = dut.i.payload, dut.o.payload
    parts = bench.wire(
        lanes_of(row, parameters.engine.lanes) | (row.ends if parameters.engine.rounds else 0)
    )
    bench.assume(~dut.i.valid | parts.any())  # other rows are not queued
    kept = bench.wire(Value.cast(row))

    def is_part(held, n):
        of = bench.view(row, held)
        rounds = C(1)
        if parameters.engine.rounds:
            rounds = (lane.rounds == of.rounds) & (lane.ends == of.ends[n])
        return (
            rounds
            & (lane.lane == n)
            & (lane.matches == matches_of(of, n))
            & (lane.row == of.row)
            & (lane.last == (of.last & (n == parameters.engine.lanes - 1)))
            & (lane.ending.as_value() == of.ending.as_value())
        )

    inside = keeps_sequence(bench, "serializer", put, parts, kept, got, is_part, most=12)
    stuck = dut.o.ready & ~dut.o.valid & (inside != 0)
    answers_within(bench, "a lane leaves while any is inside", stuck, dut.latency)
    idle = dut.i.valid & ~dut.i.ready & dut.o.ready
    answers_within(bench, "a row is taken as soon as the lanes before it are sent", idle, 6)
    keeps_up(bench, dut, C(1))
    bench.cover("the last lane leaves without matches", got & lane.last & (lane.matches == 0))
    if parameters.engine.rounds:
        bench.cover("a round ends without a match", got & lane.ends & (lane.matches == 0))


def lanes_of(row, lanes):
    """Return the lanes of a row that leave: those with a match, and the last one of a pass."""
    some = [matches_of(row, n).any() for n in range(lanes)]
    return Cat(*some[:-1], some[-1] | row.last)


def matches_of(row, lane):
    """Return the match bits of one lane of a row."""
    return Cat(Value.cast(bits)[lane] for bits in row.matches)


@proof(
    "match-queue",
    says="rows that come while there was room leave as their matches, in order; none is lost",
    component="MatchQueue, 4 rows of 2 lanes and 2 probes",
    depth=12,
    mutate=(MatchQueue,),
)
def match_queue_bench(bench):
    """Rows of two lanes that arrive if there was room a cycle ago."""
    parameters = scan_parameters()
    in_flight = 2
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


proof(
    "pair-serializer",
    says="each match leaves once, in the order of probes, then star and mark, numbered from the"
    " last star",
    component="PairSerializer, 2 probes",
    depth=9,
    mutate=(PairSerializer, pair_serializer.lowest),
    spared={"without word.payload.kind.eq(ResultKind.PAIR)": "a PAIR is zero"},
    given={"parameters": scan_parameters()},
)(pair_serializer_bench)
proof(
    "pair-serializer-rounds",
    says="… and the star of a round after the match that ends it, both with the round's number",
    component="PairSerializer with rounds, 1 probe",
    depth=9,
    mutate=(PairSerializer, rounds.round_of),
    spared={
        "without word.payload.kind.eq(ResultKind.PAIR)": "a PAIR is zero",
        **dict.fromkeys(
            ("todo[:probes].any() -> ", "base + index -> "),
            "there is one probe: pair-serializer",
        ),
    },
    given={"parameters": scan_parameters(probes=1).with_(rounds=True)},
)(pair_serializer_bench)
proof(
    "lane-serializer",
    says="each lane with a match leaves once, in order, and the last one of a pass",
    component="LaneSerializer, 3 lanes",
    depth=10,
    mutate=(LaneSerializer, lane_serializer.split, lane_serializer.position),
    spared=dict.fromkeys(
        ("if n >> d & 1)).any()", "len(bits) - 1 -> len(bits) + 1"),
        "of three lanes, one has each digit, and none a third one",
    ),
    given={"parameters": scan_parameters(lanes=3)},
)(lane_serializer_bench)
proof(
    "lane-serializer-rounds",
    says="… and each lane in which a round ends",
    component="LaneSerializer with rounds, 2 lanes",
    depth=10,
    mutate=(LaneSerializer,),
    spared={"remaining.any() -> ": "of two lanes, none is left after the second: lane-serializer"},
    given={"parameters": scan_parameters().with_(rounds=True)},
)(lane_serializer_bench)

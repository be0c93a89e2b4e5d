# SPDX-License-Identifier: Apache-2.0
"""Proofs about the queues of both engines."""

from amaranth import *

from hdl.index.walk_queue import WalkQueue
from hdl.parameters import JoinParameters, KeyField
from hdl.scan import lane_serializer, pair_serializer
from hdl.scan.group_collector import GroupCollector
from hdl.scan.lane_serializer import LaneSerializer
from hdl.scan.match_queue import MatchQueue
from hdl.scan.pair_serializer import PairSerializer
from hdl.scan.population import PopulationCount
from hdl.words.results import ResultKind

from .bench import Bench
from .proof import Proof
from .stream_rules import answers_within, keeps_sequence, offer, take

__all__ = ["PROOFS"]


def scan_parameters(lanes=2, probes=2):
    """Return small parameters of a scan."""
    return JoinParameters(
        cores=2, sub_window=2, lanes=lanes, probes=probes, probe_bits=2,
        keys=(KeyField(name="x", bits=1),),
    )  # fmt: skip


def index_parameters():
    """Return small parameters of an index with two banks."""
    return JoinParameters(
        cores=8, sub_window=1, keys=(KeyField(name="x", bits=1),), engine="index", probe_bits=0,
        bucket_bits=2,
    )  # fmt: skip


class Numbering:
    """Numbers of probes since the last star, as the groups go in."""

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
    bench.cover("a mark follows a star", got & (dut.o.payload.kind == ResultKind.MARK))
    return bench


def result_is(word, n, number, lane, row, punctuation, pairs):
    """Return whether a word is the ``n``-th of a lane: of its pairs, or its star, or its mark."""
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
    """Rows of three lanes, two bits each."""
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
    bench.cover("the last lane leaves without matches", got & lane.last & (lane.matches == 0))
    return bench


def lanes_of(row):
    """Return which lanes of a row leave: those with a match, and the last one of a pass."""
    some = [matches_of(row, n).any() for n in range(3)]
    return Cat(*some[:-1], some[-1] | row.last)


def matches_of(row, lane):
    """Return the bits of one lane of a row."""
    return Cat(Value.cast(bits)[lane] for bits in row.matches)


def match_queue_bench():
    """Rows of two lanes that come while there was room, and two more."""
    parameters = scan_parameters()
    in_flight = 2
    bench = Bench()
    dut = bench.add(MatchQueue(parameters, in_flight=in_flight, bits=2, depth=4))
    comes = bench.any(1, "comes")
    row = bench.any(dut.matches.shape(), "row")
    bench.set(dut.matches_valid, comes)
    bench.set(Value.cast(dut.matches), Value.cast(row))
    # Rows set out while there is room, and are under way for two cycles.
    bench.assume(~comes | bench.past(bench.past(dut.room)))
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

    inside = keeps_sequence(bench, "queue", comes, parts, kept, got, is_part, most=48)
    queue = bench.inside(dut, "queue")
    bench.claim("rows in flight fit when there is no room", queue.level <= 4)
    bench.claim(
        "room says that more than the rows in flight would have fitted",
        dut.room == (bench.past(queue.level) < 4 - in_flight),
    )
    # A row without matches that ends nothing takes a cycle of its own.
    stuck = dut.results.ready & ~dut.results.valid & (inside != 0)
    answers_within(bench, "a word leaves while any is inside", stuck, dut.latency + 6)
    bench.cover("queue is full", queue.level == 4)
    return bench


class DeepWalkQueue(WalkQueue):
    """A queue that is not too deep to be looked through, but has the short queue of a deep one."""

    SHALLOW = 2


def walk_queue_bench(kind):
    """Return a function that builds the bench of a queue of walks."""

    def build():
        in_flight = 2
        bench = Bench()
        dut = bench.add(kind(index_parameters(), depth=4, in_flight=in_flight))
        begin = bench.any(2, "begin")
        walks = bench.any(dut.walks.shape(), "walks")
        take_it = bench.any(1, "take")
        bench.set(dut.begin, begin)
        bench.set(Value.cast(dut.walks), Value.cast(walks))
        bench.set(dut.take, take_it)
        bench.assume(~take_it | dut.filled)
        bench.assume((begin == 0) | bench.past(dut.ready, init=1))
        first = dut.first

        def is_part(held, n):
            of = bench.view(walks, held)
            same = Cat(first[name] == of[name] for name in ("probe", "group", "queue")).all()
            entry = of.entries[n]
            return same & Cat(first[name] == entry[name] for name, _ in entry.shape()).all()

        most = 2 * (4 + (8 if kind is DeepWalkQueue else 0))
        inside = keeps_sequence(
            bench,
            "queue",
            begin.any(),
            begin,
            bench.wire(Value.cast(walks)),
            take_it,
            is_part,
            most=most,
        )
        queue = bench.inside(dut, "m").submodules["queue"]
        bench.claim("walks in flight fit when it is not ready", queue.level <= 4)
        bench.claim(
            "ready says that more than those in flight would have fitted",
            dut.ready == (bench.past(queue.level) < 4 - in_flight),
        )
        stuck = ~dut.filled & (inside != 0)
        answers_within(bench, "a walk is shown while any is inside", stuck, 2)
        bench.claim("nothing is shown that is not there", ~dut.filled | (inside != 0))
        bench.cover("queue stops the visits", ~dut.ready)
        return bench

    return build


def group_collector_bench():
    """Groups of up to two probes, held for two cycles."""
    parameters = scan_parameters()
    bench = Bench()
    dut = bench.add(GroupCollector(parameters, hold=2))
    add, close = bench.any(1, "add"), bench.any(1, "close")
    span, ending = bench.any(dut.span.shape(), "span"), bench.any(dut.ending.shape(), "ending")
    second, stop = bench.any(len(dut.second), "second"), bench.any(len(dut.stop), "stop")
    for name, value in (
        ("add", add), ("close", close), ("second", second), ("stop", stop),
    ):  # fmt: skip
        bench.set(getattr(dut, name), value)
    bench.set(Value.cast(dut.span), Value.cast(span))
    bench.set(Value.cast(dut.ending), Value.cast(ending))
    bench.assume(~(add | close) | dut.ready)
    count = bench.register(2, "count")
    bench.assume(~add | (count < 2))
    # A full group is closed by its last probe.
    bench.assume(close | ~(add & (count == 1)))
    got = take(bench, dut.group, "group")
    members = {
        "first": (span.tail.row, bench.wire((add | close) & (count == 0))),
        "second": (second, bench.wire((add | close) & (count == 0))),
        "oldest_head": (span.head.row, bench.wire((add | close) & (count == 0))),
        "stop": (stop, add),
        "newest_tail": (span.tail.row, add),
    }
    bench.next(count.eq(Mux(close, 0, count + add)))
    waits = bench.register(1, "waits")
    bench.next(waits.eq((waits | close) & ~got))
    held = bench.register(2, "held")
    bench.next(held.eq(Mux(close, count + add, held)))
    bench.claim("a closed group waits until it is taken", dut.group.valid == waits)
    bench.claim("count is that of its probes", ~waits | (dut.group.payload.ending.count == held))
    bench.claim("probes held are counted", waits | (dut.count == count))
    last = bench.register(len(ending.as_value()), "ending")
    bench.next(last.eq(Mux(close, ending.as_value(), last)))
    said = bench.view(ending, last)
    for name in ("star", "mark", "punctuation"):
        bench.claim(
            f"a group keeps its {name}",
            ~waits | (Value.cast(dut.group.payload.ending[name]) == Value.cast(said[name])),
        )
    for name, (value, changes) in members.items():
        kept, known = bench.register(len(value), name), bench.register(1, "known")
        bench.next(
            kept.eq(Mux(changes, value, kept)),
            known.eq(changes | (known & ~(got & (name in ("stop", "newest_tail"))))),
        )
        bench.claim(
            f"a group keeps its {name}", ~waits | ~known | (dut.group.payload[name] == kept)
        )
    bench.claim("a probe goes to the next slot", dut.add_to == Mux(add, 1 << count, 0))
    bench.claim(
        "ready was told a cycle before", bench.first() | (dut.ready == bench.past(dut.soon))
    )
    bench.claim(
        "nothing is added while a group waits, or is held", ~dut.ready | ~(waits | bench.past(got))
    )
    free = bench.register(2, "free")
    bench.next(free.eq(Mux(waits & ~got | close, 0, free + (free != 3))))
    bench.claim(
        "a group can begin as soon as the last one is not held",
        (free < 2) | dut.ready | bench.past(close),
    )
    bench.cover("a group of two is taken", got & (held == 2))
    bench.cover("a group of none is taken", got & (held == 0))
    return bench


def population_bench():
    """Five bits, counted in two steps."""
    bench = Bench()
    dut = bench.add(PopulationCount(5))
    update, value = bench.any(1, "update"), bench.any(5, "value")
    bench.set(dut.update, update)
    bench.set(dut.i, value)
    counted = bench.register(3, "counted")
    known = bench.register(1, "known")
    bench.next(
        counted.eq(Mux(update, sum(value[n] for n in range(5)), counted)), known.eq(known | update)
    )
    bench.claim("ones are counted", ~bench.past(known) | (dut.o == bench.past(counted)))
    sums = bench.register(3, "counts")
    bench.next(sums.eq(counted))
    bench.cover("five are counted", bench.past(known) & (dut.o == 5))
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
    ),
    Proof(
        name="lane-serializer",
        says="each lane with a match leaves once, in order, and the last one of a pass",
        component="LaneSerializer, 3 lanes",
        build=lane_serializer_bench,
        depth=10,
        mutate=(LaneSerializer, lane_serializer.split, lane_serializer.position),
    ),
    Proof(
        name="match-queue",
        says="rows that come while there was room leave as their matches, in order; none is lost",
        component="MatchQueue, 4 rows of 2 lanes and 2 probes",
        build=match_queue_bench,
        depth=10,
        mutate=(MatchQueue,),
    ),
    *(
        Proof(
            name=name,
            says="the walks of a visit set out once each, in order; those in flight find room",
            component=f"WalkQueue, 4 visits, 2 banks{also}",
            build=walk_queue_bench(kind),
            depth=11,
            mutate=(WalkQueue,),
        )
        for name, kind, also in (
            ("walk-queue", WalkQueue, ""),
            ("walk-queue-deep", DeepWalkQueue, ", with the short queue of a deep one"),
        )
    ),
    Proof(
        name="group-collector",
        says="a group has its own probes, rows and ending, and waits until it is taken",
        component="GroupCollector, 2 probes, held for 2 cycles",
        build=group_collector_bench,
        depth=10,
        mutate=(GroupCollector,),
    ),
    Proof(
        name="population-count",
        says="the ones of a word are counted",
        component="PopulationCount, 5 bits",
        build=population_bench,
        depth=6,
        mutate=(PopulationCount,),
    ),
]

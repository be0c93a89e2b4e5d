# SPDX-License-Identifier: Apache-2.0
"""Proofs about the gathering trees of results, and about the queues of the order of turns."""

from amaranth import *

from hdl.trees.merger import Merger, MergerTree, OrderedMerger, OrderedMergerTree
from hdl.trees.order_queue import OrderQueue, TurnQueue, Turns
from hdl.words.results import ResultKind

from .proof import proof
from .small import SMALL
from .stream_rules import (
    answers_within,
    early_states,
    entries_states,
    held_in,
    keeps_order,
    keeps_sequence,
    offer,
    register_states,
    take,
)

__all__ = ["ports_keep_order", "queued_turns", "turns_of"]

# Proofs about the result gathering tree.


def pair_of(bench, dut, word, port):
    """Return an output word as it was at a port: whether it is a stop, and the pair."""
    stops = word.kind != ResultKind.PAIR
    pair, shape = word.body.pair, dut.i[port].payload.body.pair
    core = pair.core[: len(shape.core)]
    return Cat(stops, Mux(stops, 0, Cat(pair.probe, pair.lane, pair.row, core)))


def is_of(dut, word, port):
    """Return whether an output word comes from this port, or from all ports."""
    digit = word.body.pair.core[len(dut.i[port].payload.body.pair.core) :]
    return (word.kind != ResultKind.PAIR) | (digit == port)


def entering(word):
    """Return the value of :func:`pair_of` for a word at a port."""
    stops, pair = word.kind != ResultKind.PAIR, word.body.pair
    return Cat(stops, Mux(stops, 0, Cat(pair.probe, pair.lane, pair.row, pair.core)))


def ports_keep_order(bench, dut, *, legal, came, left, is_of, flags):
    """Claim that the words of each of two ports leave as they entered; return the transfer.

    Parameters
    ----------
    bench : Bench
    dut : Component
        A merger with registers ``port_0`` and ``port_1`` at its inputs and ``output`` behind.
    legal : function
        Whether a word can be offered at a port of this number.
    came, left : function
        The value by which a word is followed: at a port, and at the output as one of a port.
    is_of : function
        Whether a word at the output comes from a port.
    flags : function
        Early flags of a word in the register at a port.
    """
    got = take(bench, dut.o, "output")
    output = bench.inside(dut, "output")
    register_states(bench, output)
    early_states(bench, output)
    ports = [bench.inside(dut, "m").submodules[f"port_{n}"] for n in range(2)]
    for n, (i, port) in enumerate(zip(dut.i, ports, strict=True)):
        put = offer(bench, i)
        bench.assume(legal(i.payload, n))
        mine = bench.wire(got & is_of(dut.o.payload, n))
        queue = keeps_order(
            bench, f"port {n}", put, came(i.payload), mine, left(dut.o.payload, n), most=4
        )
        register_states(bench, port)
        early_states(bench, port, flags=lambda payload: flags(payload.word))
        for held, payload in held_in(bench, port):
            bench.invariant(~held | legal(payload.word, n))
        leaving = [(held & is_of(word, n), left(word, n)) for held, word in held_in(bench, output)]
        waiting = [(held, came(payload.word)) for held, payload in held_in(bench, port)]
        entries_states(bench, queue, leaving + waiting)
    offered = Cat(i.valid for i in dut.i).all()
    answers_within(
        bench, "a word leaves while every port offers one", dut.o.ready & offered & ~got, 3
    )
    return got


@proof(
    "merger-order",
    says="the words of a port leave in order up to the one stop of each round, ports in turn",
    component="Merger, 2 ports",
    depth=10,
    induction=3,
    mutate=(OrderedMerger, Merger),
    spared={
        **dict.fromkeys(
            ("stop.all() & output.i.ready -> ", "stop.all() -> stop.any() (1)"),
            "of two ports, the one whose mark is awaited has no pair to be overtaken",
        ),
        "overflow": "merger-stops",
        "without chosen.body.punctuation": "merger-stops",
    },
)
def merger_order(bench):
    """Two ports: the words of each port leave as they entered, up to the stop of every round."""
    dut = Merger(SMALL, level=1, ports=2)
    bench.add(dut)
    got = ports_keep_order(
        bench, dut, legal=lambda word, n: word.kind.as_value() != ResultKind.NONE.value,
        came=entering, left=lambda word, n: pair_of(bench, dut, word, n),
        is_of=lambda word, n: is_of(dut, word, n), flags=flags_of,
    )  # fmt: skip
    ranks(bench, dut, got)


def flags_of(word):
    """Return the early flags of a word in the register at a port."""
    pair = word.kind == ResultKind.PAIR
    return Cat(pair, ~pair, word.kind == ResultKind.MARK)


def ranks(bench, dut, got):
    """Claim that pairs leave in the order of their ports unless a mark declared the order free."""
    word = dut.o.payload
    digit = word.body.pair.core[1:]
    is_pair = word.kind == ResultKind.PAIR
    highest, free = bench.register(1, "highest"), bench.register(1, "free")
    bench.next(
        highest.eq(Mux(got, Mux(is_pair, digit, 0), highest)),
        free.eq(Mux(got & (word.kind == ResultKind.MARK), word.body.punctuation.free, free)),
    )
    bench.claim(
        "pairs leave in the order of ports while order counts",
        ~(got & is_pair) | free | (digit >= highest),
    )
    # The merger's decisions so far, of which some are still in the output register.
    output = bench.inside(dut, "output")
    now_free, now_highest = free, highest
    for held, waiting in held_in(bench, output):
        pair = waiting.kind == ResultKind.PAIR
        own = waiting.body.pair.core[1:]
        bench.invariant(~(held & pair) | now_free | (own >= now_highest))
        now_highest = bench.wire(Mux(held, Mux(pair, own, 0), now_highest))
        is_mark = waiting.kind == ResultKind.MARK
        now_free = bench.wire(Mux(held & is_mark, waiting.body.punctuation.free, now_free))
    bench.invariant(bench.inside(dut, "free") == now_free)
    shown = bench.inside(dut, "pair").any()
    stuck = free & shown & dut.o.ready & ~dut.o.valid
    answers_within(bench, "a pair that a port shows leaves while order is free", stuck, 2)
    # A port that has been passed shows a stop.
    stop = bench.inside(dut, "stop")
    bench.invariant(now_free | ~now_highest | stop[0])
    bench.cover("pairs of both ports leave in one round", got & is_pair & highest)
    bench.cover("a port overtakes while order is free", got & is_pair & (digit < highest))


@proof(
    "merger-tree",
    says="what a core emits leaves with its number, in order, cores in turn",
    component="MergerTree, 3 cores, arity 2",
    depth=9,
    mutate=(OrderedMergerTree, MergerTree, Merger.with_digit),
    spared={"merger.reset": "reset-merger-tree"},
)
def merger_tree(bench):
    """Three cores, two levels: the results of a core leave with its number, in order."""
    parameters = SMALL.with_(cores=3)
    dut = bench.add(MergerTree(parameters))
    got = take(bench, dut.o, "output")
    word = dut.o.payload
    for n, i in enumerate(dut.i):
        put = offer(bench, i)
        bench.assume(i.payload.kind.as_value() < 2)
        pair = word.body.pair
        mine = (word.kind != ResultKind.PAIR) | (pair.core == n)
        stops = word.kind != ResultKind.PAIR
        seen = Cat(stops, Mux(stops, 0, Cat(pair.probe, pair.lane, pair.row)))
        keeps_order(bench, f"core {n}", put, entering(i.payload), got & mine, seen, most=9)
    highest = bench.register(2, "highest")
    is_pair = word.kind == ResultKind.PAIR
    bench.next(highest.eq(Mux(got, Mux(is_pair, pair.core, 0), highest)))
    bench.claim("pairs leave in the order of cores", ~(got & is_pair) | (pair.core >= highest))
    bench.cover(
        "pairs of the first and of the last core leave in one round",
        got & is_pair & (highest == 0) & (pair.core == 2),
    )


# Proofs about the stars and marks that a merger makes of those of its ports.

#: Number of rounds, any one of which is observed.
ROUNDS = 2


def merger_stops(bench, parameters, level):
    """Every round has one stop, which carries the errors of all ports."""
    dut = Merger(parameters, level=level, ports=2)
    bench.add(dut)
    got = take(bench, dut.o, "output")
    chosen = bench.constant(range(ROUNDS), "chosen")
    bench.assume(chosen < ROUNDS)
    is_mark = bench.constant(1, "is_mark")
    wanted = Mux(is_mark, ResultKind.MARK.value, ResultKind.STAR.value)
    seen = []
    for n, i in enumerate(dut.i):
        put = offer(bench, i)
        stops = put & (i.payload.kind != ResultKind.PAIR)
        number = bench.register(range(ROUNDS + 2), "number")
        bench.next(number.eq(number + (stops & (number <= ROUNDS))))
        kept = bench.register(len(i.payload.body.as_value()), f"kept_{n}")
        here = stops & (number == chosen)
        bench.next(kept.eq(Mux(here, i.payload.body.as_value(), kept)))
        bench.assume(~here | (i.payload.kind.as_value() == wanted))
        bench.assume(i.payload.kind.as_value() != ResultKind.NONE.value)
        seen.append((number, bench.view(i.payload.body, kept)))
    word = dut.o.payload
    stops = got & (word.kind != ResultKind.PAIR)
    number = bench.register(range(ROUNDS + 2), "number")
    bench.next(number.eq(number + (stops & (number <= ROUNDS))))
    here = stops & (number == chosen)
    said, one, two = (body.punctuation for body in (word.body, seen[0][1], seen[1][1]))
    bench.claim(
        "a round ends only when all ports have ended it",
        ~stops | (number > ROUNDS) | ((seen[0][0] > number) & (seen[1][0] > number)),
    )
    bench.claim("a round ends as its ports did", ~here | (word.kind.as_value() == wanted))
    bench.claim(
        "a stop carries the overflow of any port",
        ~here | (said.overflow == (one.overflow | two.overflow)),
    )
    bench.claim(
        "a stop carries the faults that all ports know of",
        ~here
        | (Cat(said.disorder, said.illegal, said.free) == Cat(one.disorder, one.illegal, one.free)),
    )
    if parameters.has_gates:
        names_failed_core(bench, here, said, one, two)
    bench.cover(
        "the last round ends with an overflow", here & (chosen == ROUNDS - 1) & said.overflow
    )


def names_failed_core(bench, here, said, one, two):
    """Claim that a stop names the first core whose results are missing, of all ports."""
    bench.claim("a stop says that results are missing if any port lacks some",
                ~here | (said.failed == (one.failed | two.failed)))  # fmt: skip
    first = Mux(one.failed, Cat(one.failed_core, C(0, 1)), Cat(two.failed_core, C(1, 1)))
    cause = Mux(one.failed, one.failed_parity, two.failed_parity)
    told = Cat(said.failed_core, said.failed_parity)
    bench.claim(
        "the core that a stop names is the first one, with its port, and the cause is its own",
        ~(here & said.failed) | (told == Cat(first, cause)),
    )
    bench.claim(
        "a stop that lacks nothing names no core and no cause",
        ~here | said.failed | (told == 0),
    )
    bench.cover("both ports lack results", here & one.failed & two.failed)
    bench.cover("the last core of the second port has failed", here & said.failed_core.all())


proof(
    "merger-stops",
    says="a round ends once, when all ports have, and with the errors of all",
    component=f"Merger, 2 ports, any of the first {ROUNDS} rounds",
    depth=8,
    mutate=(Merger.elaborate_word,),
    spared=dict.fromkeys(
        ("chosen.kind", "chosen.body.pair", "pairs[n]", "pair.any() -> pair.all() (2)"),
        "merger-order",
    ),
    given={"parameters": SMALL, "level": 0},
)(merger_stops)
proof(
    "merger-failed",
    says="… and it names the first core whose results are missing, and why they are",
    component="Merger with gates and parity, 2 ports",
    depth=8,
    mutate=(Merger.elaborate_failed,),
    given={
        "parameters": SMALL.with_(failure_cycles=SMALL.longest_silence, parity=True),
        "level": 1,
    },
)(merger_stops)


# Proofs about the order in which groups closed, on its way to the combiner.


def turns_of(sides):
    """Return the turns of an entry of the order: bit 0 is R, bit 1 is S, bit 2 is R after S."""
    r, s = sides[0], sides[1]
    s_first = sides[2] & r & s if len(sides) > 2 else C(0)
    return Cat(r & ~s_first, s, r & s_first)


def side_of(n):
    """Return the turn of the ``n``-th bit of :func:`turns_of`: 1 for R, 2 for S."""
    return 2 if n == 1 else 1


@proof(
    "turns",
    says="an entry becomes one turn for each of its sides, R first, shown ahead of time",
    component="Turns",
    depth=12,
    mutate=(Turns,),
)
def turns_bench(bench):
    """Entries of one side, or of both sides with R first."""
    dut = bench.add(Turns())
    bench.assume(~dut.i.valid | (dut.i.payload != 0))
    offer(bench, dut.i)
    got = take(bench, dut.o, "turns")
    first_sight = bench.wire(dut.i.valid & ~bench.past(dut.i.valid & ~dut.i.ready))
    inside = keeps_sequence(
        bench, "turns", first_sight, turns_of(dut.i.payload), C(0, 1), got,
        lambda _, n: dut.o.payload == side_of(n), most=6,
    )  # fmt: skip
    bench.claim("a turn is zero while there is none", dut.o.valid | (dut.o.payload == 0))
    bench.claim("an entry is taken with its last turn", (inside != 0) | ~dut.o.valid)
    answers_within(bench, "a turn is shown while any is left", (inside != 0) & ~dut.o.valid, 1)
    answers_within(
        bench, "an entry is taken while turns end", dut.i.valid & ~dut.i.ready & dut.o.ready, 3
    )
    bench.cover(
        "an entry of both sides ends",
        got & (dut.o.payload == 2) & bench.past(got & (dut.o.payload == 1)),
    )


def queued_turns(bench, put, entry, ended, *, most):
    """Model turns that wait, as a plain list; return the sides in its places, and how many wait.

    Parameters
    ----------
    put, entry : Value
        An entry enters, whose turns these are (:func:`turns_of`).
    ended : sequence of two Values
        The first turn ends; the one after it does too.
    most : int
        Places of the list, of which the last ones stay empty. A place is 1 for R, 2 for S, or 0.
    """
    turns = turns_of(entry)
    leader = bench.wire(Mux(turns[0], 1, 2))
    both = bench.wire(turns[1] & (turns[0] | turns[2]))
    follower = bench.wire(Mux(both, Mux(turns[0], 2, 1), 0))
    places = [bench.register(2, f"place_{n}") for n in range(most)]
    count = bench.register(range(most + 1), "count")
    left = bench.wire((count - ended[0] - ended[1])[: len(count)])
    following = [*places, C(0, 2), C(0, 2)]
    for n, place in enumerate(places):
        was = Mux(ended[1], following[n + 2], Mux(ended[0], following[n + 1], place))
        held = Mux(put & (left + 1 == n), follower, Mux(left > n, was, 0))
        bench.next(place.eq(Mux(put & (left == n), leader, held)))
    bench.next(count.eq(left + Mux(put, 1 + both, 0)))
    return places, count


@proof(
    "turn-queue",
    says="turns are shown two at a time, in order, however many end",
    component="TurnQueue",
    depth=12,
    induction=2,
    mutate=(TurnQueue,),
)
def turn_queue_bench(bench):
    """Entries of one side, or of both in either order; up to two turns end in a cycle."""
    dut = bench.add(TurnQueue())
    bench.assume(~dut.i.valid | (dut.i.payload[:2] != 0))
    put = offer(bench, dut.i)
    ended = bench.any(2, "ended")
    bench.set(dut.ended, ended)
    bench.assume(~ended[0] | (dut.first != 0))
    bench.assume(~ended[1] | (ended[0] & (dut.second != 0)))
    both = bench.wire(dut.i.payload[:2].all())
    places, count = queued_turns(bench, put, dut.i.payload, ended, most=7)
    bench.claim("the first turn is shown", dut.first == places[0])
    bench.claim("the second turn is shown", dut.second == places[1])
    bench.claim("an entry is taken while there is room for two turns", dut.i.ready == (count <= 3))
    for own, place in zip(bench.inside(dut, "turns"), places, strict=False):
        bench.invariant(own == place)
    bench.invariant(count <= 5)
    for n, place in enumerate(places):
        bench.invariant((place != 0) == (count > n))
        bench.invariant(place != 3)
    bench.cover("all places are taken", count == 5)
    bench.cover("two turns end while an entry of two comes", put & ended.all() & both)


@proof(
    "order-queue",
    says="entries leave in order, and those in flight find room",
    component="OrderQueue, 8 entries",
    depth=19,
    mutate=(OrderQueue,),
    spared={
        "in_flight -> level <=": "one entry less than it keeps room for can be in flight",
    },
)
def order_queue_bench(bench):
    """Entries that arrive while there is room, and as many more as may be in flight."""
    dut = bench.add(OrderQueue(1, depth=8))
    push, entry = bench.any(1, "push"), bench.any(1, "entry")
    bench.drive(dut, push=push, i=entry)
    # Three entries may follow the last cycle with room, including one in that cycle, so two
    # without.
    without = bench.register(2, "without")
    bench.next(without.eq(Mux(dut.room, 0, without + push)))
    bench.assume(~push | dut.room | (without < 2))
    got = take(bench, dut.o, "entries")
    queue = keeps_order(bench, "order", push, entry, got, dut.o.payload, most=13)
    inner = bench.inside(dut, "queue")
    bench.claim("entries in flight fit when there is no room", inner.level <= 8)
    stuck = (queue.level != 0) & ~dut.o.valid & dut.o.ready
    answers_within(bench, "an entry is shown after its latency", stuck, dut.latency)
    stopped = ~dut.room & (queue.level == 0)
    answers_within(bench, "there is room again when all have left", stopped, 5)
    bench.cover("queue is so full that it says so", ~dut.room & push & (without == 1))

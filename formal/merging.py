# SPDX-License-Identifier: Apache-2.0
"""Proofs about the result gathering tree."""

from amaranth import *

from hdl.trees.merger import Merger, MergerTree, OrderedMerger, OrderedMergerTree
from hdl.words.results import ResultKind

from .proof import proof
from .small import SMALL
from .states import early_states, entries_states, held_in, register_states
from .stream_rules import answers_within, keeps_order, offer, take

__all__ = []


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
    got = take(bench, dut.o, "output")
    output = bench.inside(dut, "output")
    register_states(bench, output)
    early_states(bench, output)
    ports = [bench.inside(dut, "m").submodules[f"port_{n}"] for n in range(2)]
    for n, (i, port) in enumerate(zip(dut.i, ports, strict=True)):
        put = offer(bench, i)
        bench.assume(i.payload.kind.as_value() != ResultKind.NONE.value)
        mine = bench.wire(got & is_of(dut, dut.o.payload, n))
        queue = keeps_order(
            bench, f"port {n}", put, entering(i.payload),
            mine, pair_of(bench, dut, dut.o.payload, n), most=4,
        )  # fmt: skip
        register_states(bench, port)
        early_states(bench, port, flags=lambda payload: flags_of(payload.word))
        for held, payload in held_in(bench, port):
            bench.invariant(~held | (payload.word.kind.as_value() != ResultKind.NONE.value))
        leaving = [
            (held & is_of(dut, word, n), pair_of(bench, dut, word, n))
            for held, word in held_in(bench, output)
        ]
        waiting = [(held, entering(payload.word)) for held, payload in held_in(bench, port)]
        entries_states(bench, queue, leaving + waiting)
    offered = Cat(i.valid for i in dut.i).all()
    answers_within(
        bench, "a word leaves while every port offers one", dut.o.ready & offered & ~got, 3
    )
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

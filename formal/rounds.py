# SPDX-License-Identifier: Apache-2.0
"""Proofs about results in rounds."""

from amaranth import *

from hdl.trees.merger import Merger, MergerTree
from hdl.words.results import ResultKind

from .proof import proof
from .round_spans import STARS, spans_of_two
from .small import SMALL
from .stream_rules import answers_within, keeps_order, offer, take

__all__ = []


@proof(
    "rounds",
    says="results of a probe leave by rounds, then by ports, and every round has one star",
    component="MergerTree with rounds, 2 cores, one probe",
    depth=11,
    mutate=(Merger,),
    spared={
        "without chosen.body.punctuation.overflow": "merger-stops detects it",
        "words)).any() -> Cat": "merger-stops detects it",
    },
)
def rounds_of_a_probe(bench):
    """Two ports send a probe's results in rounds, behind a mark that says so."""
    parameters = SMALL.with_(rounds=True)
    dut = bench.add(MergerTree(parameters))
    got = take(bench, dut.o, "output")
    base = bench.constant(2, "base")  # number of the round 0 of the claims
    word, ended = dut.o.payload, []
    spans, all_rounds = spans_of_two(bench)
    is_pair = bench.wire(word.kind == ResultKind.PAIR)
    pair = word.body.pair
    for n, (i, span) in enumerate(zip(dut.i, spans, strict=True)):
        put = offer(bench, i)
        mine = got & is_pair & (pair.core == n)
        of_pair = i.payload.kind == ResultKind.PAIR
        keeps_order(
            bench, f"port {n}", put & of_pair,
            Cat(i.payload.body.pair.probe, i.payload.body.pair.row, i.payload.round),
            mine, Cat(pair.probe, pair.row, word.round), most=8,
        )  # fmt: skip
        ended.append(one_port(bench, i, put, base, span))
    gathered(bench, got, word, base + all_rounds.begin, all_rounds.stars, Cat(ended).all())
    bench.cover(
        "the probe ends after rounds that ports have begun apart",
        got & (word.kind == ResultKind.STAR) & ~word.body.punctuation.inner
        & (all_rounds.stars != 0) & (spans[0].begin != spans[1].begin),
    )  # fmt: skip
    offered = Cat(i.valid for i in dut.i).all()
    answers_within(
        bench,
        "a result leaves while every port offers one",
        ~Cat(ended).all() & offered & dut.o.ready & ~got,
        4,
    )


def one_port(bench, i, put, base, span):
    """Let a port send a mark, then pairs and stars of successive rounds, then the probe's star.

    Returns
    -------
    Signal
        The port has sent the star of the probe.
    """
    kind, punctuation = i.payload.kind, i.payload.body.punctuation
    begun, ended = bench.register(1, "begun"), bench.register(1, "ended")
    number = bench.register(range(STARS + 1), "number")  # stars of rounds so far
    inner = (kind == ResultKind.STAR) & punctuation.inner
    last = (kind == ResultKind.STAR) & ~punctuation.inner
    bench.next(
        begun.eq(begun | put),
        number.eq(number + (put & inner)),
        ended.eq(ended | (put & last)),
    )
    mark = (kind == ResultKind.MARK) & punctuation.inner & ~punctuation.free
    here = (base + span.begin + number)[:2] == i.payload.round
    in_round = (kind == ResultKind.PAIR) & here
    star = (inner & here & (number < span.stars)) | (last & (number == span.stars))
    bench.assume(~i.valid | Mux(begun, in_round | star, mark))
    bench.assume(~i.valid | ~ended)
    return ended


def gathered(bench, got, word, begin, stars, ended):
    """Claim that results leave by rounds, and by ports within a round, each round with one star."""
    punctuation = word.body.punctuation
    star = word.kind == ResultKind.STAR
    inner, last = star & punctuation.inner, star & ~punctuation.inner
    is_pair = word.kind == ResultKind.PAIR
    passed = bench.register(range(STARS + 1), "passed")  # rounds that have had their star
    highest = bench.register(1, "highest")
    bench.next(
        passed.eq(passed + (got & inner)),
        highest.eq(Mux(got, is_pair & word.body.pair.core[0], highest)),
    )
    here = word.round == (begin + passed)[:2]
    bench.claim("pairs leave with their round", ~(got & is_pair) | here)
    bench.claim("a round has one star, after the rounds before it", ~(got & inner) | here)
    bench.claim(
        "pairs of a round leave in the order of ports",
        ~(got & is_pair) | (word.body.pair.core[0] >= highest),
    )
    bench.claim(
        "the probe ends after both ports have ended it, and after a star for every round",
        ~(got & last) | (ended & (passed == stars)),
    )
    bench.claim("the star of a round reports nothing", ~(got & inner) | (
        Cat(punctuation.overflow, punctuation.disorder, punctuation.illegal) == 0
    ))  # fmt: skip
    bench.cover("pairs of both ports leave in one round", got & is_pair & highest)

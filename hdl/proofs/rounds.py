# SPDX-License-Identifier: Apache-2.0
"""Proofs about results in rounds."""

from typing import NamedTuple

from amaranth import *

from hdl.trees import round_aligner
from hdl.trees.merger import MergerTree
from hdl.trees.round_aligner import RoundAligner
from hdl.words.results import ResultKind

from .bench import Bench
from .proof import Proof
from .small import SMALL
from .stream_rules import answers_within, keeps_order, offer, take

__all__ = ["PROOFS"]

#: Most stars of rounds that a port sends for the probe.
STARS = 2


class Port(NamedTuple):
    """What a port sends for one probe: from which round on, and how many stars of rounds.

    Attributes
    ----------
    begin, stars : Value
        First round, 0 or 1 after a common one, and number of stars.
    ended : Value
        The port has sent the star of the probe.
    """

    begin: Value
    stars: Value
    ended: Value


def rounds_of_a_probe():
    """Two ports send a probe's results in rounds, behind a mark that says so."""
    parameters = SMALL.with_(rounds=True)
    bench = Bench()
    dut = bench.add(MergerTree(parameters))
    got = take(bench, dut.o, "output")
    base = bench.constant(2, "base")  # number of the round 0 of the claims
    word, ports = dut.o.payload, []
    is_pair = bench.wire(word.kind == ResultKind.PAIR)
    pair = word.body.pair
    for n, i in enumerate(dut.i):
        put = offer(bench, i)
        mine = got & is_pair & (pair.core == n)
        of_pair = i.payload.kind == ResultKind.PAIR
        keeps_order(
            bench, f"port {n}", put & of_pair,
            Cat(i.payload.body.pair.probe, i.payload.body.pair.row, i.payload.round),
            mine, Cat(pair.probe, pair.row, word.round), most=8,
        )  # fmt: skip
        ports.append(one_port(bench, i, put, base))
    one, two = ports
    # Windows of two cores begin and end a round apart at most, and hold what is between them.
    ends = [port.begin + port.stars for port in ports]
    bench.assume((ends[0] <= ends[1] + 1) & (ends[1] <= ends[0] + 1))
    for port, other in (ports, ports[::-1]):
        bench.assume((port.begin >= other.begin) | (port.stars != 0))
    gathered(bench, got, word, base, ports, ends)
    done = one.ended & two.ended
    offered = Cat(i.valid for i in dut.i).all()
    answers_within(
        bench,
        "a result leaves while every port offers one",
        ~done & offered & dut.o.ready & ~got,
        4,
    )
    return bench


def one_port(bench, i, put, base):
    """Let a port send a mark, then pairs and stars of successive rounds, then the probe's star."""
    kind, punctuation = i.payload.kind, i.payload.body.punctuation
    begin, stars = bench.constant(1, "begin"), bench.constant(range(STARS + 1), "stars")
    bench.assume(stars <= STARS)
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
    here = (base + begin + number)[:2] == i.payload.round
    of_pair = (kind == ResultKind.PAIR) & here
    bench.assume(
        ~i.valid
        | Mux(begun, of_pair | (inner & here & (number < stars)) | (last & (number == stars)), mark)
    )
    bench.assume(~i.valid | ~ended)
    return Port(begin, stars, ended)


def gathered(bench, got, word, base, ports, ends):
    """Claim that results leave by rounds, and by ports within a round, each round with one star."""
    punctuation = word.body.punctuation
    star = word.kind == ResultKind.STAR
    inner, last = star & punctuation.inner, star & ~punctuation.inner
    is_pair = word.kind == ResultKind.PAIR
    first = Mux(ports[0].begin & ports[1].begin, 1, 0)
    passed = bench.register(range(STARS + 1), "passed")  # rounds that have had their star
    highest = bench.register(1, "highest")
    bench.next(
        passed.eq(passed + (got & inner)),
        highest.eq(Mux(got, is_pair & word.body.pair.core[0], highest)),
    )
    number = base + first + passed
    bench.claim(
        "pairs leave with their round",
        ~(got & is_pair) | (word.round == number[:2]),
    )
    bench.claim("a round has one star, after the rounds before it",
                ~(got & inner) | (word.round == number[:2]))  # fmt: skip
    bench.claim(
        "pairs of a round leave in the order of ports",
        ~(got & is_pair) | (word.body.pair.core[0] >= highest),
    )
    most = Mux(ends[0] > ends[1], ends[0], ends[1])
    bench.claim(
        "the probe ends after both ports have ended it, and after a star for every round",
        ~(got & last) | (ports[0].ended & ports[1].ended & (first + passed == most)),
    )
    bench.claim("the star of a round reports nothing", ~(got & inner) | (
        Cat(punctuation.overflow, punctuation.disorder, punctuation.illegal) == 0
    ))  # fmt: skip
    bench.cover("the probe ends after rounds that ports have begun apart",
                got & last & (passed != 0) & (ports[0].begin != ports[1].begin))  # fmt: skip
    bench.cover("pairs of both ports leave in one round", got & is_pair & highest)


PROOFS = [
    Proof(
        name="rounds",
        says="results of a probe leave by rounds, then by ports, and every round has one star",
        component="MergerTree with rounds, 2 cores, one probe",
        build=rounds_of_a_probe,
        depth=11,
        mutate=(RoundAligner, round_aligner.port_flags, round_aligner.lowest),
        spared={
            "output.i.ready for output in outputs)).all() -> ": "tests stall all ports: within "
            "the bound none fills up",
            "without own.eq(Cat((i.valid & ~": "nothing is sent without rounds",
        },
    ),
]

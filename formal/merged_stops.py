# SPDX-License-Identifier: Apache-2.0
"""Proofs about the stars and marks that a merger makes of those of its ports."""

from amaranth import *

from hdl.trees.merger import Merger
from hdl.words.results import ResultKind

from .proof import proof
from .small import SMALL
from .stream_rules import offer, take

__all__ = []

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

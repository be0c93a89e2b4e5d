# SPDX-License-Identifier: Apache-2.0
"""Proof that ports which are aligned carry the same rounds, and everything that they are sent."""

from amaranth import *

from hdl.trees import merger as round_aligner
from hdl.trees.merger import RoundAligner
from hdl.words.results import ResultKind

from .proof import proof
from .round_spans import STARS, spans_of_two
from .small import SMALL
from .stream_rules import answers_within, keeps_order, offer, take

__all__ = []

#: Parts of what a port carries: what comes before a mark, and the results of two probes.
PARTS = 3


class Script:
    """Where a port is in what it carries: pairs, a mark, and the results of two probes.

    The mark says whether the results of the probes come in rounds. If so, each probe has a star for
    every round, and the star of the probe after them.

    Parameters
    ----------
    bench : Bench
    rounds, begin, stars : Value
        Results come in rounds; number of a probe's first round, and of its stars of rounds.
    port : stream interface
    moves : Value
        A word of the port moves on.

    Attributes
    ----------
    part : Signal
        Number of marks and stars of probes that have moved on.
    is_pair, ends : Value
        The word is a pair; it is a mark or the star of a probe.
    right : Value
        The word may be the next one.
    """

    def __init__(self, bench, rounds, begin, stars, port, moves):
        word = port.payload
        punctuation = word.body.punctuation
        self.part = bench.register(range(PARTS + 1), "part")
        passed = bench.register(range(STARS + 2), "passed")  # stars of rounds of this probe
        star = word.kind == ResultKind.STAR
        mark = (word.kind == ResultKind.MARK) & (punctuation.inner == rounds) & ~punctuation.free
        inner = star & punctuation.inner
        self.is_pair = word.kind == ResultKind.PAIR
        self.ends = mark | (star & ~punctuation.inner)
        bench.next(
            self.part.eq(self.part + (moves & self.ends)),
            passed.eq(Mux(moves & self.ends, 0, passed + (moves & inner))),
        )
        here = word.round == (begin + passed)[:2]
        of_probe = Mux(
            star,
            Mux(punctuation.inner, rounds & here & (passed < stars), ~rounds | (passed == stars)),
            self.is_pair & (here | ~rounds),
        )
        self.right = (self.part != PARTS) & Mux(self.part == 0, self.is_pair | mark, of_probe)


@proof(
    "aligned-ports",
    says="both ports carry what they are sent, and in rounds the stars of all rounds of any "
    "port; marks wait for room",
    component="RoundAligner, 2 ports, a mark and two probes",
    depth=11,
    mutate=(RoundAligner, round_aligner.port_flags, round_aligner.lowest),
)
def aligned_ports(bench):
    """Two ports send pairs, a mark and two probes through an aligner."""
    dut = bench.add(RoundAligner(SMALL.with_(rounds=True), level=0, ports=2))
    rounds, base = bench.constant(1, "rounds"), bench.constant(2, "base")
    spans, all_rounds = spans_of_two(bench)
    sent, received, moves = [], [], []
    for n, (i, o, span) in enumerate(zip(dut.i, dut.o, spans, strict=True)):
        put = offer(bench, i)
        enters = Script(bench, rounds, base + span.begin, span.stars, i, put)
        bench.assume(~i.valid | enters.right)
        got = take(bench, o, f"port {n}", always=True)
        leaves = Script(bench, rounds, base + all_rounds.begin, all_rounds.stars, o, got)
        bench.claim(f"port {n} has a star for every round of any port", ~got | leaves.right)
        keeps_pairs(bench, n, put & enters.is_pair, i, enters.part, got, o, leaves)
        sent.append(enters)
        received.append(leaves)
        moves.append(got)
    for n, (got, leaves) in enumerate(zip(moves, received, strict=True)):
        all_sent = Cat(enters.part > leaves.part for enters in sent).all()
        together = leaves.ends & (rounds | (leaves.part == 0))
        bench.claim(
            f"marks, and stars of probes in rounds, leave port {n} after both ports have sent them",
            ~(got & together) | all_sent,
        )
        words = f"port {n} goes on when both ports have sent the next mark or star of a probe"
        answers_within(bench, words, all_sent & ~got, 6)
        last = got & leaves.ends & (leaves.part == PARTS - 1)
        bench.cover(f"the last probe leaves port {n}, in rounds", last & rounds)
        bench.cover(f"the last probe leaves port {n}, without rounds", last & ~rounds)
    marks_wait_for_room(bench)


def keeps_pairs(bench, n, put, i, part, got, o, leaves):
    """Claim that pairs leave a port as often as they have entered it, before what ends their part.

    The pairs of a freely chosen part with freely chosen contents are counted.
    """
    chosen = bench.constant(range(PARTS), "chosen")
    contents = bench.constant(len(Value.cast(i.payload)), "contents")
    inside = bench.register(range(12), "inside")
    enters = put & (part == chosen) & (Value.cast(i.payload) == contents)
    counted = leaves.part == chosen
    left = got & leaves.is_pair & counted & (Value.cast(o.payload) == contents)
    bench.next(inside.eq(inside + enters - left))
    bench.claim(f"port {n} gives no pair more often than it was sent", ~left | (inside != 0))
    bench.claim(
        f"port {n} gives all pairs before the mark or star after them",
        ~(got & leaves.ends & counted) | (inside == 0),
    )


def marks_wait_for_room(bench):
    """Claim that no mark is lost or repeated, whenever the ports of an aligner are stalled."""
    dut = bench.add(RoundAligner(SMALL.with_(rounds=True), level=0, ports=2), "stalled")
    for n, (i, o) in enumerate(zip(dut.i, dut.o, strict=True)):
        put, got = offer(bench, i), take(bench, o, f"stalled port {n}")
        bench.assume(~i.valid | (i.payload.kind == ResultKind.MARK))
        overflow, seen = i.payload.body.punctuation.overflow, o.payload.body.punctuation.overflow
        keeps_order(bench, f"stalled port {n}", put, overflow, got, seen, most=6)

# SPDX-License-Identifier: Apache-2.0
"""Proofs about rounds of the inner order, and about ports whose sides are aligned."""

from typing import NamedTuple

from amaranth import *

from hdl.ingress.punctuation import RoundMode
from hdl.scan.scanner import RoundEnds
from hdl.trees import merger as round_aligner
from hdl.trees.merger import Merger, MergerTree, RoundAligner
from hdl.words.results import ResultKind
from hdl.words.values import longest_round, rounds_shape

from .proof import proof
from .small import SMALL, scan_parameters
from .stream_rules import answers_within, keeps_order, offer, take

__all__ = ["STARS", "Span", "spans_of_two"]

# The rounds that the windows of two cores hold for a probe.

#: Most stars of rounds that a core sends for a probe.
STARS = 2


class Span(NamedTuple):
    """The rounds of a probe.

    Attributes
    ----------
    begin, stars : Value
        First round, 0 or 1 after a common one, and number of stars of rounds.
    """

    begin: Value
    stars: Value

    @property
    def end(self):
        """Return the number of the round after the last star."""
        return self.begin + self.stars


def spans_of_two(bench):
    """Return the spans of two cores, and the one that both make together.

    Windows of two cores begin and end a round apart at most, and hold what is between them.
    """
    spans = [
        Span(bench.constant(1, "begin"), bench.constant(range(STARS + 1), "stars"))
        for _ in range(2)
    ]
    for span, other in (spans, spans[::-1]):
        bench.assume(span.stars <= STARS)
        bench.assume(span.end <= other.end + 1)
        bench.assume((span.begin >= other.begin) | (span.stars != 0))
    one, two = spans
    first = bench.wire(one.begin & two.begin, "first")
    last = bench.wire(Mux(one.end > two.end, one.end, two.end), "last")
    return spans, Span(first, last - first)


# Proof that ports which are aligned carry the same rounds, and everything that they are sent.

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


# Proofs about results in rounds.


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


# Proofs about the parts that make rounds: in which words they are in force, where they end.


@proof(
    "round-mode",
    says="rounds are in force from INNER on, and end where cores would number rounds otherwise",
    component="RoundMode",
    depth=8,
    induction=1,
    mutate=(RoundMode,),
)
def round_mode(bench):
    """Any words: tuples, INNER or PRECISION, SEGMENT, and words that empty windows."""
    parameters = SMALL.with_(rounds=True)
    dut = bench.add(RoundMode(parameters))
    advance, changes, segment = (bench.any(1, n) for n in ("advance", "precision", "segment"))
    tuples, empties = bench.any(2, "tuples"), bench.any(2, "empties")
    wanted = bench.any(rounds_shape(parameters), "wanted")
    # A word does one of these things.
    told = Cat(changes, segment, tuples.any(), empties.any())
    bench.assume((told & (told - 1)) == 0)
    bench.drive(
        dut, advance=advance, tuples=tuples, set_precision=changes, wanted=wanted,
        segment=segment, empties=empties,
    )  # fmt: skip
    # What each window holds at most, if nothing but a word that empties it takes tuples away.
    since, before = [], []  # tuples after the last SEGMENT, and before it
    for n, side in enumerate("RS"):
        own, old = bench.register(1, f"since_{side}"), bench.register(1, f"before_{side}")
        gone = advance & empties[n]
        bench.next(
            own.eq((own | (advance & tuples[n])) & ~gone & ~(advance & segment)),
            old.eq((old | (advance & segment & own)) & ~gone),
        )
        since.append(own)
        before.append(old)
    mixed = bench.wire(Cat(before).any())
    now = bench.register(rounds_shape(parameters), "now")
    bench.next(now.eq(Mux(advance, dut.rounds, now)))
    bench.invariant(bench.inside(dut, "rounds") == now)
    bench.invariant(bench.inside(dut, "received") == (Cat(since) | Cat(before)))
    bench.invariant(bench.inside(dut, "drifted") == Cat(before))
    filled = Cat(*since, *before).any()
    bench.claim("rounds are in force only while no window has tuples of two segments",
                ~mixed | (now == 0))  # fmt: skip
    bench.claim("INNER asks for rounds, and gets them unless a window has tuples of two segments",
                ~changes | (dut.rounds == Mux(mixed, 0, wanted)))  # fmt: skip
    bench.claim("SEGMENT ends rounds if any window has tuples",
                ~segment | (dut.rounds == Mux(filled, 0, now)))  # fmt: skip
    bench.claim("no other word changes rounds", changes | segment | (dut.rounds == now))
    bench.cover("a segment among tuples ends rounds", segment & filled & (now != 0))
    bench.cover("rounds are set again once the windows were emptied",
                (now != 0) & bench.past(bench.past(mixed)))  # fmt: skip


#: Lanes of the rows, and cycles from a row to its ends.
LANES, LATENCY = 2, 1


@proof(
    "round-ends",
    says="a round ends with its last key, if the key is in the span of the only probe",
    component=f"RoundEnds, {LANES} lanes",
    depth=8,
    mutate=(RoundEnds,),
)
def round_ends(bench):
    """Any passes, one after the other, with any pauses."""
    parameters = scan_parameters(lanes=LANES, probes=1).with_(rounds=True)
    rows = parameters.ring_rows
    dut = bench.add(RoundEnds(parameters, latency=LATENCY))
    group = bench.view(dut.group, bench.any(len(dut.group.as_value()), "group"))
    begins, step, last = (bench.any(1, name) for name in ("begins", "step", "last"))
    bench.set(dut.group.as_value(), group.as_value())
    row = bench.any(range(rows), "row")
    bench.drive(dut, load=begins, step=step, row=row, last=last)
    # The next pass begins with the last row of this one, or while none is under way.
    begun, first = bench.register(1, "begun"), bench.register(1, "first")
    bench.assume(~begins | ~begun | (step & last))
    bench.assume(~step | begun)
    ending = bench.wire(step & last)
    bench.next(begun.eq(begins | (begun & ~ending)), first.eq(begins | (first & ~step)))
    size, tail, head = (
        bench.register(shape, name)
        for shape, name in (
            (rounds_shape(parameters), "size"), (range(LANES), "tail"), (range(LANES), "head"),
        )
    )  # fmt: skip
    empty = (group.ending.count == 0) | (group.stop == group.first)
    bench.assume(group.ending.rounds <= longest_round(parameters) + 1)
    bench.next(
        size.eq(Mux(begins, Mux(empty, 0, group.ending.rounds), size)),
        tail.eq(Mux(begins, group.tail_lane, tail)),
        head.eq(Mux(begins, group.head_lane, head)),
    )
    expected = []
    for lane in range(LANES):
        place = Cat(C(lane, 1), row)  # of two lanes
        ends = C(0)
        for code in range(1, longest_round(parameters) + 2):
            keys = 1 << (code - 1)
            ends |= (size == code) & (place[: code - 1] == keys - 1)
        inside = (~first | (lane >= tail)) & (~last | (head == 0) | (lane < head))
        expected.append(ends & inside)
    for lane in range(LANES):
        bench.claim(
            f"a round ends in lane {lane} with its last key, if that is in the span",
            ~bench.past(step) | (dut.ends[lane] == bench.past(expected[lane])),
        )
    bench.claim(
        "the size is that of the row's pass", ~bench.past(step) | (dut.rounds == bench.past(size))
    )
    bench.cover("both keys of the only row end rounds",
                bench.past(step & first & last) & dut.ends.all())  # fmt: skip
    bench.cover("a pass without rounds follows one with them",
                begins & step & (size != 0) & empty)  # fmt: skip

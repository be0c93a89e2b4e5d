# SPDX-License-Identifier: Apache-2.0
"""Proofs about what merges the results of both sides, or brings each to a port of its own."""

from amaranth import *

from hdl.trees import combiner as combiners
from hdl.trees.combiner import Combiner, DualCombiner
from hdl.trees.result_pairing import ResultPairing, SideExit, elaborate_side_result
from hdl.words.results import ResultKind

from .merging import queued_turns, turns_of
from .proof import proof
from .small import PAIRED, SMALL
from .stream_rules import answers_within, keeps_order, keeps_sequence, offer, take

__all__ = ["pairs"]

# Proofs about the combiners, which merge the results of both sides.


def entering(word):
    """Return the value by which an input result is followed: its kind, and its pair or errors.

    The faults of marks are left out, as the marks of both sides have the same.
    """
    errors = word.body.punctuation
    known = word.kind != ResultKind.MARK
    said = Cat(errors.overflow, known & errors.disorder, known & errors.illegal)
    return Cat(word.kind, Mux(word.kind == ResultKind.PAIR, word.body.pair.as_value(), said))


def leaving(word, side):
    """Return the value of :func:`entering` for a result at the output, as one of ``side``."""
    errors = word.body.punctuation
    known = word.kind != ResultKind.MARK
    said = Cat(errors.overflow[1 - side], known & errors.disorder, known & errors.illegal)
    return Cat(word.kind, Mux(word.kind == ResultKind.PAIR, word.body.pair.as_value(), said))


def star_errors(bench, got, word):
    """Claim that a star carries the overflow of the probed side only."""
    star = got & (word.kind == ResultKind.STAR)
    own = word.body.punctuation.overflow.bit_select(word.side, 1)
    bench.claim("a star tells no overflow of the side that it is of", ~star | ~own)


def combiner_bench(bench, *, free):
    """Return a function that builds the bench of the combiner, with its order free or not."""
    dut = bench.add(Combiner(SMALL))
    word = dut.o.payload
    got = take(bench, dut.o, "output")
    is_mark = bench.wire(word.kind == ResultKind.MARK)
    star_errors(bench, got, word)
    stars, queues, marked = [], [], []
    for n, i in enumerate(dut.i):
        put = offer(bench, i)
        kind = i.payload.kind
        bench.assume(kind.as_value() != ResultKind.NONE.value)
        if not free:
            bench.assume((kind != ResultKind.MARK) | ~i.payload.body.punctuation.free)
        mine = bench.wire(got & (is_mark | (word.side == n)))
        queues.append(
            keeps_order(
                bench, f"side {'RS'[n]}", put, entering(i.payload),
                mine, leaving(word, n), most=6,
            )
        )  # fmt: skip
        marked.append(bench.register(1, "marked"))
        bench.next(marked[n].eq(marked[n] | (put & (kind == ResultKind.MARK))))
        stars.append(bench.wire(got & (word.kind == ResultKind.STAR) & (word.side == n)))
    bench.assume(~dut.order.valid | (dut.order.payload != 0))
    offer(bench, dut.order)
    if free:
        order_is_free(bench, dut, got)
    else:
        marks_first = bench.constant(1, "marks_first")  # only marks are sent
        first_sight = bench.wire(dut.order.valid & ~bench.past(dut.order.valid & ~dut.order.ready))
        keeps_sequence(
            bench, "order", first_sight, turns_of(dut.order.payload), C(0, 1),
            Cat(stars).any(), lambda _, n: word.side == (n == 1), most=8,
        )  # fmt: skip
        turns_hold(bench, got, word)
        waiting = Cat(queue.level != 0 for queue in queues).all() & ~dut.o.valid & dut.o.ready
        stuck = waiting & dut.order.valid & ~Cat(marked).any()
        answers_within(bench, "a result leaves while both sides have one", stuck, 3)
        bench.assume(~marks_first | ~put_other(bench, dut))
        stuck = waiting & marks_first & Cat(marked).all()
        answers_within(bench, "marks leave when both sides show one", stuck, 3)


def put_other(bench, dut):
    """Return whether a word other than a mark is taken."""
    others = [i.valid & i.ready & (i.payload.kind != ResultKind.MARK) for i in dut.i]
    return bench.wire(Cat(others).any())


def turns_hold(bench, got, word):
    """Claim that no other results come between those of a turn."""
    inside, side = bench.register(1, "turn"), bench.register(1, "side")
    result = bench.wire(got & (word.kind != ResultKind.MARK))
    bench.next(
        inside.eq(Mux(result, word.kind == ResultKind.PAIR, inside)),
        side.eq(Mux(result, word.side, side)),
    )
    bench.claim(
        "a turn has results of one side, up to its star", ~(result & inside) | (word.side == side)
    )
    bench.cover(
        "a turn of S has a pair and a star", result & inside & side & (word.kind == ResultKind.STAR)
    )


def order_is_free(bench, dut, got):
    """Claim that available results are passed on once a mark has declared the order free."""
    word = dut.o.payload
    free = bench.register(1, "free")
    mark = got & (word.kind == ResultKind.MARK)
    says = bench.register(1, "says")
    for n, i in enumerate(dut.i):
        is_mark = bench.wire(i.valid & i.ready & (i.payload.kind == ResultKind.MARK))
        had = bench.register(1, "had")
        bench.next(had.eq(had | is_mark))
        bench.assume(~(is_mark & had))  # a second mark would block the words after it
        if n == 0:
            bench.next(says.eq(Mux(is_mark, i.payload.body.punctuation.free, says)))
    bench.next(free.eq(Mux(mark, says, free)))
    offered = Cat(i.valid & (i.payload.kind != ResultKind.MARK) for i in dut.i).any()
    stuck = free & offered & dut.o.ready & ~dut.o.valid
    answers_within(bench, "a result leaves while order is free", stuck, 3)
    bench.cover(
        "order becomes free, and a result leaves", got & free & (word.kind == ResultKind.PAIR)
    )


@proof(
    "dual-combiner",
    says="results leave two a word in the order of their turns, none lost or repeated",
    component="DualCombiner",
    depth=6,
    mutate=(DualCombiner.elaborate_word,),
)
def dual_combiner(bench):
    """Results of both sides leave two per word, in the order of their turns."""
    parameters = PAIRED
    dut = bench.add(DualCombiner(parameters))
    got = take(bench, dut.o, "output")
    one, two = dut.o.payload.one, dut.o.payload.two
    has_two = bench.wire(got & (two.kind.as_value() != ResultKind.NONE.value))
    is_mark = bench.wire(one.kind == ResultKind.MARK)
    bench.claim("a mark is alone in its word", ~got | ~is_mark | ~has_two)
    bench.claim("a mark is in the first place", ~has_two | (two.kind != ResultKind.MARK))
    for n, i in enumerate(dut.i):
        put = offer(bench, i)
        kind = i.payload.kind
        bench.assume(kind.as_value() != ResultKind.NONE.value)
        bench.assume((kind != ResultKind.MARK) | ~i.payload.body.punctuation.free)
        pairs(bench, "RS"[n], put, entering(i.payload), [
            (bench.wire(got & (is_mark | (one.side == n))), leaving(one, n)),
            (bench.wire(has_two & (two.side == n)), leaving(two, n)),
        ])  # fmt: skip
    bench.assume(~dut.order.valid | (dut.order.payload[:2] != 0))
    put = offer(bench, dut.order)
    ends = [got & (one.kind == ResultKind.STAR), has_two & (two.kind == ResultKind.STAR)]
    turn_order(bench, put, dut.order.payload, ends, (one, two))
    bench.cover("a word has the stars of both sides", Cat(ends).all() & (one.side != two.side))
    bench.cover(
        "a word has two pairs of a side",
        has_two & (two.kind == ResultKind.PAIR) & (one.kind == ResultKind.PAIR) & one.side,
    )


def pairs(bench, words, put, value, results):
    """Make the claims of :func:`keeps_order` where up to two elements leave in a cycle.

    Return the number of elements inside.
    """
    level, before = bench.register(5, "inside"), bench.register(5, "before")
    watching, watched = bench.register(1, "watching"), bench.register(len(value), "watched")
    choose = bench.wire(put & ~watching & bench.any(1, "choose"))
    (first, one), (second, two) = results
    count = bench.wire(first + second)
    leaves = bench.wire(watching & (count > before))
    bench.next(
        level.eq(level + put - count),
        watching.eq((watching | choose) & ~leaves),
        before.eq(Mux(choose, level - count, before - Mux(before > count, count, before))),
        watched.eq(Mux(choose, value, watched)),
    )
    bench.claim(f"side {words} gives nothing that did not go in", level >= count)
    seen = Mux(first & (before == 0), one, two)
    bench.claim(
        f"side {words} gives every result once, unchanged, in order", ~leaves | (seen == watched)
    )
    bench.cover(f"side {words} gives the result that is watched", leaves & (before != 0))
    return level


def turn_order(bench, put, entry, ends, words):
    """Claim that stars come in the order of turns, and results between them are of that turn."""
    gone = bench.wire(ends[0] + ends[1])
    places, count = queued_turns(bench, put, entry, (gone != 0, gone == 2), most=8)
    one, two = words
    bench.claim("no more turns end than the order has", gone <= count)
    served = [Mux(one.side, 2, 1), Mux(two.side, 2, 1)]
    bench.claim("the first turn's star comes first", ~ends[0] | (served[0] == places[0]))
    second = Mux(ends[0], places[1], places[0])
    bench.claim("the next turn's star comes next", ~ends[1] | (served[1] == second))


@proof(
    "result-pairing",
    says="results that wait share rows, in order, and never across a star or a mark",
    component="ResultPairing",
    depth=8,
    mutate=(ResultPairing, elaborate_side_result),
)
def result_pairing(bench):
    """Results of one side leave in rows of up to two."""
    parameters = PAIRED
    dut = bench.add(ResultPairing(parameters, side=1))
    put = offer(bench, dut.i)
    bench.assume(dut.i.payload.kind.as_value() != ResultKind.NONE.value)
    got = take(bench, dut.o, "rows")
    row = dut.o.payload
    double = bench.wire(got & (row.two.kind.as_value() != ResultKind.NONE.value))
    word = dut.i.payload
    frees = (word.kind == ResultKind.MARK) & word.body.punctuation.free
    gives = (row.one.kind == ResultKind.MARK) & row.free
    pairs(bench, "S", put, Cat(entering(word), frees), [
        (got, Cat(leaving(row.one, 1), gives)), (double, Cat(leaving(row.two, 1), 0)),
    ])  # fmt: skip
    stuck = dut.i.valid & ~dut.i.ready & dut.o.ready
    answers_within(bench, "results are taken while rows leave", stuck, 2)
    shares_rows(bench, dut, put, got)
    for name, result, there in (("first", row.one, got), ("second", row.two, double)):
        of_side = result.side == (result.kind != ResultKind.MARK)
        bench.claim(f"the {name} result is of the side, unless it is a mark", ~there | of_side)
    valid = dut.o.valid
    kind, has_two = row.one.kind, row.two.kind.as_value() != ResultKind.NONE.value
    bench.claim("a row ends with a star", ~got | (kind == ResultKind.PAIR) | ~has_two)
    bench.claim(
        "a mark has a row of its own",
        ~got | ((row.two.kind != ResultKind.MARK) & ((kind != ResultKind.MARK) | ~has_two)),
    )
    last = Mux(has_two, row.two.kind.as_value(), kind.as_value())
    for name, value in {
        "result": kind != ResultKind.MARK, "lone": (kind != ResultKind.MARK) & ~has_two,
        "ends": last == ResultKind.STAR.value, "star": kind == ResultKind.STAR,
        "mark": kind == ResultKind.MARK,
    }.items():  # fmt: skip
        bench.claim(
            f"flag {name} is that of the row, and zero without one", row[name] == (valid & value)
        )
    bench.cover(
        "a row of a pair and a star",
        got & (kind == ResultKind.PAIR) & (row.two.kind == ResultKind.STAR),
    )


def shares_rows(bench, dut, put, got):
    """Claim that pairs share rows while they wait behind a row that is not taken."""
    count, only = bench.register(4, "count"), bench.register(1, "only", init=1)
    only_pairs = ~got & (~put | (dut.i.payload.kind == ResultKind.PAIR))
    bench.next(only.eq(only & only_pairs), count.eq(count + put))
    rows = bench.inside(dut, "queue").level
    # The output register holds two rows of one pair each.
    bench.claim("pairs that wait share rows", ~only | (rows == 0) | (2 * rows <= count - 2))


proof(
    "combiner",
    says="results of a side leave in order, turns as the ingress closed groups",
    component="Combiner",
    depth=7,
    mutate=(Combiner, combiners.side_flags),
    spared={
        **dict.fromkeys(("Mux(free", "without free.eq", "~r.result"), "combiner-free"),
        "side.valid & (kind == ResultKind.PAIR) -> ": "what is not valid may be anything",
    },
    given={"free": False},
)(combiner_bench)
proof(
    "combiner-free",
    says="… and whatever is there while order is free",
    component="Combiner, after a mark",
    depth=9,
    mutate=(Combiner.elaborate_sides,),
    spared=dict.fromkeys(
        (
            "turns.o.payload & Cat",
            "~free",
            "served.any() | both_marks",
            "without both_marks",
            "without output.valid",
            "without served",
        ),
        "combiner",
    ),
    given={"free": True},
)(combiner_bench)


# Proofs about the exits of the sides, where each side has a result port of its own.

#: Parameters whose stars and marks tell all that stars and marks can tell; and with two in a word.
TELLING = SMALL.with_(rounds=True, failure_cycles=SMALL.longest_silence)
TELLING_PAIRED = PAIRED.with_(failure_cycles=PAIRED.longest_silence)


def inner_of(told):
    """Return the flag of stars of the order ``inner``, which only a scan in rounds has."""
    return told.inner if "inner" in told.shape().members else C(0)


def tree_value(word):
    """Return the value by which a word of the tree is followed: its kind, and its pair or faults.

    A mark tells nothing of rounds.
    """
    told = word.body.punctuation
    inner = inner_of(told) & (word.kind == ResultKind.STAR)
    faults = Cat(told.overflow, told.disorder, told.illegal, inner, told.failed, told.failed_core)
    return Cat(word.kind, Mux(word.kind == ResultKind.PAIR, word.body.pair.as_value(), faults))


def port_value(result, side):
    """Return the value of :func:`tree_value` for a result of ``side`` at the port."""
    told = result.body.punctuation
    faults = Cat(
        told.overflow[1 - side], told.disorder, told.illegal, inner_of(told), told.failed,
        told.failed_core,
    )  # fmt: skip
    return Cat(
        result.kind, Mux(result.kind == ResultKind.PAIR, result.body.pair.as_value(), faults)
    )


def is_of_side(bench, name, there, result, side):
    """Claim that a result has its side, and tells no overflow of the window of its own side."""
    kind = result.kind
    of_side = result.side == (side * (kind != ResultKind.MARK))
    bench.claim(f"the {name} has its side, unless it is a mark", ~there | of_side)
    own = result.body.punctuation.overflow[side]
    bench.claim(
        f"the {name} tells no overflow of its own side",
        ~there | (kind == ResultKind.PAIR) | ~own,
    )


def single(bench, side):
    """Return a function that builds the bench of an exit with one result in a word."""
    dut = bench.add(SideExit(TELLING, side=side))
    put = offer(bench, dut.i)
    bench.assume(dut.i.payload.kind.as_value() != ResultKind.NONE.value)
    got = take(bench, dut.o, "output")
    result = dut.o.payload
    queue = keeps_order(
        bench, "the port", put, tree_value(dut.i.payload), got, port_value(result, side), most=2
    )
    is_of_side(bench, "result", got, result, side)
    stuck = (queue.level != 0) & ~dut.o.valid
    answers_within(bench, "a result that went in is shown", stuck, 0)
    stuck = dut.i.valid & ~dut.i.ready & dut.o.ready
    answers_within(bench, "results go in while results are taken", stuck, 1)
    bench.cover(
        "a mark tells that a core has failed",
        got & (result.kind == ResultKind.MARK) & result.body.punctuation.failed,
    )
    bench.cover(
        "the star of a round leaves",
        got & (result.kind == ResultKind.STAR) & result.body.punctuation.inner,
    )


#: Mutants that say R where S is meant, which is what an exit of R says.
OF_S = dict.fromkeys(("without result.side.eq", "word.kind != ResultKind.MARK -> "), "side-exit-s")

for _side, _name in enumerate("RS"):
    proof(
        f"side-exit-{_name.lower()}",
        says=f"a port of {_name} gives what its tree does, in order, with its side and faults",
        component=f"SideExit, {_name}",
        depth=8,
        mutate=(SideExit.elaborate_results, elaborate_side_result),
        spared=OF_S if _side == 0 else {},
        given={"side": _side},
    )(single)


@proof(
    "side-exit-two",
    says="… also two results in a word, and a mark alone",
    component="SideExit, two results in a word",
    depth=7,
    mutate=(SideExit.elaborate_rows, elaborate_side_result),
)
def double(bench):
    """Results of one side leave two in a word."""
    dut = bench.add(SideExit(TELLING_PAIRED, side=1))
    put = offer(bench, dut.i)
    bench.assume(dut.i.payload.kind.as_value() != ResultKind.NONE.value)
    got = take(bench, dut.o, "output")
    one, two = dut.o.payload.one, dut.o.payload.two
    has_two = bench.wire(got & (two.kind.as_value() != ResultKind.NONE.value))
    level = pairs(bench, "S", put, tree_value(dut.i.payload), [
        (got, port_value(one, 1)), (has_two, port_value(two, 1))
    ])  # fmt: skip
    is_of_side(bench, "first result", got, one, 1)
    is_of_side(bench, "second result", has_two, two, 1)
    is_mark = one.kind == ResultKind.MARK
    bench.claim("a mark is alone in its word", ~got | ~is_mark | ~has_two)
    bench.claim("a mark is in the first place", ~has_two | (two.kind != ResultKind.MARK))
    stuck = dut.i.valid & ~dut.i.ready & dut.o.ready
    answers_within(bench, "results go in while words are taken", stuck, 2)
    answers_within(bench, "a result that went in is shown", (level != 0) & ~dut.o.valid, 0)
    bench.cover("a word has two pairs", has_two & (two.kind == ResultKind.PAIR))

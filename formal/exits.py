# SPDX-License-Identifier: Apache-2.0
"""Proofs about the exits of the sides, where each side has a result port of its own."""

from amaranth import *

from hdl.trees.result_pairing import SideExit, elaborate_side_result
from hdl.words.results import ResultKind

from .combining import pairs
from .proof import proof
from .small import PAIRED, SMALL
from .stream_rules import answers_within, keeps_order, offer, take

__all__ = []

#: Parameters whose stars and marks tell all that stars and marks can tell; and with two in a word.
TELLING = SMALL.with_(rounds=True, failure_cycles=SMALL.longest_silence)
TELLING_PAIRED = PAIRED.with_(failure_cycles=PAIRED.longest_silence)


def inner_of(told):
    """Return the flag of stars of the order ``inner``, which only a scan in rounds has."""
    return told.inner if "inner" in told.shape().members else C(0)


def entering(word):
    """Return the value by which a word of the tree is followed: its kind, and its pair or faults.

    A mark tells nothing of rounds.
    """
    told = word.body.punctuation
    inner = inner_of(told) & (word.kind == ResultKind.STAR)
    faults = Cat(told.overflow, told.disorder, told.illegal, inner, told.failed, told.failed_core)
    return Cat(word.kind, Mux(word.kind == ResultKind.PAIR, word.body.pair.as_value(), faults))


def leaving(result, side):
    """Return the value of :func:`entering` for a result of ``side`` at the port."""
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
        bench, "the port", put, entering(dut.i.payload), got, leaving(result, side), most=2
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
    level = pairs(bench, "S", put, entering(dut.i.payload), [
        (got, leaving(one, 1)), (has_two, leaving(two, 1))
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

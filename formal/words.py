# SPDX-License-Identifier: Apache-2.0
"""Proofs about words on their way through the ingress: illegal words, order, credits."""

from amaranth import *

from hdl.ingress.ingress import Ingress
from hdl.ingress.storage_turns import LISTS
from hdl.ingress.word_facts import TimeOrder
from hdl.words.inputs import Control, InputKind

from .facts import legal_words
from .proof import proof
from .small import ingress_parameters
from .stream_rules import answers_within, keeps_order, offer, take
from .turns import Lists, TurnsWindow

__all__ = []

#: Number of cycles, any one of which brings an illegal word.
MOMENTS = 3


def illegal_word(bench, parameters):
    """Return a function that builds two ingresses, one of which gets an additional illegal word."""
    one, two = (bench.add(Ingress(parameters), name) for name in ("one", "two"))
    cycle = bench.register(range(MOMENTS + 2), "cycle")
    bench.next(cycle.eq(cycle + (cycle <= MOMENTS)))
    moment = bench.constant(range(MOMENTS), "moment")
    bench.assume(moment < MOMENTS)
    here = bench.wire(cycle == moment)
    valid = bench.any(1, "valid")
    word, wrong = (bench.any(one.i.payload.shape(), name) for name in ("word", "wrong"))
    cored = bench.register(1, "cored")  # a list of cores may have been begun
    bench.next(cored.eq(cored | (valid & ~here & is_op(word, Control.CORE))))
    known = (wrong.body.control.value >= 0) & (wrong.body.control.value < parameters.cores)
    nothing = (is_op(wrong, Control.CORE) & ~known) | (is_op(wrong, Control.SEGMENT) & ~cored)
    bench.assume(~here | ~legal_words(parameters, wrong) | nothing)
    bench.set(Value.cast(one.i.payload), Value.cast(word))
    bench.set(Value.cast(two.i.payload), Mux(here, Value.cast(wrong), Value.cast(word)))
    bench.set(one.i.valid, valid & ~here)
    bench.set(two.i.valid, valid | here)
    for dut in (one, two):
        bench.set(dut.o.ready, 1)
        bench.set(dut.room, 1)
    bench.claim("tuples, groups and stars are the same", one.o.valid == two.o.valid)
    rest = [
        Value.cast(a.o.payload[name])
        for name in ("kind", "body", "close", "star", "disorder", "free")
        for a in (one, two)
    ]
    same = Cat(a == b for a, b in zip(rest[::2], rest[1::2], strict=True)).all()
    bench.claim("words that leave are the same but for the fault", ~one.o.valid | same)
    for name in ("closing", "accepted", "disorder"):
        bench.claim(f"{name} is the same", getattr(one, name) == getattr(two, name))
    bench.claim(
        "order is told of the same sides",
        ~one.closing | (one.closing_sides == two.closing_sides),
    )
    counted = bench.register(range(20), "counted")
    base = bench.register(range(20), "base")
    bench.next(counted.eq(counted + two.illegal), base.eq(base + one.illegal))
    bench.claim("the word is counted once at the most", (counted == base) | (counted == base + 1))
    late = bench.wire(cycle == MOMENTS)
    for _ in range(4):  # the word passes three registers and is reported from a fourth
        late = bench.past(late)
    bench.claim("the word is counted", ~late | bench.first() | (counted == base + 1))
    flagged = one.o.valid & two.o.payload.illegal & ~one.o.payload.illegal
    bench.cover("a word after it carries the fault", flagged)
    bench.claim(
        "a fault is not forgotten for it",
        ~one.o.valid | two.o.payload.illegal | ~one.o.payload.illegal,
    )


def is_op(word, op):
    """Return whether a word is a certain control word."""
    return (word.kind == InputKind.CONTROL) & (word.body.control.op == op)


def turns_refused(bench, parameters, word, put, takes):
    """Return whether a word of one core changes turns in a way that is not allowed.

    Parameters
    ----------
    put : Value
        The word is taken.
    takes : Value
        For each side, a tuple of it is taken that is in order.
    """
    value, index = word.body.control.value, word.body.control.index
    core, segment = (is_op(word, op) for op in (Control.CORE, Control.SEGMENT))
    write, begins = Signal(name=bench.name("write")), Signal(name=bench.name("begins"))
    clear, time = is_op(word, Control.CLEAR), is_op(word, Control.LIFESPAN)
    lists = Lists(bench, 1, write=write, value=C(0), begins=begins, forget=put & clear)
    window = is_op(word, Control.WINDOW) | time
    windows = [
        TurnsWindow(
            bench, lists, 1, advance=takes[n], restart=put & (clear | (window & (index == n))),
            begins=begins, begin=window, size=C(1), timed=time,
        )
        for n in range(2)
    ]  # fmt: skip
    needed = Cat(~window.empty & (window.age == LISTS - 2) for window in windows).any()
    refused = bench.wire(
        (core & ((value != 0) | (lists.length != 0))) | (segment & ((lists.length == 0) | needed))
    )
    bench.set(write, put & core & ~refused)
    bench.set(begins, put & segment & ~refused)
    return refused


@proof(
    "ingress-words",
    says="legal words whose time is in order leave once, in order, with the faults before them",
    component="Ingress, an equality with timestamps of 2 bits",
    depth=14,
    mutate=(
        Ingress.elaborate_legality,
        Ingress.elaborate_order,
        TimeOrder,
        Ingress.elaborate_acceptance,
        Ingress.elaborate_groups,
    ),
    spared={
        "self.illegal.eq": "illegal-word",
        "advance & drops": "illegal-word",
        "If(has_tuples(self.parameters, ordered.payload)) -> If(1)": "it takes more cycles than"
        " the bound until a control word is missing; tests of the ingress see it",
    },
)
def words_bench(bench):
    """Words that leave, compared with a model that sees each word as it is taken."""
    parameters = ingress_parameters(timestamp_bits=2)
    dut = bench.add(Ingress(parameters))
    put = offer(bench, dut.i)
    bench.set(dut.room, bench.any(1, "room"))
    got = take(bench, dut.o, "words")
    word = dut.i.payload
    is_tuple = bench.wire(Value.cast(word.kind) < 2)
    clear = bench.wire(is_op(word, Control.CLEAR))
    time = word.body.tuple.timestamp
    newest = bench.register(2, "newest")
    disorder, illegal = bench.register(1, "disorder"), bench.register(1, "illegal")
    late = bench.wire(is_tuple & (disorder | (time < newest)))
    takes = Cat(put & ~late & (word.kind == side) for side in (InputKind.R, InputKind.S))
    refused = turns_refused(bench, parameters, word, put, takes)
    legal = bench.wire(legal_words(parameters, word) & ~refused)
    leaves = legal & ~late & ~is_op(word, Control.CORE)
    bench.next(
        newest.eq(Mux(put & clear, 0, Mux(put & is_tuple, time, newest))),
        disorder.eq(Mux(put & clear, 0, disorder | (put & late))),
        illegal.eq(Mux(put & clear, 0, illegal | (put & ~legal))),
    )
    value = Cat(word.kind, Mux(is_tuple, time, 0), disorder, illegal)
    out = dut.o.payload
    seen = Cat(
        out.kind,
        Mux(Value.cast(out.kind) < 2, out.body.tuple.timestamp, 0),
        out.disorder,
        out.illegal,
    )
    inside = keeps_order(bench, "ingress", put & leaves, value, got, seen, most=24).level
    stuck = (inside != 0) & ~dut.o.valid & dut.o.ready & dut.room
    # Without room, four words wait; three of them may be dropped, one per cycle.
    answers_within(bench, "a word leaves after its latency", stuck, dut.latency + 3)
    free = bench.register(1, "free")
    bench.next(free.eq(Mux(got, out.free, free)))
    stars = bench.wire(got & out.star.any() & ~free)
    keeps_order(
        bench, "order", dut.closing, dut.closing_sides, stars, out.star, most=24,
    )  # fmt: skip
    sides = Cat(out.kind == InputKind.R, out.kind == InputKind.S)
    keeps_order(
        bench, "counter", dut.accepted.any(), dut.accepted, got & sides.any(), sides, most=24
    )  # fmt: skip
    operation = out.body.control.op
    bound = (operation == Control.BOUND_LOW) | (operation == Control.BOUND_HIGH)
    bench.claim(
        "of the control words that leave, all but bounds close the groups of both sides",
        ~(got & (out.kind == InputKind.CONTROL)) | (out.close == Mux(bound, 0, 3)),
    )
    bench.cover("a word carries both faults", got & out.disorder & out.illegal)


@proof(
    "ingress-credits",
    says="without room no more stars are told than the order queue keeps places for",
    component="Ingress, an equality",
    depth=9,
    mutate=(Ingress.elaborate_acceptance,),
    spared={
        **dict.fromkeys(("checked.payload", "~drop -> drop"), "ingress-words"),
        "without checked.valid": "no word is taken any more: ingress-words",
        "checked.valid.eq(words.valid & self.room & ~drop) and": "ingress-words",
        "checked.ready & self.room -> checked.ready | self.room": "ingress-words",
    },
)
def credits_bench(bench):
    """Stars are reported while there is room, and at most twice without room."""
    dut = bench.add(Ingress(ingress_parameters()))
    offer(bench, dut.i)
    take(bench, dut.o, "words")
    bench.set(dut.room, bench.any(1, "room"))
    without = bench.register(3, "without")
    bench.next(without.eq(Mux(dut.room, 0, without + (dut.closing & (without != 7)))))
    total = bench.wire(without + dut.closing)
    bench.claim("no more than two entries come without room", dut.room | (total <= 2))
    bench.cover("two entries come without room", ~dut.room & (total == 2))
    waits = bench.register(4, "waits")
    stuck = dut.o.ready & dut.room & dut.i.valid & ~dut.i.ready
    bench.next(waits.eq(Mux(stuck, waits + (waits != 15), 0)))
    bench.claim("words are taken while there is room", waits <= 1)


proof(
    "illegal-word",
    says="an illegal word changes nothing but its counter and the fault that words carry",
    component=f"Ingress, an equality, in any of the first {MOMENTS} cycles",
    depth=11,
    mutate=(Ingress.elaborate_legality, Ingress.elaborate_groups),
    spared={
        "word.finish & ~refused -> word.finish | ~refused": "both ingresses end a group with"
        " every word: ingress-words",
    }
    | dict.fromkeys(
        (
            "output.payload.illegal",
            "without illegal.eq",
            "If(advance)",
            "illegal & ~word.clear",
            "~word.clear -> word.clear",
            "punctuation",
            "closing_sides",
        ),
        "ingress-words, and punctuation of what is decided about legal words",
    ),
    given={"parameters": ingress_parameters(timestamp_bits=2)},
)(illegal_word)

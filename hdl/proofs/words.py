# SPDX-License-Identifier: Apache-2.0
"""Proofs about words on their way through the ingress: illegal words, credits, comparisons."""

from amaranth import *

from hdl.comparison.comparator import Comparator
from hdl.ingress import preparation as preparations
from hdl.ingress.ingress import Ingress
from hdl.ingress.preparation import ProbePreparation
from hdl.ingress.time_order import TimeOrder
from hdl.parameters import KeyField
from hdl.words import operands
from hdl.words.inputs import Control, InputKind
from hdl.words.prepared import decision_members

from .bench import Bench
from .facts import legal_words
from .proof import Proof
from .small import ingress_parameters
from .stream_rules import answers_within, keeps_order, offer, take

__all__ = ["PROOFS"]

#: Number of cycles, any one of which brings an illegal word.
MOMENTS = 3


def illegal_word(parameters):
    """Return a function that builds two ingresses, one of which gets an additional illegal word."""

    def build():
        bench = Bench()
        one, two = (bench.add(Ingress(parameters), name) for name in ("one", "two"))
        cycle = bench.register(range(MOMENTS + 2), "cycle")
        bench.next(cycle.eq(cycle + (cycle <= MOMENTS)))
        moment = bench.constant(range(MOMENTS), "moment")
        bench.assume(moment < MOMENTS)
        here = bench.wire(cycle == moment)
        valid = bench.any(1, "valid")
        word, wrong = (bench.any(one.i.payload.shape(), name) for name in ("word", "wrong"))
        bench.assume(~legal_words(parameters, wrong))
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
        bench.claim(
            "the word is counted once at the most", (counted == base) | (counted == base + 1)
        )
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
        return bench

    return build


def words_bench():
    """Words that leave, compared with a model that sees each word as it is taken."""
    parameters = ingress_parameters(timestamp_bits=2)
    bench = Bench()
    dut = bench.add(Ingress(parameters))
    put = offer(bench, dut.i)
    bench.set(dut.room, bench.any(1, "room"))
    got = take(bench, dut.o, "words")
    word = dut.i.payload
    is_tuple = bench.wire(Value.cast(word.kind) < 2)
    clear = bench.wire((word.kind == InputKind.CONTROL) & (word.body.control.op == Control.CLEAR))
    legal = bench.wire(legal_words(parameters, word))
    time = word.body.tuple.timestamp
    newest = bench.register(2, "newest")
    disorder, illegal = bench.register(1, "disorder"), bench.register(1, "illegal")
    late = bench.wire(is_tuple & (disorder | (time < newest)))
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
    inside = keeps_order(bench, "ingress", put & legal & ~late, value, got, seen, most=24).level
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
    bench.cover("a word carries both faults", got & out.disorder & out.illegal)
    return bench


def credits_bench():
    """Stars are reported while there is room, and at most twice without room."""
    bench = Bench()
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
    return bench


KEYS = (KeyField(name="x", bits=2), KeyField(name="y", bits=2, signed=False))


def predicate_bench():
    """A tuple becomes what it compares stored keys with, under the bounds set before it."""
    parameters = ingress_parameters(comparator="band", keys=KEYS, timestamp_bits=1)
    bench = Bench()
    dut = bench.add(ProbePreparation(parameters))
    word = bench.any(dut.i.payload.shape(), "word")
    valid = bench.any(1, "valid")
    bench.set(dut.i.valid, valid)
    bench.set(Value.cast(dut.i.payload), Value.cast(word))
    control, kind = word.word.body.control, word.word.kind
    is_control = bench.wire(kind == InputKind.CONTROL)
    key = word.word.body.tuple.key
    stored = bench.constant(dut.o.payload.body.tuple.key.shape(), "stored")
    meets = []
    for n, field in enumerate(KEYS):
        bits = field.bits
        bounds = {}
        for op, name, init in (
            (Control.BOUND_LOW, "low", -(1 << bits)), (Control.BOUND_HIGH, "high", (1 << bits) - 1),
        ):  # fmt: skip
            sets = is_control & (control.op == op) & (control.index == n)
            bench.assume(word.bounds[field.name][name] == sets)
            bound = bench.register(signed(bits + 1), name, init=init)
            nearest = bench.wire(
                Mux(
                    control.value < -(1 << bits),
                    -(1 << bits),
                    Mux(control.value > (1 << bits) - 1, (1 << bits) - 1, control.value),
                )
            )
            bench.next(bound.eq(Mux(valid & sets, nearest, bound)))
            bounds[name] = bound
        # The key is stored without its sign.
        own = stored[field.name] - (1 << bits - 1 if field.signed else 0)
        difference = bench.wire(
            Mux(kind == InputKind.R, key[field.name] - own, own - key[field.name])
        )
        meets.append((difference >= bounds["low"]) & (difference <= bounds["high"]))
    expected, kinds, came = Cat(meets).all(), Value.cast(kind), valid
    value = Value.cast(key)
    for _ in range(dut.latency):
        expected, kinds, came = bench.past(expected), bench.past(kinds), bench.past(came)
        value = bench.past(value)
    comparator = bench.add(Comparator(parameters, probe_side=0), "comparator")
    bench.set(Value.cast(comparator.key), Value.cast(stored))
    criterion = dut.o.payload.body.tuple.criterion
    for path, _, part in comparator.criterion.signature.flatten(comparator.criterion):
        bench.set(part, criterion[path[0]])
    bench.claim("words leave after the latency", dut.o.valid == came)
    bench.claim("kinds are kept", ~dut.o.valid | (dut.o.payload.kind.as_value() == kinds))
    is_tuple = bench.wire(came & (kinds < 2))
    found, was_tuple = comparator.match, bench.past(is_tuple)
    bench.claim(
        "a stored key matches if it lies inside the bounds",
        ~was_tuple | (found == bench.past(expected)),
    )
    bench.claim(
        "a tuple is stored as its key, the sign inverted",
        ~is_tuple | (Value.cast(dut.o.payload.body.tuple.key) == (value ^ 0b10)),
    )
    bench.cover(
        "a key matches by a bound that was set", was_tuple & found & (Value.cast(stored) != 0)
    )
    passes(bench, dut, word, came, is_tuple, kinds)
    bench.cover("a key lies just outside", was_tuple & ~found)
    return bench


def passes(bench, dut, word, came, is_tuple, kinds):
    """Claim that everything that is not compared passes unchanged."""
    names = sorted(decision_members(dut.parameters))
    beside = Cat(word[name] for name in names)
    time, control = word.word.body.tuple.timestamp, Value.cast(word.word.body.control)
    in_range = ~Value.cast(word.limits).any()
    for _ in range(dut.latency):
        beside, time, in_range = bench.past(beside), bench.past(time), bench.past(in_range)
        control = bench.past(control)
    out = dut.o.payload
    bench.claim("decisions pass", ~came | (Cat(out[name] for name in names) == beside))
    bench.claim("timestamps pass", ~is_tuple | (out.body.tuple.timestamp == time))
    executed = came & in_range & (kinds == InputKind.CONTROL.value)
    same = Value.cast(out.body.control) == control
    bench.claim("control words pass if their value is in range", ~executed | same)


PROOFS = [
    Proof(
        name="illegal-word",
        says="an illegal word changes nothing but its counter and the fault that words carry",
        component=f"Ingress, an equality, in any of the first {MOMENTS} cycles",
        build=illegal_word(ingress_parameters(timestamp_bits=2)),
        depth=11,
        mutate=(Ingress.elaborate_legality, Ingress.elaborate_groups),
        spared=dict.fromkeys(
            (
                "output.payload.illegal",
                "without illegal.eq",
                "If(advance)",
                "illegal & ~word.clear",
                "~word.legal -> word.legal (2)",
                "~word.clear -> word.clear",
                "punctuation",
                "closing_sides",
            ),
            "ingress-words, and punctuation of what is decided about legal words",
        ),
    ),
    Proof(
        name="ingress-words",
        says="legal words whose time is in order leave once, in order, with the faults before them",
        component="Ingress, an equality with timestamps of 2 bits",
        build=words_bench,
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
            "advance & ~word.legal": "illegal-word",
            "~word.legal -> word.legal (1)": "illegal-word",
            "If(has_tuples(self.parameters, ordered.payload)) -> If(1)": "it takes more cycles than"
            " the bound until a control word is missing; tests of the ingress see it",
        },
    ),
    Proof(
        name="ingress-credits",
        says="without room no more stars are told than the order queue keeps places for",
        component="Ingress, an equality",
        build=credits_bench,
        depth=9,
        mutate=(Ingress.elaborate_acceptance,),
        spared={
            **dict.fromkeys(("checked.payload", "~drop -> drop"), "ingress-words"),
            "without checked.valid": "no word is taken any more: ingress-words",
            "checked.valid.eq(words.valid & self.room & ~drop) and": "ingress-words",
            "checked.ready & self.room -> checked.ready | self.room": "ingress-words",
        },
    ),
    Proof(
        name="band",
        says="a probe matches a stored key exactly if the bounds in force say so",
        component="ProbePreparation and Comparator, 2 fields of 2 bits",
        build=predicate_bench,
        depth=7,
        mutate=(
            ProbePreparation,
            preparations.place_range,
            preparations.unsigned_key,
            Comparator,
            operands.saturated,
        ),
        spared={
            **dict.fromkeys(
                (
                    "sums.first < 0 -> ",
                    "sums.final < 0 -> sums.final <= 0 (2)",
                    "sums.final < 0 -> sums.final < 1 (2)",
                ),
                "zero is in the field, and clamped to zero",
            ),
            "above.eq(packed(group, self.key, guard=1) - low) and": "both have to hold",
            "Cat(matches).all()": "both fields are in one group",
            "self.parameters.engine == 'index'": "whether a stage without a word keeps its payload"
            " changes no word",
        },
    ),
]

# SPDX-License-Identifier: Apache-2.0
"""Proofs about the facts that follow from an input word alone."""

from amaranth import *

from hdl.ingress import word_facts as facts
from hdl.words import operands
from hdl.words.inputs import Control, InputKind, input_word, value_ranges

from .proof import proof
from .small import ingress_parameters

__all__ = ["legal_words"]


#: Parameters of an index with timestamps, which has all operations.
FULL = {"engine": "index", "comparator": "band", "timestamp_bits": 2, "bucket_bits": 1}


def legal_words(parameters, word):
    """Return whether a word is legal according to the comments of :class:`Control`."""
    control, is_control = word.body.control, word.kind == InputKind.CONTROL
    index = control.index
    known = {
        Control.CLEAR: C(1), Control.FLUSH: C(1), Control.PRECISION: C(1),
        Control.CORE: C(1), Control.SEGMENT: C(1),
        Control.BOUND_LOW: index < len(parameters.keys),
        Control.BOUND_HIGH: index < len(parameters.keys),
        Control.WINDOW: index < 2, Control.LIFESPAN: index < 2,
        Control.DISTINCT: index < 2, Control.COORDINATE: index < len(parameters.keys),
        Control.MASK: C(1), Control.UNMASK: C(1),
    }  # fmt: skip
    if not parameters.has_gates:
        del known[Control.MASK], known[Control.UNMASK]
    if not parameters.timestamp_bits:
        del known[Control.LIFESPAN]
    if parameters.engine.kind != "index":
        del known[Control.DISTINCT], known[Control.COORDINATE]
    if parameters.bounded and parameters.engine.digest_bits is not None:
        known[Control.CELL] = index < len(parameters.keys)
    executed = Cat((control.op == op) & legal for op, legal in known.items()).any()
    tuples = (word.kind == InputKind.R) | (word.kind == InputKind.S)
    if parameters.engine.tuples_per_word == 2:
        tuples |= word.kind == InputKind.BOTH
    return tuples | (is_control & executed)


def window_facts(bench, parameters, known, control, executed):
    """Claim what a control word says of windows, and of turns."""
    which = Cat(control.value == n for n in range(parameters.cores))
    bench.claim("a core that exists is seen", known["exists"] == which.any())
    bench.claim("… with its number", ~known["exists"] | (known["which"] == which))
    for name, op in (("core", Control.CORE), ("segment", Control.SEGMENT)):
        bench.claim(f"{op.name} is seen", known[name] == (executed & (control.op == op)))
    count, time = control.op == Control.WINDOW, control.op == Control.LIFESPAN
    begins = executed & (count | time)
    bench.claim("a new window is seen", ~executed | (known["begins"] == begins))
    bench.claim("a time-based window is seen", ~begins | (known["timed"] == time))
    every = (
        executed
        & Cat(
            control.op == op
            for op in (Control.CLEAR, Control.DISTINCT, Control.COORDINATE, Control.CELL)
        ).any()
    )
    for n, side in enumerate("RS"):
        own = every | (begins & (control.index == n))
        bench.claim(f"words that empty the window of {side} are seen", known["empties"][n] == own)


def word_facts(bench, parameters):
    """Return a function that builds the bench of the facts about a word."""
    layout = input_word(parameters)
    word = bench.any(layout, "word")
    known = {
        name: bench.wire(Value.cast(value))
        for name, value in facts.word_facts(parameters, word).items()
    }
    control, is_control = word.body.control, word.kind == InputKind.CONTROL
    legal = legal_words(parameters, word)
    bench.claim("legal words are those that mean something", known["legal"] == legal)
    bench.claim(
        "an illegal word holds no tuple, ends no group and sets nothing",
        known["legal"]
        | ~Cat(
            known[name]
            for name in (
                "is_r",
                "is_s",
                "finish",
                "set_precision",
                "bounds",
                "clear",
                "empties",
            )
        ).any(),
    )
    both = word.kind == InputKind.BOTH if parameters.engine.tuples_per_word == 2 else C(0)
    bench.claim("tuples of R are seen", known["is_r"] == ((word.kind == InputKind.R) | both))
    bench.claim("tuples of S are seen", known["is_s"] == ((word.kind == InputKind.S) | both))
    passes = control.op.as_value().matches(Control.BOUND_LOW, Control.BOUND_HIGH, Control.CORE)
    if parameters.has_gates:
        nobody = ~Cat(control.value == n for n in range(parameters.cores)).any()
        passes |= nobody & control.op.as_value().matches(Control.MASK, Control.UNMASK)
    bench.claim(
        "all control words end groups, but bounds, CORE, and those that mask no core",
        known["finish"] == (is_control & legal & ~passes),
    )
    window_facts(bench, parameters, known, control, is_control & legal)
    precision = bench.wire(is_control & (control.op == Control.PRECISION))
    bench.claim("a precision is set by its control word only", known["set_precision"] == precision)
    longest = 1 << parameters.engine.probe_bits
    inside = (control.value > 0) & (control.value < longest)
    none = bench.wire(control.value == 0)
    period = bench.wire(Mux(inside, control.value, Mux(none, 0, longest)))
    clear = is_control & (control.op == Control.CLEAR)
    bench.claim("CLEAR is seen", known["clear"] == clear)
    if parameters.engine.tuples_per_word == 2:
        bench.claim("the side of the first tuple is told", known["first"] == word.first)
    bench.claim(
        "zero asks for no stars, and a number beyond the probe index for the longest period",
        ~precision | (known["wanted"] == period),
    )
    bench.claim("a period of one is told", ~precision | (known["single"] == (period == 1)))
    bench.claim(
        "a period longer than a group, or none, is told",
        ~precision | (known["unordered"] == (none | (period > parameters.engine.probes))),
    )
    limits = dict(zip(value_ranges(parameters).items(), range(0, 8, 2), strict=False))
    for (op, (low, high)), bit in limits.items():
        of_op = is_control & (control.op == op)
        bench.claim(
            f"values of {op.name} beyond their range are told",
            known["limits"][bit : bit + 2]
            == Cat(of_op & (control.value < low), of_op & (control.value > high)),
        )
    if parameters.bounded:
        bench.claim(
            "a bound is set by its control word only",
            known["bounds"]
            == Cat(
                is_control & (control.op == op) & (control.index == n)
                for n, _ in enumerate(parameters.keys)
                for op in (Control.BOUND_LOW, Control.BOUND_HIGH)
            ),
        )
    bench.cover("a word is illegal", ~known["legal"] & is_control & (control.op == Control.WINDOW))
    bench.cover("a precision sets a period", precision & (period == 2) & ~known["unordered"])


FACTS = (
    facts.word_facts, facts.is_clear, facts.emptied, operands.executes, operands.is_legal,
    operands.ends_groups, operands.core_exists, operands.bounds_set, operands.value_limits,
)  # fmt: skip

#: Mutants of what the proofs' parameters leave out.
ELSEWHERE = {
    "~none -> none": "every period is one, or none, only without a probe index; these have one"
    " (the test of all periods has none)",
}


proof(
    "word-facts",
    says="what a word says by itself; one that is illegal says nothing",
    component="word_facts, index with timestamps",
    depth=2,
    induction=1,
    mutate=FACTS,
    spared=ELSEWHERE,
    given={"parameters": ingress_parameters(**FULL)},
)(word_facts)
proof(
    "word-facts-pairs",
    says="… of words of up to two tuples",
    component="word_facts, two tuples",
    depth=2,
    induction=1,
    mutate=FACTS,
    spared=ELSEWHERE,
    given={"parameters": ingress_parameters(engine="index", bucket_bits=1, tuples_per_word=2)},
)(word_facts)
proof(
    "word-facts-gates",
    says="… where cores have gates",
    component="word_facts, scan, 3 cores with gates",
    depth=2,
    induction=1,
    mutate=FACTS,
    spared=ELSEWHERE,
    given={"parameters": ingress_parameters(cores=3, failure_cycles=4096)},
)(word_facts)

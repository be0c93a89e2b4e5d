# SPDX-License-Identifier: Apache-2.0
"""Proof about what a probe is compared with."""

from amaranth import *

from hdl.ingress import preparation as preparations
from hdl.ingress.preparation import ProbePreparation
from hdl.parameters import KeyField
from hdl.predicates import band
from hdl.predicates.rule import Comparator
from hdl.words import operands
from hdl.words.inputs import Control, InputKind
from hdl.words.prepared import decision_members

from .proof import proof
from .small import ingress_parameters

__all__ = []

KEYS = (KeyField(name="x", bits=2), KeyField(name="y", bits=2, signed=False))


@proof(
    "band",
    says="a probe matches a stored key exactly if the bounds in force say so",
    component="ProbePreparation and Comparator, 2 fields of 2 bits",
    depth=7,
    mutate=(
        ProbePreparation,
        preparations.place_range,
        band.unsigned_key,
        band.Band.compare,
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
        "above.eq(packed(group, comparator.key, guard=1) - low) and": "both have to hold",
        "Cat(matches).all()": "both fields are in one group",
    },
)
def predicate_bench(bench):
    """A tuple becomes what it compares stored keys with, under the bounds set before it."""
    parameters = ingress_parameters(comparator="band", keys=KEYS, timestamp_bits=1)
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

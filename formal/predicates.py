# SPDX-License-Identifier: Apache-2.0
"""Proofs that the examples of predicates decide what their texts say."""

from amaranth import *

from hdl.parameters import JoinParameters, KeyField
from hdl.predicates.distance import Distance
from hdl.predicates.not_equal import NotEqual
from hdl.predicates.rule import Comparator

from .proof import proof

__all__ = ["small_distance"]

CARDS = (KeyField(name="card", bits=3, signed=False), KeyField(name="city", bits=2, signed=False))
POINTS = (KeyField(name="x", bits=3, signed=False), KeyField(name="y", bits=3, signed=False))

#: :class:`hdl.predicates.distance.Distance` for a plane of eight by eight points.
small_distance = Distance(3)


def predicate_bench(bench, keys, predicate, probe_side, meaning):
    """A stored key is compared with a probe; ``meaning`` says of two keys whether they match."""
    parameters = JoinParameters.of(keys=keys, comparator="custom", predicate=predicate)
    dut = bench.add(Comparator(parameters, probe_side=probe_side))
    probe = {field.name: bench.any(field.bits, f"probe_{field.name}") for field in keys}
    stored = {field.name: bench.any(field.bits, f"stored_{field.name}") for field in keys}
    for name, value in probe.items():
        bench.set(Value.cast(getattr(dut.criterion, name)), value)
        bench.set(Value.cast(dut.key[name]), stored[name])
    r, s = (stored, probe) if probe_side else (probe, stored)
    expected = bench.wire(meaning(r, s))
    known = C(1)
    for _ in range(dut.latency):
        expected, known = bench.past(expected), bench.past(known)
    bench.claim("a match is what the text says", ~known | (dut.match == expected))
    bench.cover("keys match", known & dut.match)
    bench.cover("keys do not match", known & ~dut.match)


@proof(
    "predicate-not-equal",
    says="the example of a predicate finds the same card in different cities, and nothing else",
    component="Comparator with NotEqual, fields of 3 and 2 bits",
    depth=4,
    induction=2,
    mutate=(NotEqual.match,),
)
def not_equal_bench(bench):
    """The same card in different cities."""
    predicate_bench(
        bench,
        CARDS,
        "hdl.predicates.not_equal:NotEqual",
        0,
        lambda r, s: ~(r["card"] ^ s["card"]).any() & (r["city"] ^ s["city"]).any(),
    )


@proof(
    "predicate-distance",
    says="the example with multipliers finds the points within the distance, and no others",
    component="Comparator with Distance(3), 2 fields of 3 bits",
    depth=6,
    induction=4,
    mutate=(Distance.match,),
)
def distance_bench(bench):
    """Points that are near one another, by tables of squares in place of multipliers."""

    def square(one, other):
        difference = Mux(one > other, one - other, other - one)[:3]
        found = C(0, 7)
        for number in range(1, 8):
            found = Mux(difference == number, C(number**2, 7), found)
        return found

    predicate_bench(
        bench,
        POINTS,
        "formal.predicates:small_distance",
        1,
        lambda r, s: square(r["x"], s["x"]) + square(r["y"], s["y"]) < 10,
    )

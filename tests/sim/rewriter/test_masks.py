# SPDX-License-Identifier: Apache-2.0
"""Masks of the lowest bits; tests/sim/verilated/test_plain.py compares what is compiled."""

from itertools import chain

from hypothesis import given, settings
from hypothesis import strategies as st
import pytest

from sim.rewriter.netlist import (
    ALWAYS,
    Bits,
    Clause,
    Expression,
    Module,
    Register,
    Run,
    Signal,
    Target,
)
from sim.rewriter.passes import shift_masks

WIDTH_BITS, BITS = 4, 12


def bit_of(number, width, *, kind="$lt", signed=False):
    """Bit ``number`` of the mask of a width, in one of the two forms that it has in netlists."""
    operands = Bits.constant(number, 4), Bits.whole(width, WIDTH_BITS)
    return Expression(kind, operands if kind == "$lt" else operands[::-1], signed)


def logic(variables, bits):
    """Logic with variables, of which an expression and a register read ``bits``."""
    variables = {**variables, "read": Expression("$and", (Bits.whole("a", bits.width), bits))}
    widths = {"v": WIDTH_BITS, "w": WIDTH_BITS, "a": bits.width, "read": bits.width}
    signals = {name: Signal(widths.get(name, 1)) for name in [*variables, "v", "w", "a", "q"]}
    clause = Clause(ALWAYS, Target("q"), Expression("bits", (bits,)))
    register = Register(Bits.whole("clk", 1), [clause])
    return Module("m", {}, signals, variables, [register], clock="clk")


def masks(kind="$lt", count=BITS, signed=False):
    """Bits of the masks of two widths."""
    return {
        f"{width}{n}": bit_of(n, width, kind=kind, signed=signed)
        for width in "vw"
        for n in range(count)
    }


def value(found, bits, given_values):
    """Return the value of bits, by what Verilog says of the expressions."""
    total, place = 0, 0
    for run in bits.runs:
        whole = run.low if run.name is None else signal(found, run.name, given_values) >> run.low
        total |= (whole & (1 << run.width) - 1) << place
        place += run.width
    return total


def signal(found, name, given_values):
    if name in given_values:
        return given_values[name]
    expression = found.variables[name]
    first, *other = [value(found, bits, given_values) for bits in expression.operands]
    results = {
        "$lt": lambda: first < other[0],
        "$gt": lambda: first > other[0],
        "$shl": lambda: first << other[0],
        "$not": lambda: ~first,
        "$and": lambda: first & other[0],
    }
    return int(results[expression.kind]()) & (1 << found.signals[name].width) - 1


RUNS = st.one_of(
    st.tuples(st.sampled_from("vw"), st.integers(0, BITS - 1), st.integers(1, BITS)).map(
        lambda drawn: [Run(f"{drawn[0]}{n}", 0, 1) for n in range(drawn[1], BITS)][: drawn[2]]
    ),
    st.just([Run("a", 2, 3)]),
    st.integers(0, 3).map(lambda number: [Run(None, number, 2)]),
)


@settings(max_examples=60, deadline=None)
@given(
    lists=st.lists(RUNS, min_size=1, max_size=5),
    kind=st.sampled_from(["$lt", "$gt"]),
    widths=st.tuples(st.integers(0, 15), st.integers(0, 15)),
    other=st.integers(0, (1 << 64) - 1),
)
def test_bits_that_contain_masks_have_the_values_that_they_had(lists, kind, widths, other):
    bits = Bits.of(chain.from_iterable(lists))
    found, before = logic(masks(kind), bits), logic(masks(kind), bits)
    shift_masks(found)
    values = {"v": widths[0], "w": widths[1], "a": other & (1 << bits.width) - 1}
    assert signal(found, "read", values) == signal(before, "read", values)
    read = found.registers[0].clauses[0].value.operands[0]
    assert value(found, read, values) == value(before, bits, values)


@pytest.mark.parametrize("kind", ["$lt", "$gt"])
def test_a_mask_is_one_shift_for_all_that_read_it(kind):
    bits = Bits.of([*(Run(f"w{n}", 0, 1) for n in range(BITS)), Run("a", 0, 1)])
    found = logic(masks(kind), bits)
    shift_masks(found)
    run, other = found.variables["read"].operands[1].runs
    assert run == Run("mask", 0, BITS)
    assert other == Run("a", 0, 1)
    assert found.registers[0].clauses[0].value.operands[0].runs == (run, other)
    assert [value.kind for value in found.variables.values()].count("$shl") == 1


def test_too_few_bits_and_bits_in_another_order_stay():
    few = [Run(f"w{n}", 0, 1) for n in range(3)]
    mixed = [Run(f"{'vw'[n % 2]}{n}", 0, 1) for n in range(8)]
    falling = [Run(f"w{n}", 0, 1) for n in reversed(range(8))]
    for runs in (few, mixed, falling):
        found = logic(masks(), Bits.of(runs))
        shift_masks(found)
        assert found.variables["read"].operands[1] == Bits.of(runs)


def test_comparisons_of_signed_numbers_are_no_mask():
    bits = Bits.of(Run(f"w{n}", 0, 1) for n in range(8))
    found = logic(masks(signed=True), bits)
    shift_masks(found)
    assert found.variables["read"].operands[1] == bits

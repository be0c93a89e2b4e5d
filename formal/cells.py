# SPDX-License-Identifier: Apache-2.0
"""Proofs about the digests of a band: the cells of keys and probes."""

from functools import reduce

from amaranth import *

from hdl.predicates import cells
from hdl.predicates.cells import CellComparator

from .proof import proof

__all__ = []

WIDTHS = [4, 2]
#: Bits of a value, and largest shift, in the proof that no match is lost.
VALUE_BITS, SHIFTS = 6, 3


def passed(carry, lut):
    """Return the carry behind a LUT of a ``CCU2C``, as Yosys' model of it computes the carry."""
    table, inject, inputs, _ = lut
    independent = inject == "NO"
    propagated = Const(table, 16).bit_select(Cat(inputs[n] for n in range(4)), 1)
    generated = Const(table, 16)[:4].bit_select(Cat(inputs[n] for n in range(2)), 1) & independent
    return Mux(propagated, carry, generated)


def row_cells(bench, parts):
    """Return the double cells of a stored key, given its cell in each part."""
    doubles = bench.any(cells.double_cells_layout([len(part) for part in parts]), "doubles")
    for name, found in zip(("even", "odd"), zip(*map(cells.double_cells, parts), strict=True),
                           strict=True):  # fmt: skip
        bench.assume(doubles[name] == Cat(found))
    return doubles


@proof(
    "cell-comparator",
    says="a digest agrees exactly if each cell is the probe's first or the one after it, as"
    " logic and in the carry chain of an ECP5",
    component=f"CellComparator, parts of {' and '.join(map(str, WIDTHS))} bits",
    depth=3,
    induction=1,
    mutate=(CellComparator, cells.chain, cells.probe_digest),
)
def comparator_bench(bench):
    """Compare a comparator, and its carry chain, with what a match of cells means."""
    stored, first = (
        [bench.any(width, f"{name}_{n}") for n, width in enumerate(WIDTHS)]
        for name in ("cell", "first")
    )
    dut = bench.add(CellComparator(WIDTHS))
    doubles = row_cells(bench, stored)
    digest = bench.wire(cells.probe_digest(first), "digest")
    bench.set(Value.cast(dut.key), Value.cast(doubles))
    bench.set(dut.criterion.digest, digest)
    meets = bench.wire(
        Cat(
            (cell == probe) | (cell == (probe + 1)[: len(probe)])
            for cell, probe in zip(stored, first, strict=True)
        ).all()
    )
    past = bench.past(meets)
    started = ~bench.first()
    bench.claim(
        "a key matches exactly if each of its cells is the probe's first or the one after it",
        ~started | (dut.match == past),
    )
    grids = bench.inside(dut, "grids")
    *luts, (_, _, _, exit_) = cells.chain(
        doubles.even, doubles.odd, digest[len(WIDTHS) :], grids, Signal()
    )
    assert exit_ is not None
    open_input = bench.any(1, "open")  # the carry input of the first cell is left open
    carry = bench.wire(reduce(passed, luts, open_input))
    bench.claim("the carry chain says the same", carry == meets)
    bench.cover("a key in the second cells matches", started & past & (first[0] != stored[0]))
    bench.cover("a cell wraps around", meets & (stored[0] == 0) & (first[0] != 0))


@proof(
    "cell-ranges",
    says="a range that is no wider than a cell loses no match",
    component=f"double cells of {WIDTHS[0]} bits, values of {VALUE_BITS} bits",
    depth=2,
    induction=1,
    mutate=(cells.double_cells, cells.probe_digest),
    spared={"cell + 1 -> cell - 1": "it numbers the same double cells from another one on"},
)
def range_bench(bench):
    """Show that no value of a range is lost whose ends lie in one cell or in neighbours."""
    low, value, high = (bench.any(VALUE_BITS, name) for name in ("low", "value", "high"))
    shift = bench.any(range(SHIFTS + 1), "shift")
    bench.assume(shift <= SHIFTS)
    bench.assume((low <= value) & (value <= high))
    wide = bench.wire(high - low > 1 << shift)
    width = WIDTHS[0]
    stored = bench.wire((value >> shift)[:width])
    first = bench.wire((low >> shift)[:width])
    even, odd = cells.double_cells(stored)
    digest = bench.wire(cells.probe_digest([first]))
    found = bench.wire(Mux(digest[0], odd, even) == digest[1:])
    bench.claim("a range no wider than a cell finds each of its values", wide | found)
    beyond = (high >> shift) > (low >> shift) + 1
    bench.claim("such a range does not reach beyond the second cell", wide | ~beyond)
    bench.cover("a range one wider loses a value", (high - low == (1 << shift) + 1) & ~found)

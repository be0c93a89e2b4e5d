# SPDX-License-Identifier: Apache-2.0
"""Proofs about parity: flipped bits are told, and the gate of the core closes in time."""

from functools import reduce
from operator import or_

from amaranth import *
from amaranth.lib import wiring

from hdl.failures.core_gate import CoreGate, ParityWatch
from hdl.memory.columns import KeyColumn, ParityColumn, parity_of, parity_width
from hdl.words.inputs import Control, InputKind
from hdl.words.results import ResultKind

from .proof import proof
from .small import SMALL
from .stream_rules import offer

__all__ = []

WIDTH, PART, ROWS = 3, 2, 2


class DisturbedMemory(wiring.Component):
    """A :class:`KeyColumn` whose bits may flip on the way out; ``flips`` says which."""

    def __init__(self, width, late):
        self.column = KeyColumn(width=width, depth=ROWS, late=late, zeroed=True)
        self.flips = Signal(width)
        super().__init__(self.column.signature)

    def elaborate(self, platform):
        m = Module()
        m.submodules.column = column = self.column
        inputs = ("write", "place", "row", "address")
        m.d.comb += [
            *(getattr(column, name).eq(getattr(self, name)) for name in inputs),
            self.data.eq(column.data ^ self.flips),
        ]
        return m


class DisturbedColumn(ParityColumn):
    """A :class:`ParityColumn` with a :class:`DisturbedMemory`."""

    def column(self, width):
        self.memory = DisturbedMemory(width, self.late)
        return self.memory


def parity_column(bench, late):
    """A memory of which any bits flip in any cycle."""
    dut = bench.add(DisturbedColumn(width=WIDTH, depth=ROWS, part=PART, late=late))
    bits = parity_width(WIDTH, PART)
    write, place, row = (bench.any(n, "write") for n in (1, 1, WIDTH))
    address, checked = (bench.any(1, "read") for _ in range(2))
    flips = bench.any(WIDTH + bits, "flips")
    for target, value in (
        (dut.write, write), (dut.place, place), (dut.row, row), (dut.address, address),
        (dut.checked, checked), (dut.memory.flips, flips),
    ):  # fmt: skip
        bench.set(target, value)
    if late:
        write, place, row = (bench.past(value) for value in (write, place, row))
    watched = bench.constant(1, "watched")  # a row
    held = bench.register(WIDTH, "held")
    bench.next(held.eq(Mux(write & (place == watched), row, held)))
    hit = write & (place == address)

    def arriving(value):
        return bench.past(bench.past(value))

    shown = arriving((address == watched) & ~hit)
    bench.claim(
        "a row is as it was written last, but for the bits that flipped",
        ~shown | (dut.data == arriving(held) ^ flips[:WIDTH]),
    )
    odd = [
        (flips[first : min(first + PART, WIDTH)].xor() ^ flips[WIDTH + n])
        for n, first in enumerate(range(0, WIDTH, PART))
    ]
    bench.claim(
        "an odd number of flips in a part of a row that counts is told, and nothing else is",
        dut.wrong == bench.past(arriving(checked & ~hit) & reduce(or_, odd)),
    )
    bench.cover("a flip is told", dut.wrong)
    bench.cover("a row comes out that is not zero", shown & (dut.data != 0) & (flips == 0))


#: Cycles from the report of a flipped bit to the first in which no pair passes the gate.
CLOSING = 3


@proof(
    "parity-gate",
    says=f"the gate is closed {CLOSING} cycles after a flip was told, and says whose it was",
    component="CoreGate, results always taken",
    depth=8,
    mutate=(ParityWatch,),
)
def parity_gate(bench):
    """A core that shows anything and tells flips at any time; its results are always taken."""
    parameters = SMALL.with_(failure_cycles=SMALL.longest_silence, parity=True)
    dut = bench.add(CoreGate(parameters))
    bench.set(dut.position, bench.constant(1, "position"))
    bench.set(dut.reset, C(0))
    wrong = bench.any(2, "wrong")
    bench.set(dut.wrong, wrong)
    offer(bench, dut.words)
    word = dut.words.payload
    control = (word.kind == InputKind.CONTROL) & dut.words.valid
    bench.assume(~control | (word.body.control.op.as_value() != Control.UNMASK.value))
    bench.set(dut.core_words.ready, bench.any(1, "ready"))
    cut = bench.register(1, "cut")
    told = bench.past(bench.past(bench.past(wrong.any())))
    bench.next(cut.eq(cut | told))
    first = bench.register(2, "first")
    bench.next(first.eq(Mux(first == 0, wrong, first)))
    strange = bench.register(1, "strange")  # the core has shown a stop that it does not owe
    for n in range(2):
        offer(bench, dut.core_results[n])
        bench.set(dut.results[n].ready, C(1))
        shown, result = dut.core_results[n].payload, dut.results[n].payload
        is_pair = dut.results[n].valid & (result.kind == ResultKind.PAIR)
        bench.assume((shown.kind == ResultKind.PAIR) | (shown.body.punctuation.as_value()[4:] == 0))
        bench.assume(shown.kind.as_value() != ResultKind.NONE.value)
        bench.claim(f"no pair of region {n} passes in time", ~(is_pair & (told | cut)))
        faulty = dut.results[n].valid & ~is_pair & result.body.punctuation.failed
        bench.claim(
            f"a stop of region {n} that lacks something says whose tuples had a flipped bit",
            ~faulty | strange | (result.body.punctuation.failed_parity == first),
        )
        bench.claim(
            f"a stop of region {n} that lacks nothing says no cause",
            ~(dut.results[n].valid & ~is_pair & ~faulty)
            | (result.body.punctuation.failed_parity == 0),
        )
        bench.cover(f"region {n} lacks something because of a flip", faulty & ~strange)
        bench.cover(f"a pair of region {n} passes", is_pair)
    sides = [bench.inside(dut, "sides")[n] for n in range(2)]
    bench.next(strange.eq(strange | sides[0].wrong | sides[1].wrong))
    fails = bench.wire(dut.fails)
    counted = bench.register(1, "counted")
    bench.next(counted.eq(counted | fails))
    bench.claim("a failure is counted once", ~(fails & counted))
    bench.claim(
        "a failure is counted when it is known",
        ~bench.past(dut.failed) | counted | fails | bench.past(fails),
    )


proof(
    "parity-column",
    says="every read that counts tells an odd number of flipped bits, and nothing else",
    component=f"ParityColumn, {WIDTH} bits in parts of {PART}",
    depth=8,
    mutate=(ParityColumn, parity_of),
    given={"late": False},
)(parity_column)
proof(
    "parity-column-late",
    says="… if rows are written late",
    component=f"ParityColumn, {WIDTH} bits in parts of {PART}, late",
    depth=8,
    mutate=(ParityColumn,),
    given={"late": True},
)(parity_column)

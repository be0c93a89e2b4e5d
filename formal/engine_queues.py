# SPDX-License-Identifier: Apache-2.0
"""Proofs about queues and collectors inside the engines: walks, groups and counts."""

from functools import reduce

from amaranth import *

from hdl.index.chain_walker import WalkQueue
from hdl.predicates import cells
from hdl.predicates.cells import CellComparator
from hdl.scan.scanner import PopulationCount
from hdl.scan.serializers import GroupCollector

from .proof import proof
from .small import index_parameters, scan_parameters
from .stream_rules import answers_within, keeps_sequence, take

__all__ = []

# Proofs about queues and collectors inside the engines: walks, groups and counts.


class DeepWalkQueue(WalkQueue):
    """A queue that is shallow enough to be proved, but has the short queue of a deep one."""

    SHALLOW = 2


def walk_queue_bench(bench, kind):
    """Return a function that builds the bench of a walk queue."""
    in_flight = 2
    dut = bench.add(kind(index_parameters(), depth=4, in_flight=in_flight))
    begin = bench.any(2, "begin")
    walks = bench.any(dut.walks.shape(), "walks")
    take_it = bench.any(1, "take")
    bench.set(dut.begin, begin)
    bench.set(Value.cast(dut.walks), Value.cast(walks))
    bench.set(dut.take, take_it)
    bench.assume(~take_it | dut.filled)
    bench.assume((begin == 0) | bench.past(dut.ready, init=1))
    first = dut.first

    def is_part(held, n):
        of = bench.view(walks, held)
        same = Cat(first[name] == of[name] for name in ("probe", "group", "queue")).all()
        entry = of.entries[n]
        return same & Cat(first[name] == entry[name] for name, _ in entry.shape()).all()

    most = 2 * (4 + (8 if kind is DeepWalkQueue else 0))
    inside = keeps_sequence(
        bench,
        "queue",
        begin.any(),
        begin,
        bench.wire(Value.cast(walks)),
        take_it,
        is_part,
        most=most,
    )
    queue = bench.inside(dut, "m").submodules["queue"]
    bench.claim("walks in flight fit when it is not ready", queue.level <= 4)
    bench.claim(
        "ready says that more than those in flight would have fitted",
        dut.ready == (bench.past(queue.level) < 4 - in_flight),
    )
    stuck = ~dut.filled & (inside != 0)
    answers_within(bench, "a walk is shown while any is inside", stuck, 2)
    bench.claim("nothing is shown that is not there", ~dut.filled | (inside != 0))
    bench.cover("queue stops the visits", ~dut.ready)


@proof(
    "group-collector",
    says="a group has its own probes, rows and ending, and waits until it is taken",
    component="GroupCollector, 2 probes, held for 3 cycles",
    depth=10,
    mutate=(GroupCollector,),
    spared={"self.hold - 1 -> self.hold + 1 (1)": "it has bits that nobody looks at"},
)
def group_collector_bench(bench):
    """Groups of up to two probes, held for three cycles."""
    parameters = scan_parameters()
    dut = bench.add(GroupCollector(parameters, hold=3))
    add, close = bench.any(1, "add"), bench.any(1, "close")
    span, ending = bench.any(dut.span.shape(), "span"), bench.any(dut.ending.shape(), "ending")
    second, stop = bench.any(len(dut.second), "second"), bench.any(len(dut.stop), "stop")
    bench.drive(dut, add=add, close=close, second=second, stop=stop)
    bench.set(Value.cast(dut.span), Value.cast(span))
    bench.set(Value.cast(dut.ending), Value.cast(ending))
    bench.assume(~(add | close) | dut.ready)
    count = bench.register(2, "count")
    bench.assume(~add | (count < 2))
    # A full group is closed by its last probe.
    bench.assume(close | ~(add & (count == 1)))
    got = take(bench, dut.group, "group")
    members = {
        "first": (span.tail.row, bench.wire((add | close) & (count == 0))),
        "second": (second, bench.wire((add | close) & (count == 0))),
        "oldest_head": (span.head.row, bench.wire((add | close) & (count == 0))),
        "stop": (stop, add),
        "newest_tail": (span.tail.row, add),
    }
    bench.next(count.eq(Mux(close, 0, count + add)))
    waits = bench.register(1, "waits")
    bench.next(waits.eq((waits | close) & ~got))
    held = bench.register(2, "held")
    bench.next(held.eq(Mux(close, count + add, held)))
    bench.claim("a closed group waits until it is taken", dut.group.valid == waits)
    bench.claim("count is that of its probes", ~waits | (dut.group.payload.ending.count == held))
    bench.claim("probes held are counted", waits | (dut.count == count))
    last = bench.register(len(ending.as_value()), "ending")
    bench.next(last.eq(Mux(close, ending.as_value(), last)))
    said = bench.view(ending, last)
    for name in ("star", "mark", "punctuation"):
        bench.claim(
            f"a group keeps its {name}",
            ~waits | (Value.cast(dut.group.payload.ending[name]) == Value.cast(said[name])),
        )
    for name, (value, changes) in members.items():
        kept, known = bench.register(len(value), name), bench.register(1, "known")
        bench.next(
            kept.eq(Mux(changes, value, kept)),
            known.eq(changes | (known & ~(got & (name in ("stop", "newest_tail"))))),
        )
        bench.claim(
            f"a group keeps its {name}", ~waits | ~known | (dut.group.payload[name] == kept)
        )
    bench.claim("a probe goes to the next slot", dut.add_to == Mux(add, 1 << count, 0))
    bench.claim(
        "ready was told a cycle before", bench.first() | (dut.ready == bench.past(dut.soon))
    )
    bench.claim(
        "nothing is added while a group waits, or is held",
        ~dut.ready | ~(waits | bench.past(got) | bench.past(bench.past(got))),
    )
    free = bench.register(2, "free")
    bench.next(free.eq(Mux(waits & ~got | close, 0, free + (free != 3))))
    bench.claim(
        "a group can begin as soon as the last one is not held",
        (free < 3) | dut.ready | bench.past(close),
    )
    bench.cover("a group of two is taken", got & (held == 2))
    bench.cover("a group of none is taken", got & (held == 0))


@proof(
    "population-count",
    says="the ones of a word are counted",
    component="PopulationCount, 5 bits",
    depth=6,
    mutate=(PopulationCount,),
)
def population_bench(bench):
    """Five bits, counted in two steps."""
    dut = bench.add(PopulationCount(5))
    update, value = bench.any(1, "update"), bench.any(5, "value")
    bench.drive(dut, update=update, i=value)
    counted = bench.register(3, "counted")
    known = bench.register(1, "known")
    bench.next(
        counted.eq(Mux(update, sum(value[n] for n in range(5)), counted)), known.eq(known | update)
    )
    bench.claim("ones are counted", ~bench.past(known) | (dut.o == bench.past(counted)))
    sums = bench.register(3, "counts")
    bench.next(sums.eq(counted))
    bench.cover("five are counted", bench.past(known) & (dut.o == 5))


for _name, _kind, _also, _mutated in (
    ("walk-queue", WalkQueue, "", WalkQueue.elaborate),
    (
        "walk-queue-deep",
        DeepWalkQueue,
        ", with the short queue of a deep one",
        WalkQueue.elaborate_front,
    ),
):
    proof(
        _name,
        says="the walks of a visit set out once each, in order; those in flight find room",
        component=f"WalkQueue, 4 visits, 2 banks{_also}",
        depth=11,
        mutate=(_mutated,),
        given={"kind": _kind},
    )(walk_queue_bench)


# Proofs about the digests of a band: the cells of keys and probes.

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

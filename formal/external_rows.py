# SPDX-License-Identifier: Apache-2.0
"""Proofs about the rows of a pass: which are read, which are copied, and their order."""

from amaranth import *

from hdl.external.reads import COPIES, PassSplitter, RowQueue, RowSelector

from .proof import proof
from .small import external_parameters
from .stream_rules import offer, take

__all__ = []


@proof(
    "row-selector",
    says="rows of two sources leave in the order of their runs, at once",
    component="RowSelector, 4 runs",
    depth=9,
    mutate=(RowSelector,),
)
def row_selector(bench):
    """Four runs that wait, of two sources that have rows at any time."""
    dut = bench.add(RowSelector(external_parameters(), runs=4))
    run, rows = bench.any(1, "run"), bench.any(len(Value.cast(dut.rows)), "rows")
    bench.set(dut.run, run)
    bench.set(Value.cast(dut.rows), rows)
    bench.assume(~run | dut.run_room)
    takes = bench.any(1, "take")
    bench.assume(~takes | dut.o.filled)
    bench.set(dut.o.take, takes)
    for source in (dut.read, dut.copied):
        bench.set(source.filled, bench.any(1, "filled"))
        bench.set(source.row, bench.any(len(source.row), "row"))

    # One run is watched: how many rows leave before it, and how many of its own are left.
    inside, before, own = (bench.register(8, name) for name in ("inside", "before", "own"))
    is_copied, watching = bench.register(1, "copied"), bench.register(1, "watching")
    chosen = bench.wire(run & ~watching & bench.any(1, "choose"), "chosen")
    length = dut.rows.more + 1
    turn = bench.wire(watching & (before == 0) & (own != 0))
    bench.next(
        inside.eq(inside + Mux(run, length, 0) - takes),
        watching.eq(watching | chosen),
        is_copied.eq(Mux(chosen, dut.rows.copied, is_copied)),
        before.eq(Mux(chosen, inside - takes, before - (takes & (before != 0)))),
        own.eq(Mux(chosen, length, own - (takes & turn))),
    )
    mine = Mux(is_copied, dut.copied.filled, dut.read.filled)
    bench.claim("a row is offered only if there is one", ~dut.o.filled | (inside != 0))
    bench.claim("a row is offered only if its source has it", ~turn | ~dut.o.filled | mine)
    bench.claim("a row is taken from one source", takes == (dut.read.take ^ dut.copied.take))
    bench.claim("a row is taken from at most one source", ~(dut.read.take & dut.copied.take))
    bench.claim("a row is taken from its source", ~(turn & takes) | (dut.copied.take == is_copied))
    for source, name in ((dut.read, "read"), (dut.copied, "copied")):
        left = source.take
        for _ in range(RowQueue.LATENCY):
            left = bench.past(left)
        bench.claim(f"a row that was {name} is shown", ~left | (dut.o.row == source.row))
    known = bench.register(8, "known")  # rows inside whose run was told two cycles ago or earlier
    bench.next(known.eq(known + bench.past(Mux(run, length, 0)) - takes))
    at_hand = bench.wire((known != 0) & dut.read.filled & dut.copied.filled)
    bench.claim("a row whose turn it is is offered at once", ~at_hand | dut.o.filled)
    bench.claim("there is room when nothing is left", dut.run_room | bench.past(inside != 0))
    bench.cover(
        "the watched run ends behind another one", turn & takes & (own == 1) & bench.past(takes)
    )


@proof(
    "pass-splitter",
    says="every row of a pass is read if it is in memory and copied otherwise, once, in order",
    component="PassSplitter, bursts of 4 rows",
    depth=11,
    mutate=(PassSplitter,),
)
def pass_splitter(bench):
    """Bursts of four rows; rows become written while a pass goes on."""
    parameters = external_parameters()
    dut = bench.add(PassSplitter(parameters))
    passes, bursts, burst = dut.passes, dut.bursts, parameters.engine.memory_burst
    put = offer(bench, passes)
    rows = bench.wire((passes.payload.stop - passes.payload.first)[: len(passes.payload.first)])
    empty = passes.payload.empty
    most = parameters.ring_rows - 1
    bench.assume(~passes.valid | empty | ((rows != 0) & (rows <= most)))
    written = bench.any(len(dut.written), "written")
    bench.set(dut.written, written)
    grown = (written - bench.past(written))[: len(written)]
    bench.assume(bench.first() | (grown == 0) | (grown == burst))
    bench.assume(written % burst == 0)
    for name in ("room", "blocked", "run_room"):
        bench.set(getattr(dut, name), bench.any(1, name))
    got = take(bench, bursts, "bursts")

    row, left = (bench.register(len(written), name) for name in ("row", "left"))
    of, told = bench.register(1, "copied"), bench.register(5, "told")
    is_empty = bench.register(1, "empty")
    length = bursts.payload.more + 1
    gone = Mux(got, length, dut.copy)
    bench.next(
        row.eq(Mux(put, passes.payload.first, row + gone)),
        left.eq(Mux(put, Mux(empty, 1, rows), left - gone)),
        is_empty.eq(Mux(put, empty, is_empty)),
        of.eq(Mux(dut.run, dut.rows.copied, of)),
        told.eq(Mux(dut.run, dut.rows.more + 1, told - gone)),
    )
    # Pointers can be compared while they are less than a ring from each other, also in the next
    # cycle.
    ahead, reach = bench.wire((written - row)[: len(row)]), parameters.ring_rows - burst
    bench.assume((left == 0) | ((ahead + reach)[: len(row)] < 2 * reach))
    in_memory = bench.wire(Mux(ahead[-1], 0, ahead))
    bench.claim("a pass is taken when the one before has been split", passes.ready == (left == 0))
    bench.claim("rows are read in order", ~bursts.valid | (bursts.payload.row == row))
    bench.claim(
        "rows are copied in order", ~dut.copy | is_empty | (dut.address == row[: len(dut.address)])
    )
    bench.claim("no more rows are read than the pass has", ~bursts.valid | (length <= left))
    bench.claim("no more rows are copied than the pass has", ~dut.copy | (left != 0))
    bench.claim("only rows in memory are read", ~bursts.valid | (length <= in_memory))
    bench.claim("an empty pass reads nothing", ~bursts.valid | ~is_empty)
    bench.claim(
        "no burst crosses a multiple of its length", ~bursts.valid | (row % burst + length <= burst)
    )
    run, kind, size = dut.run, dut.rows.copied, dut.rows.more + 1
    bench.claim("a row is copied that is not in memory", ~run | ~kind | is_empty | (in_memory == 0))
    bench.claim("few rows are copied on end", ~run | ~kind | (size <= COPIES))
    bench.claim("a run is told when there is room", ~run | (dut.run_room & (dut.room | ~kind)))
    bench.claim("a run is told when the one before has gone", ~run | (told == 0))
    bench.claim("a burst is the run that was told", ~bursts.valid | (~of & (told == length)))
    bench.claim("a copied row is of the run that was told", ~dut.copy | (of & (told != 0)))
    bench.claim("nothing is copied while it cannot be read", ~(dut.copy & dut.blocked))
    free = bench.wire(dut.run_room & dut.room & ~dut.blocked & bursts.ready)
    happens = bench.wire(run | dut.copy | got)
    bench.claim("a pass goes on in every cycle in which it may", (left == 0) | ~free | happens)
    longest = bench.wire(Mux(kind, Mux(is_empty | (left < COPIES), left, COPIES), size))
    bench.claim("rows are copied as long as may be", ~run | (size == longest))
    until = bench.wire(burst - row % burst)
    few = bench.wire(Mux(left < until, left, until))
    bench.claim(
        "rows are read as far as may be",
        ~run | kind | (size == Mux(in_memory < few, in_memory, few)),
    )
    bench.cover("a pass is read, then copied", (left == 1) & dut.copy & bench.past(bench.past(got)))
    bench.cover("a burst is short", got & (length == 2))

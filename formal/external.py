# SPDX-License-Identifier: Apache-2.0
"""Proofs about windows in external memory: their reads, rows and writes."""

from types import SimpleNamespace

from amaranth import *
from amaranth.utils import ceil_log2

from hdl.external.reads import (
    COPIES,
    PassSplitter,
    ReadMaster,
    RowQueue,
    RowSelector,
    drive_address,
)
from hdl.external.rows import WriteBatcher
from hdl.memory.read_ahead import ReadAhead

from .proof import proof
from .small import external_parameters
from .stream_rules import answers_within, keeps_order, offer, take

__all__ = ["address_channel", "keeps_addresses"]

# Proofs about reads from external memory: AXI's rules, and rows that come in order.

#: Bytes that no burst of AXI may cross a multiple of.
BOUNDARY = 4096


def address_channel(axi, prefix):
    """Return an address channel of AXI as a stream: ``payload``, ``valid`` and ``ready``."""
    names = ("id", "addr", "len", "size", "burst")
    return SimpleNamespace(
        payload=Cat(getattr(axi, f"{prefix}{name}") for name in names),
        valid=getattr(axi, f"{prefix}valid"),
        ready=getattr(axi, f"{prefix}ready"),
    )


def keeps_addresses(bench, axi, prefix, parameters):
    """Claim that an address channel keeps the rules of AXI4, whatever it asks for."""
    valid, address = (getattr(axi, f"{prefix}{name}") for name in ("valid", "addr"))
    beats = getattr(axi, f"{prefix}len") + 1
    size = parameters.engine.memory_width // 8
    end = address % BOUNDARY + beats * size
    bench.claim("no burst crosses a multiple of 4 KiB", ~valid | (end <= BOUNDARY))
    bench.claim(
        "a burst has as many beats as it may", ~valid | (beats <= parameters.engine.memory_burst)
    )
    bench.claim("addresses are those of whole beats", ~valid | (address % size == 0))
    bench.claim("every beat is as wide as the port", (1 << getattr(axi, f"{prefix}size")) == size)
    bench.claim("addresses rise from beat to beat", getattr(axi, f"{prefix}burst") == 1)


@proof(
    "read-master",
    says="bursts leave by the rules of AXI4, for no more than has a place; rows come in order",
    component="ReadMaster, bursts of 8 beats of 1024 bits, 32 places",
    depth=8,
    mutate=(ReadMaster, drive_address),
)
def read_master(bench):
    """Bursts of up to eight beats of 1024 bits, and a queue with places for four of them."""
    parameters = external_parameters(memory_width=1024, memory_burst=8)
    dut = bench.add(ReadMaster(parameters))
    axi, bursts, burst = dut.axi, dut.bursts, parameters.engine.memory_burst
    put = offer(bench, bursts)
    place, more = bursts.payload.row % burst, bursts.payload.more
    bench.assume(~bursts.valid | (place + more < burst))  # as PassSplitter makes them
    got = take(bench, address_channel(axi, "ar"), "ar")
    keeps_addresses(bench, axi, "ar", parameters)
    row = axi.araddr[ceil_log2(parameters.engine.memory_width // 8) :]
    asked = keeps_order(
        bench, "bursts", put, Cat(bursts.payload.row[: len(row)], more), got,
        Cat(row, axi.arlen[: len(more)]), most=2,
    )  # fmt: skip

    # The memory answers what was asked for, in order, as late as it likes.
    owed = bench.register(range(4 * dut.depth), "owed")
    comes, value = bench.any(1, "comes"), bench.any(len(dut.row), "row")
    response = bench.any(2, "response")
    bench.assume(~comes | (owed != 0))
    bench.drive(axi, rvalid=comes, rdata=value, rresp=response)
    bench.next(owed.eq(owed + Mux(got, axi.arlen + 1, 0) - comes))
    takes = bench.any(1, "take")
    bench.assume(~takes | dut.filled)
    bench.set(dut.take, takes)
    held, promised = (bench.register(range(4 * dut.depth), name) for name in ("held", "promised"))
    bench.next(held.eq(held + comes - takes))
    bench.next(promised.eq(promised + Mux(put, more + 1, 0) - takes))
    bench.claim("data are taken whenever they come", axi.rready)
    bench.claim("all that is outstanding has a place", owed + held <= dut.depth)
    room = bench.wire(promised <= dut.depth - burst)
    bench.claim(
        "a burst is requested while it has places", bursts.ready == ((asked.level < 2) & room)
    )
    bench.claim("filled says that a row is at hand", dut.filled == (held != 0))
    bench.claim("an error is told", dut.wrong == (comes & (response != 0)))
    left = bench.past(bench.past(takes))
    keeps_order(bench, "rows", comes, value, left, dut.row, most=dut.depth + RowQueue.LATENCY)
    bench.cover("every place is promised, and a burst waits", bursts.valid & (promised > 24))


@proof(
    "row-queue",
    says="rows come two cycles after they are taken, in order, and none is lost",
    component="RowQueue, 4 places",
    depth=11,
    mutate=(RowQueue,),
)
def row_queue(bench):
    """A queue of four rows, used according to its contract."""
    dut = bench.add(RowQueue(2, depth=4))
    add, takes, value = bench.any(1, "add"), bench.any(1, "take"), bench.any(2, "row")
    held = bench.register(range(8), "held")
    bench.next(held.eq(held + add - takes))
    bench.assume(~takes | dut.filled)
    bench.assume(~add | (held < 4))
    bench.drive(dut, add=add, take=takes, last=value)
    bench.claim("filled says that there are any", dut.filled == (held != 0))
    left = bench.past(bench.past(takes))
    keeps_order(bench, "queue", add, value, left, dut.row, most=4 + RowQueue.LATENCY)
    bench.cover("queue is full", held == 4)


# Proofs about the rows of a pass: which are read, which are copied, and their order.


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


# Proof about writes to external memory: AXI's rules, and every row once, in its place.

#: Most rows that are complete and not written: the parent's memory holds more.
MOST = 16


@proof(
    "write-batcher",
    says="complete rows are written once, in order, in whole bursts by the rules of AXI4",
    component="WriteBatcher, bursts of 2 rows",
    depth=11,
    mutate=(WriteBatcher,),
    spared={"place + 1 -> place - 1": "of two rows, the next is the one before"},
)
def write_batcher(bench):
    """Bursts of two rows; rows are complete at any pace, one of them is watched."""
    parameters = external_parameters(memory_burst=2)
    dut = bench.add(WriteBatcher(parameters))
    axi, burst, depth = dut.axi, parameters.engine.memory_burst, parameters.engine.recent_rows
    head = bench.register(len(dut.head), "head")
    grows = bench.any(2, "grows")
    bench.next(head.eq(head + grows))
    bench.set(dut.head, head)
    unwritten = bench.wire((head - dut.written)[: len(head)])
    bench.assume(unwritten + grows <= MOST)

    watched, content = bench.constant(range(depth), "watched"), bench.constant(len(dut.row), "row")
    named = bench.past(bench.past(dut.address == watched))
    bench.set(dut.row, Mux(named, content, bench.any(len(dut.row), "other")))

    asks = take(bench, address_channel(axi, "aw"), "aw")
    keeps_addresses(bench, axi, "aw", parameters)
    names = ("data", "strb", "last")
    data = SimpleNamespace(
        payload=Cat(getattr(axi, f"w{name}") for name in names), valid=axi.wvalid, ready=axi.wready
    )
    sent = take(bench, data, "w")
    comes, response = bench.any(1, "answer"), bench.any(2, "response")
    bench.drive(axi, bvalid=comes, bresp=response)

    asked, gone, done = (bench.register(len(head), name) for name in ("asked", "sent", "written"))
    bench.next(asked.eq(asked + Mux(asks, burst, 0)), gone.eq(gone + sent))
    bench.next(done.eq(done + Mux(comes, burst, 0)))
    owes = bench.wire((gone - done)[: len(head)])
    bench.assume(~comes | (owes >= burst))

    def below(before, after):
        """Return whether one number of rows is at most another one."""
        return ~(after - before)[len(head) - 1]

    bench.claim(
        "bursts are requested in order", ~axi.awvalid | (axi.awaddr == asked[: len(axi.awaddr)])
    )
    bench.claim("bursts are whole", ~axi.awvalid | (axi.awlen == burst - 1))
    bench.claim("only complete rows are written", ~axi.awvalid | below(asked + burst, head))
    bench.claim("data follow their request", ~axi.wvalid | (gone != asked))
    bench.claim(
        "the last beat of a burst is marked",
        ~axi.wvalid | (axi.wlast == (gone % burst == burst - 1)),
    )
    bench.claim("all bytes are written", axi.wstrb.all())
    is_watched = gone[: len(watched)] == watched
    bench.claim("every row is what it was", ~axi.wvalid | ~is_watched | (axi.wdata == content))
    bench.claim("answers are taken whenever they come", axi.bready)
    bench.claim("a row is written when its burst has been answered", dut.written == done)
    bench.claim("an error is told", dut.wrong == (comes & (response != 0)))
    complete = bench.past((head - done)[: len(head)] >= burst)
    bench.claim("busy says that a complete burst is not written", dut.busy == complete)
    due = bench.wire((head - asked)[: len(head)] >= burst)
    answers_within(bench, "a complete burst is requested in time", due & ~axi.awvalid, 2)
    late = bench.wire((gone != asked) & ~axi.wvalid)
    answers_within(bench, "data are not long in following", late, ReadAhead.AHEAD // 2)
    bench.cover("two bursts are under way", (asked - done)[: len(head)] >= 2 * burst)
    bench.cover("the watched row is written", axi.wvalid & is_watched & (content != 0))

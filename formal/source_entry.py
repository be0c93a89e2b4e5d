# SPDX-License-Identifier: Apache-2.0
"""Proof about the entry of a source, and the states that it can be in."""

from types import SimpleNamespace

from amaranth import *

from hdl.scalegate.gate import SourceEntry
from hdl.scalegate.port import LateCheck
from hdl.scalegate.words import GateKind, gate_word, source_word

from .proof import proof
from .stream_rules import answers_within, keeps_order, offer, register_words, take

__all__ = ["entry_states"]

# States that the entry of a source can be in, as invariants.


def entry_states(bench, dut, queue, told, owed, deadline):
    """Claim the states of an entry, given what the bench knows of it.

    Parameters
    ----------
    dut : SourceEntry
        With a queue of four places.
    queue : Watch
        Words inside.
    told : Signal
        Time that has been reached by the latest word.
    owed : list of Signal
        A LEAVE has not left: now, also in the last cycle, also in the two last ones.
    deadline : namespace
        ``limit``, ``run`` (cycles of the present stall), ``stalled`` in the last cycle, and whether
        the deadline was ``reached`` one cycle and two cycles ago.
    """
    check, first, waiting, leaves = (
        bench.inside(dut, name) for name in ("check", "first", "queue", "leaves")
    )
    word, late, before = (bench.inside(check, name) for name in ("word", "late", "before"))
    pair = register_words(bench, first, word)
    rows = queue_rows(bench, waiting, dut.i.payload)
    checked = bench.wire(Mux(late, before, word.time))
    is_leave = [one.there & (one.word.kind == GateKind.LEAVE) for one in pair]
    last = check.o.valid & (word.kind == GateKind.LEAVE)
    inside = [SimpleNamespace(there=check.o.valid & ~last, identity=Cat(
        word.kind, late, checked, word.body
    ))]  # fmt: skip
    bench.invariant(~check.o.valid | (word.source == 1))
    reached = checked
    for one in pair:
        bench.invariant(~one.there | (one.word.source == 1))
        inside.append(passes(bench, one, reached))
        reached = inside[-1].reached
    reached = Mux(leaves, 0, reached)
    for one in rows:
        bench.invariant(~one.there | (one.word.kind != GateKind.LEAVE))
        inside.append(passes(bench, one, reached))
        reached = inside[-1].reached
    bench.invariant(told == reached)
    bench.invariant(queue.level == sum(one.there for one in inside))
    for n, one in enumerate(inside):
        rank = sum((other.there for other in inside[:n]), C(0))
        here = queue.watching & one.there & (queue.before == rank)
        bench.invariant(~here | (one.identity == queue.watched))
    # A LEAVE begins in an entry without words, so it is the oldest word, and moves on at once.
    bench.invariant(owed[0] == (leaves | is_leave[0] | last))
    bench.invariant(~is_leave[1])
    bench.invariant(~leaves | (~pair[0].there & ~check.o.valid & ~owed[1] & ~owed[2]))
    bench.invariant(~is_leave[0] | (~check.o.valid & owed[1] & ~owed[2]))
    bench.invariant(~last | (owed[1] & owed[2]))
    bench.invariant(~deadline.stalled | (~pair[0].there & ~check.o.valid))
    empty = bench.wire((queue.level == 0) & ~owed[0])
    stalls(bench, dut, owed, deadline, empty)


def queue_rows(bench, queue, like):
    """Claim the states of a queue of four places by itself; return its words, the oldest first."""
    head, tail, second, reserved = (
        bench.inside(queue, name) for name in ("head", "tail", "second", "reserved")
    )
    before = bench.past(queue.level)
    bench.invariant(second == (tail + 1)[:3])
    bench.invariant(reserved == (head + 1)[:3])
    bench.invariant(queue.filled == (queue.level != 0))
    bench.invariant(queue.room == (before < 3))
    bench.invariant(queue.level <= before + 1)
    bench.invariant(queue.level <= 4)
    memory = bench.inside(queue, "rows")
    return [
        SimpleNamespace(
            there=queue.level > n, word=bench.view(like, bench.row(memory, (tail + n)[:2]))
        )
        for n in range(4)
    ]


def passes(bench, one, reached):
    """Return what a word that is not checked yet will be, and which time will be reached by it."""
    word = one.word
    is_tuple, is_mark = word.kind == GateKind.TUPLE, word.kind == GateKind.WATERMARK
    late = (is_tuple & (word.time < reached)) | (is_mark & (word.time <= reached))
    time = Mux(is_tuple | is_mark, Mux(late, reached, word.time), 0)
    return SimpleNamespace(
        there=bench.wire(one.there & (word.kind != GateKind.LEAVE)),
        identity=bench.wire(Cat(word.kind, late, time, word.body)),
        reached=bench.wire(Mux(one.there, time, reached)),
    )


def stalls(bench, dut, owed, deadline, empty):
    """Claim how the counters of a stall stand to what the bench has counted."""
    left, counted, expired = (bench.inside(dut, name) for name in ("left", "counted", "expired"))
    limit, run, (once, twice) = deadline.limit, deadline.run, deadline.reached
    bench.invariant(left <= limit)
    bench.invariant(counted == deadline.stalled)
    bench.invariant(~empty | (expired == twice))
    # Nobody stalls while a LEAVE is owed.
    bench.invariant(~(owed[0] & owed[1]) | (~counted & ~once & (run == 0)))
    exact = ~owed[0] & ~twice
    bench.invariant(~exact | counted | (~once & (run == 0)))
    bench.invariant(~exact | ~once | (counted & (left == 1) & (run == 0)))
    goes_on = (run != 0) & (run < limit) & (left + run == limit + 1)
    bench.invariant(~exact | once | ~counted | (limit == 0) | goes_on)
    bench.invariant((limit != 0) | ~once)
    bench.invariant(owed[0] | ~twice | ~counted | (left == 0))


# Proofs about the entry of a source into a ScaleGate: its words, and when it is excluded.

TIME_BITS = 2


@proof(
    "source-entry",
    says="words pass in order; a source is excluded on demand, or when it stalls too long",
    component="SourceEntry, 4 places, deadlines up to 3 cycles",
    depth=10,
    induction=3,
    mutate=(SourceEntry, LateCheck),
    spared={"left != 0 -> left != 1": "the deadline stays in this bench: tests of the entry"},
)
def source_entry(bench):
    """A queue of four places and registers, and an exclusion or a deadline at any time."""
    layouts = source_word(TIME_BITS, 1), gate_word(TIME_BITS, 1, sources=2)
    dut = bench.add(SourceEntry(*layouts, number=1, depth=4))
    put, got = offer(bench, dut.i), take(bench, dut.o, "output")
    blamed, exclude, forget = (bench.any(1, name) for name in ("blamed", "exclude", "forget"))
    for member, value in ((dut.blamed, blamed), (dut.exclude, exclude), (dut.forget, forget)):
        bench.set(member, value)
    deadline = bench.constant(2, "deadline")
    bench.set(dut.deadline, deadline)
    word, own = dut.o.payload, dut.i.payload
    bench.assume(own.kind != GateKind.LEAVE)  # so that the entry's own LEAVE is told apart
    is_own = word.kind == GateKind.LEAVE
    bench.claim("a word has the number of its source", ~dut.o.valid | (word.source == 1))
    begins = Signal(name=bench.name("begins"))  # the source is excluded, before a word at the input
    told = bench.register(TIME_BITS, "told")
    shown = bench.wire(Mux(begins, 0, told))
    is_barrier, is_mark = own.kind == GateKind.BARRIER, own.kind == GateKind.WATERMARK
    less = bench.wire((own.time < shown) | (is_mark & (own.time == shown)))
    time = bench.wire(Mux(is_barrier, 0, Mux(less, shown, own.time)))
    bench.next(told.eq(Mux(put, time, shown)))
    queue = keeps_order(
        bench, "entry", put, Cat(own.kind, less & ~is_barrier, time, own.body),
        got & ~is_own, Cat(word.kind, word.late, word.time, word.body), most=7,
    )  # fmt: skip
    offers = bench.wire(dut.o.valid & is_own)
    owed = bench.register(1, "owed")  # a LEAVE of the entry has not left yet
    empty = bench.wire((queue.level == 0) & ~owed)
    stalled = bench.wire(blamed & empty)
    run = bench.register(2, "run")
    expires = stalled & (deadline != 0) & (run == deadline - 1)
    reached = bench.past(expires)
    reached_before = bench.past(reached)
    bench.next(run.eq(Mux(stalled & ~expires, run + 1, 0)))
    bench.set(begins, empty & (exclude | reached_before))
    bench.next(owed.eq(begins | (owed & ~(got & is_own))))
    owed_before = bench.past(owed)
    owed_long = bench.past(owed & owed_before)
    bench.claim(
        "the source is excluded when it is asked for or has stalled too long, and at no other time",
        offers == (owed & owed_long),
    )
    excluded = bench.register(1, "excluded")
    bench.next(excluded.eq(begins | (excluded & ~forget)))
    bench.claim("an exclusion is remembered", dut.excluded == excluded)
    stalls = bench.register(4, "stalls")
    stalled_before = bench.past(stalled)
    bench.next(stalls.eq(stalls + stalled_before))
    bench.claim("stalls are counted", dut.stalls[:4] == stalls)
    waits = ~dut.o.valid & (queue.level != 0)
    answers_within(bench, "words pass while there are any", waits, 2)
    answers_within(bench, "a queue that is empty takes words", ~dut.i.ready & (queue.level == 0), 2)
    entry_states(
        bench, dut, queue, told, (owed, owed_before, owed_long),
        SimpleNamespace(
            limit=deadline, run=run, stalled=stalled_before, reached=(reached, reached_before)
        ),
    )  # fmt: skip
    bench.cover("a source is excluded by its deadline", offers & ~bench.past(exclude))
    bench.cover("two tuples on end are late", got & word.late & bench.past(got & word.late))

# SPDX-License-Identifier: Apache-2.0
"""Proofs about the entry of a source into a ScaleGate: its words, and when it is excluded."""

from types import SimpleNamespace

from amaranth import *

from hdl.scalegate.gate import SourceEntry
from hdl.scalegate.port import LateCheck
from hdl.scalegate.words import GateKind, gate_word, source_word

from .entry_states import entry_states
from .proof import proof
from .stream_rules import answers_within, keeps_order, offer, take

__all__ = []

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

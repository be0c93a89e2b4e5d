# SPDX-License-Identifier: Apache-2.0
"""Proof about the gate of a core: MASK, UNMASK and failures act at one place of the stream."""

from unittest.mock import patch

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.failures.core_gate import CoreGate, OwedStops
from hdl.local_reset import STAGES
from hdl.words.inputs import Control, InputKind
from hdl.words.operands import answers_mark
from hdl.words.results import ResultKind

from .failures import gated, is_passage
from .proof import proof
from .stream_rules import answers_within, keeps_sequence, offer, take

__all__ = []

#: Words whose stops may be owed in this bench.
ENTRIES = 2


class AnyWatch(wiring.Component):
    """A watch that reports at any time; ``deadline-watch`` is about the one that it stands for."""

    limit = 1

    def __init__(self, cycles, *, conditions):
        super().__init__({"holds": In(conditions), "expired": Out(1), "report": In(1)})

    def elaborate(self, platform):
        m = Module()
        m.d.comb += self.expired.eq(self.report)
        return m


class QuickGate(CoreGate):
    """A gate that revives its core in as few cycles as it can."""

    RESET_CYCLES, LEAVING_CYCLES = 1, STAGES + 1


@proof(
    "core-gate",
    says="MASK, UNMASK and failures cut a core off at one place of the stream; what it owes is "
    "answered once, and a core that returns was reset",
    component=f"CoreGate with rounds, {ENTRIES} entries, deadlines at any time",
    depth=11,
    mutate=(CoreGate,),
)
def core_gate(bench):
    """A core that takes and shows anything at any time, behind its gate."""
    parameters = gated(rounds=True)
    with (
        patch("hdl.failures.core_gate.DeadlineWatch", AnyWatch),
        patch.object(OwedStops, "DEPTH", ENTRIES),
    ):
        dut = bench.add(QuickGate(parameters))
    position, expired = bench.constant(1, "position"), bench.any(1, "expired")
    bench.set(dut.position, position)
    bench.set(bench.inside(dut, "watch").report, expired)
    taken = offer(bench, dut.words)
    bench.set(dut.core_words.ready, bench.any(1, "core_ready"))
    masked, failed, reviving = (bench.register(1, n) for n in ("masked", "failed", "reviving"))
    noted = bench.register(1, "noted")  # the word at hand has been seen by the core, or its gate
    seen = bench.wire(dut.core_words.valid | taken)
    bench.next(noted.eq((noted | seen) & ~taken))
    put = bench.wire(seen & ~noted)
    owed = [one_side(bench, dut, n, put=put, masked=masked, failed=failed) for n in range(2)]
    restored = revival(bench, dut, reviving, bench.wire((owed[0] == 0) & (owed[1] == 0)))
    control = dut.words.payload.body.control
    mine = taken & (dut.words.payload.kind == InputKind.CONTROL) & (control.value == position)
    strange = bench.wire(bench.inside(dut, "sides")[0].wrong | bench.inside(dut, "sides")[1].wrong)
    bench.next(
        masked.eq((masked | (mine & (control.op == Control.MASK))) & ~restored),
        failed.eq((failed | expired | strange) & ~restored),
        reviving.eq(
            Mux(mine & (control.op == Control.UNMASK), masked | failed, reviving) & ~restored
        ),
    )
    words_pass(bench, dut, taken, bench.wire(masked | failed), reviving, owed)
    bench.claim("a failure is shown until the core is masked", dut.failed == (failed & ~masked))
    conditions(bench, dut, owed, bench.wire(masked | failed))
    revived = bench.register(1, "revived")
    bench.next(revived.eq(revived | restored))
    bench.cover("a word passes after a revival", taken & revived & ~masked & ~failed)
    bench.cover("a core that failed is masked", masked & failed)


def one_side(bench, dut, n, *, put, masked, failed):
    """Claim that each stop of a word leaves once, in order; return how many are owed."""
    word, core, results = dut.words.payload, dut.core_results[n], dut.results[n]
    offer(bench, core)
    shown = core.payload
    bench.assume(shown.kind.as_value() != ResultKind.NONE.value)
    bench.assume((shown.kind == ResultKind.PAIR) | ~shown.body.punctuation.failed)
    got = take(bench, results, f"region {n}")
    result = results.payload
    stops = bench.wire(got & ~is_passage(result, dut.parameters))
    is_control = word.kind == InputKind.CONTROL
    parts = bench.wire(Cat(word.star[n], is_control & answers_mark(word.body.control)))
    kept = bench.wire(
        Cat(word.disorder, word.illegal, word.free, masked, word.rounds.any()), "kept"
    )
    said = result.body.punctuation

    def is_part(held, number):
        kind = (ResultKind.STAR, ResultKind.MARK)[number]
        faults = Cat(said.disorder, said.illegal, said.free)
        answered = (faults == held[:3]) & ~held[3] & (said.inner == (held[4] & (number == 1)))
        return (result.kind == kind) & (~said.failed | answered)

    inside = keeps_sequence(
        bench, f"region {n}", put & parts.any(), parts, kept, stops, is_part, most=2 * ENTRIES
    )
    unanswered = bench.wire((inside != 0) & results.ready & ~stops)
    answers_within(bench, f"what region {n} owes is answered once the core has failed",
                   failed & unanswered, 2)  # fmt: skip
    excused = bench.register(1, "excused")  # only words after MASK are unanswered
    bench.next(excused.eq(bench.past(masked) & (excused | (inside == 0))))
    answers_within(bench, f"what region {n} owes after MASK is answered in its place",
                   excused & masked & unanswered & ~core.valid, 2)  # fmt: skip
    bench.cover(f"a star of region {n} lacks something", stops & said.failed)
    return inside


def revival(bench, dut, reviving, answered):
    """Claim when the core is reset; return when it works again."""
    count = bench.register(range(dut.revival + 1), "count")
    restored = bench.wire(count == dut.revival - 1)
    bench.next(count.eq(Mux(restored, 0, count + (reviving & answered))))
    bench.claim(
        "a core is reset once it owes nothing, for as long as it takes, and never otherwise",
        dut.core_reset == (reviving & answered & (count < dut.RESET_CYCLES)),
    )
    return restored


def words_pass(bench, dut, taken, closed, reviving, owed):
    """Claim which words the core gets."""
    sent = dut.core_words.valid & dut.core_words.ready
    same = dut.core_words.payload.as_value() == dut.words.payload.as_value()
    bench.claim(
        "the core gets the word at hand as it is", ~dut.core_words.valid | (dut.words.valid & same)
    )
    bench.claim("a core that is cut off gets no word", ~dut.core_words.valid | ~(closed | reviving))
    bench.claim("the word goes on when the core takes it", closed | (taken == sent))
    bench.claim("no word goes on while the core is revived", ~(reviving & taken))
    bench.claim(
        "a word that was offered to the core stays, unless the core fails",
        ~bench.past(dut.core_words.valid & ~sent) | closed | dut.core_words.valid,
    )
    free = (owed[0] == 0) & (owed[1] == 0)  # then there is room for what the word owes
    answers_within(
        bench, "a word waits only for its core, for what is owed, and for a revival",
        dut.words.valid & ~reviving & free & ~dut.core_words.valid & ~taken, 2,
    )  # fmt: skip
    bench.claim(
        "nobody waits for a core that is cut off",
        ~(dut.words.valid & closed & ~reviving & bench.past(closed & free) & free) | taken,
    )


def conditions(bench, dut, owed, closed):
    """Claim what the deadline is for, while the core works."""
    blocked = Cat(result.valid & ~result.ready for result in dut.results).any()
    holds = [
        *((count != 0) & ~core.valid for count, core in zip(owed, dut.core_results, strict=True)),
        dut.core_words.valid & ~dut.core_words.ready & ~blocked,
    ]
    was_closed = bench.past(closed)
    when = ("region 0 is late", "region 1 is late", "the core refuses a word")
    for words, held, own in zip(when, holds, bench.inside(dut, "watch").holds, strict=True):
        bench.claim(f"the deadline runs while {words}", closed | was_closed | (own == held))

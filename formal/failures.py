# SPDX-License-Identifier: Apache-2.0
"""Proofs about the gates of cores: whenever a core fails, every group is answered once."""

from amaranth import *

from hdl.failures.core_gate import DeadlineWatch, OwedStops
from hdl.words.results import ResultKind

from .proof import proof
from .small import SMALL
from .stream_rules import answers_within, keeps_sequence, offer, take

__all__ = []


class FewOwedStops(OwedStops):
    """An :class:`OwedStops` with room for a few entries."""

    DEPTH = 2


def gated(**changes):
    """Return the smallest parameters of a core with a gate."""
    return SMALL.with_(failure_cycles=SMALL.longest_silence, **changes)


def is_passage(result, parameters):
    """Return whether a result is no stop: a pair or, with rounds, the star of a round."""
    passage = result.kind == ResultKind.PAIR
    if parameters.engine.rounds:
        passage |= (result.kind == ResultKind.STAR) & result.body.punctuation.inner
    return passage


def owed_stops(bench, parameters):
    """A region that shows anything at any time, and fails at any time."""
    dut = bench.add(FewOwedStops(parameters))
    put = bench.wire(bench.any(1, "offered") & dut.room)
    stop = bench.view(dut.stop, bench.any(len(dut.stop.as_value()), "stop"))
    bench.assume(stop.star | stop.mark)
    bench.set(dut.add, put)
    bench.set(dut.stop.as_value(), stop.as_value())
    failed = bench.any(1, "failed")
    bench.assume(~bench.past(failed) | failed)
    bench.set(dut.failed, failed)
    # Words after MASK are excused, and no others.
    masked = bench.any(1, "masked")
    bench.assume(~bench.past(masked) | masked)
    bench.assume(~put | (stop.excused == masked))
    bench.set(dut.masked, masked)
    offer(bench, dut.i)
    shown = dut.i.payload
    shows_passage = bench.wire(dut.i.valid & is_passage(shown, parameters))
    bench.assume(shown.kind.as_value() != ResultKind.NONE.value)
    bench.assume((shown.kind == ResultKind.PAIR) | ~shown.body.punctuation.failed)
    got = take(bench, dut.o, "output")
    word = dut.o.payload
    got_stop = bench.wire(got & ~is_passage(word, parameters))
    cut = bench.register(1, "cut")
    bench.next(cut.eq(cut | (failed & ~(dut.o.valid & ~dut.o.ready))))
    own = bench.wire(~bench.wire(dut.i.valid & dut.i.ready) | bench.inside(dut, "standing"))
    inside = owed_sequence(bench, put, stop, got_stop, word, own)
    from_region = dut.i.valid & dut.i.ready & (Value.cast(word) == Value.cast(shown))
    bench.claim(
        "a pair is one that the region shows in this cycle",
        ~(got & ~got_stop) | (from_region & shows_passage),
    )
    bench.claim(
        "the fault is told only after the core has failed",
        ~(got_stop & word.body.punctuation.failed) | bench.past(failed),
    )
    answers_within(
        bench, "there is room once nothing is owed", (inside == 0) & ~dut.room, 2
    )  # fmt: skip
    bench.claim("nothing of the region passes once it is cut off", ~(got & ~got_stop & cut))
    works = ~cut & ~masked & ~bench.past(masked)
    bench.claim(
        "a pair of a working region passes at once",
        ~(works & shows_passage) | (dut.o.valid & (dut.i.ready == dut.o.ready)),
    )
    region_owes(bench, dut, inside, works, shows_passage)
    answers_within(
        bench, "what is owed is answered once the core has failed",
        failed & (inside != 0) & dut.o.ready & ~got_stop, 2,
    )  # fmt: skip
    excused = bench.register(1, "excused")  # only excused stops are owed
    bench.next(excused.eq(bench.past(masked) & (excused | (inside == 0))))
    answers_within(
        bench, "what is excused is answered though the region shows nothing",
        excused & (inside != 0) & dut.o.ready & ~got_stop & ~dut.i.valid, 2,
    )  # fmt: skip
    bench.cover("a failed region's star is answered", got_stop & word.body.punctuation.failed)
    bench.cover("an excused star is answered", got_stop & own & ~word.body.punctuation.failed)
    bench.cover("a failed region goes on", dut.i.valid & dut.i.ready & cut & shows_passage)
    if parameters.engine.rounds:
        is_round = got & (word.kind == ResultKind.STAR) & word.body.punctuation.inner
        bench.cover("the star of a round passes", is_round)


def owed_sequence(bench, put, stop, got, word, own):
    """Claim that every star and mark that is owed leaves once, in order, with its faults."""
    said, rounds = word.body.punctuation, "inner" in stop.shape().members
    kept = Cat(stop.disorder, stop.illegal, stop.free, stop.excused)
    if rounds:
        kept = Cat(kept, stop.inner)

    def is_part(held, number):
        kind = (ResultKind.STAR, ResultKind.MARK)[number]
        faults = Cat(said.disorder, said.illegal, said.free, ~said.failed)
        if rounds:  # only a mark tells of rounds
            faults, held = Cat(faults, said.inner), Cat(held[:-1], held[-1] & (number == 1))
        answered = (faults == held) & ~said.overflow & (said.failed_core == 0)
        return (word.kind == kind) & (~own | answered)

    parts = Cat(stop.star, stop.mark)
    return keeps_sequence(bench, "a region", put, parts, kept, got, is_part, most=4)


def region_owes(bench, dut, inside, works, shows_passage):
    """Claim what the component tells of a region."""
    bench.claim("something is owed until it is answered", dut.owes == (inside != 0))
    bench.claim(
        "a region is late that owes and shows nothing",
        ~works | (dut.late == ((inside != 0) & ~dut.i.valid)),
    )
    bench.claim("a region that is cut off is never late", ~dut.late | (inside != 0))
    unowed = dut.i.valid & ~shows_passage & (inside == 0)
    bench.claim("a stop that is not owed is told", ~(works & unowed) | dut.wrong)
    bench.claim("what is told as wrong does not pass", ~(dut.wrong & dut.i.ready))
    bench.claim("pairs are never wrong", ~(shows_passage & dut.wrong))
    bench.claim("a blocked result is told", dut.blocked == (dut.o.valid & ~dut.o.ready))
    bench.cover("a stop that is not owed", dut.wrong)


CYCLES = 4


@proof(
    "deadline-watch",
    says="what holds for less than the period is never reported, and what lasts always is",
    component=f"DeadlineWatch, {CYCLES} cycles, 2 conditions",
    depth=24,
    mutate=(DeadlineWatch,),
    spared={"count + 1 -> count - 1": "a counter that counts down ticks as often"},
)
def deadline_watch(bench):
    """Two conditions that hold at any time."""
    dut = bench.add(DeadlineWatch(CYCLES, conditions=2))
    holds = bench.any(2, "holds")
    bench.set(dut.holds, holds)
    lasted = []
    for n in range(2):
        count = bench.register(range(dut.limit + 2), "lasted")
        bench.next(count.eq(Mux(holds[n], count + (count <= dut.limit), 0)))
        lasted.append(count)
    longest = bench.past(Mux(lasted[0] > lasted[1], lasted[0], lasted[1]) + 1)
    bench.claim(
        "nothing is reported that held for less than the period",
        ~dut.expired | (longest >= dut.period),
    )
    waited = bench.register(range(dut.limit + 2), "waited")
    bench.next(waited.eq(Mux(holds.any() & ~dut.expired, waited + (waited <= dut.limit), 0)))
    for n in range(2):
        alone = bench.register(range(dut.limit + 2), "alone")
        bench.next(alone.eq(Mux(holds[n] & ~dut.expired, alone + (alone <= dut.limit), 0)))
        bench.claim(f"condition {n} is reported within the limit", alone < dut.limit)
    bench.cover("a report", dut.expired)


proof(
    "owed-stops",
    says="every star and mark that a region owes leaves once, whenever the region fails",
    component="OwedStops, 2 entries",
    depth=9,
    mutate=(OwedStops,),
    given={"parameters": gated()},
)(owed_stops)
proof(
    "owed-stops-rounds",
    says="… with rounds, whose stars pass as pairs do",
    component="OwedStops, 2 entries, with rounds",
    depth=9,
    mutate=(OwedStops,),
    given={"parameters": gated(rounds=True)},
)(owed_stops)

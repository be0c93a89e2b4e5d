# SPDX-License-Identifier: Apache-2.0
"""Proofs about gates: cores that fail, what is emitted instead, and parity."""

from functools import reduce
from operator import or_
from unittest.mock import patch

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.failures.core_gate import CoreGate, DeadlineWatch, OwedStops, ParityWatch
from hdl.local_reset import STAGES
from hdl.memory.columns import KeyColumn, ParityColumn, parity_of, parity_width
from hdl.words.inputs import Control, InputKind
from hdl.words.operands import answers_mark
from hdl.words.results import ResultKind

from .proof import proof
from .small import SMALL
from .stream_rules import answers_within, keeps_sequence, offer, take

__all__ = []

# Proofs about the gates of cores: whenever a core fails, every group is answered once.


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


# Proof about the gate of a core: MASK, UNMASK and failures act at one place of the stream.

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


# Proofs about parity: flipped bits are told, and the gate of the core closes in time.

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

# SPDX-License-Identifier: Apache-2.0
"""Proofs about the parts that make rounds: in which words they are in force, where they end."""

from amaranth import *

from hdl.ingress.punctuation import RoundMode
from hdl.scan.scanner import RoundEnds
from hdl.words.values import longest_round, rounds_shape

from .proof import proof
from .small import SMALL, scan_parameters

__all__ = []


@proof(
    "round-mode",
    says="rounds are in force from INNER on, and end where cores would number rounds otherwise",
    component="RoundMode",
    depth=8,
    induction=1,
    mutate=(RoundMode,),
)
def round_mode(bench):
    """Any words: tuples, INNER or PRECISION, SEGMENT, and words that empty windows."""
    parameters = SMALL.with_(rounds=True)
    dut = bench.add(RoundMode(parameters))
    advance, changes, segment = (bench.any(1, n) for n in ("advance", "precision", "segment"))
    tuples, empties = bench.any(2, "tuples"), bench.any(2, "empties")
    wanted = bench.any(rounds_shape(parameters), "wanted")
    # A word does one of these things.
    told = Cat(changes, segment, tuples.any(), empties.any())
    bench.assume((told & (told - 1)) == 0)
    bench.drive(
        dut, advance=advance, tuples=tuples, set_precision=changes, wanted=wanted,
        segment=segment, empties=empties,
    )  # fmt: skip
    # What each window holds at most, if nothing but a word that empties it takes tuples away.
    since, before = [], []  # tuples after the last SEGMENT, and before it
    for n, side in enumerate("RS"):
        own, old = bench.register(1, f"since_{side}"), bench.register(1, f"before_{side}")
        gone = advance & empties[n]
        bench.next(
            own.eq((own | (advance & tuples[n])) & ~gone & ~(advance & segment)),
            old.eq((old | (advance & segment & own)) & ~gone),
        )
        since.append(own)
        before.append(old)
    mixed = bench.wire(Cat(before).any())
    now = bench.register(rounds_shape(parameters), "now")
    bench.next(now.eq(Mux(advance, dut.rounds, now)))
    bench.invariant(bench.inside(dut, "rounds") == now)
    bench.invariant(bench.inside(dut, "received") == (Cat(since) | Cat(before)))
    bench.invariant(bench.inside(dut, "drifted") == Cat(before))
    filled = Cat(*since, *before).any()
    bench.claim("rounds are in force only while no window has tuples of two segments",
                ~mixed | (now == 0))  # fmt: skip
    bench.claim("INNER asks for rounds, and gets them unless a window has tuples of two segments",
                ~changes | (dut.rounds == Mux(mixed, 0, wanted)))  # fmt: skip
    bench.claim("SEGMENT ends rounds if any window has tuples",
                ~segment | (dut.rounds == Mux(filled, 0, now)))  # fmt: skip
    bench.claim("no other word changes rounds", changes | segment | (dut.rounds == now))
    bench.cover("a segment among tuples ends rounds", segment & filled & (now != 0))
    bench.cover("rounds are set again once the windows were emptied",
                (now != 0) & bench.past(bench.past(mixed)))  # fmt: skip


#: Lanes of the rows, and cycles from a row to its ends.
LANES, LATENCY = 2, 1


@proof(
    "round-ends",
    says="a round ends with its last key, if the key is in the span of the only probe",
    component=f"RoundEnds, {LANES} lanes",
    depth=8,
    mutate=(RoundEnds,),
)
def round_ends(bench):
    """Any passes, one after the other, with any pauses."""
    parameters = scan_parameters(lanes=LANES, probes=1).with_(rounds=True)
    rows = parameters.ring_rows
    dut = bench.add(RoundEnds(parameters, latency=LATENCY))
    group = bench.view(dut.group, bench.any(len(dut.group.as_value()), "group"))
    begins, step, last = (bench.any(1, name) for name in ("begins", "step", "last"))
    bench.set(dut.group.as_value(), group.as_value())
    row = bench.any(range(rows), "row")
    bench.drive(dut, load=begins, step=step, row=row, last=last)
    # The next pass begins with the last row of this one, or while none is under way.
    begun, first = bench.register(1, "begun"), bench.register(1, "first")
    bench.assume(~begins | ~begun | (step & last))
    bench.assume(~step | begun)
    ending = bench.wire(step & last)
    bench.next(begun.eq(begins | (begun & ~ending)), first.eq(begins | (first & ~step)))
    size, tail, head = (
        bench.register(shape, name)
        for shape, name in (
            (rounds_shape(parameters), "size"), (range(LANES), "tail"), (range(LANES), "head"),
        )
    )  # fmt: skip
    empty = (group.ending.count == 0) | (group.stop == group.first)
    bench.assume(group.ending.rounds <= longest_round(parameters) + 1)
    bench.next(
        size.eq(Mux(begins, Mux(empty, 0, group.ending.rounds), size)),
        tail.eq(Mux(begins, group.tail_lane, tail)),
        head.eq(Mux(begins, group.head_lane, head)),
    )
    expected = []
    for lane in range(LANES):
        place = Cat(C(lane, 1), row)  # of two lanes
        ends = C(0)
        for code in range(1, longest_round(parameters) + 2):
            keys = 1 << (code - 1)
            ends |= (size == code) & (place[: code - 1] == keys - 1)
        inside = (~first | (lane >= tail)) & (~last | (head == 0) | (lane < head))
        expected.append(ends & inside)
    for lane in range(LANES):
        bench.claim(
            f"a round ends in lane {lane} with its last key, if that is in the span",
            ~bench.past(step) | (dut.ends[lane] == bench.past(expected[lane])),
        )
    bench.claim(
        "the size is that of the row's pass", ~bench.past(step) | (dut.rounds == bench.past(size))
    )
    bench.cover("both keys of the only row end rounds",
                bench.past(step & first & last) & dut.ends.all())  # fmt: skip
    bench.cover("a pass without rounds follows one with them",
                begins & step & (size != 0) & empty)  # fmt: skip

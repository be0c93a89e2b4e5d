# SPDX-License-Identifier: Apache-2.0
"""Proofs about the order in which groups closed, on its way to the combiner."""

from amaranth import *

from hdl.trees.order_queue import OrderQueue, TurnQueue, Turns

from .proof import proof
from .stream_rules import answers_within, keeps_order, keeps_sequence, offer, take

__all__ = ["turns_of"]


def turns_of(sides):
    """Return the turns of an entry of the order: bit 0 is R, bit 1 is S, bit 2 is R after S."""
    r, s = sides[0], sides[1]
    s_first = sides[2] & r & s if len(sides) > 2 else C(0)
    return Cat(r & ~s_first, s, r & s_first)


def side_of(n):
    """Return the turn of the ``n``-th bit of :func:`turns_of`: 1 for R, 2 for S."""
    return 2 if n == 1 else 1


@proof(
    "turns",
    says="an entry becomes one turn for each of its sides, R first, shown ahead of time",
    component="Turns",
    depth=12,
    mutate=(Turns,),
)
def turns_bench(bench):
    """Entries of one side, or of both sides with R first."""
    dut = bench.add(Turns())
    bench.assume(~dut.i.valid | (dut.i.payload != 0))
    offer(bench, dut.i)
    got = take(bench, dut.o, "turns")
    first_sight = bench.wire(dut.i.valid & ~bench.past(dut.i.valid & ~dut.i.ready))
    inside = keeps_sequence(
        bench, "turns", first_sight, turns_of(dut.i.payload), C(0, 1), got,
        lambda _, n: dut.o.payload == side_of(n), most=6,
    )  # fmt: skip
    bench.claim("a turn is zero while there is none", dut.o.valid | (dut.o.payload == 0))
    bench.claim("an entry is taken with its last turn", (inside != 0) | ~dut.o.valid)
    answers_within(bench, "a turn is shown while any is left", (inside != 0) & ~dut.o.valid, 1)
    answers_within(
        bench, "an entry is taken while turns end", dut.i.valid & ~dut.i.ready & dut.o.ready, 3
    )
    bench.cover(
        "an entry of both sides ends",
        got & (dut.o.payload == 2) & bench.past(got & (dut.o.payload == 1)),
    )


@proof(
    "turn-queue",
    says="turns are shown two at a time, in order, however many end",
    component="TurnQueue",
    depth=12,
    induction=2,
    mutate=(TurnQueue,),
)
def turn_queue_bench(bench):
    """Entries of one side, or of both in either order; up to two turns end in a cycle."""
    dut = bench.add(TurnQueue())
    bench.assume(~dut.i.valid | (dut.i.payload[:2] != 0))
    put = offer(bench, dut.i)
    ended = bench.any(2, "ended")
    bench.set(dut.ended, ended)
    bench.assume(~ended[0] | (dut.first != 0))
    bench.assume(~ended[1] | (ended[0] & (dut.second != 0)))
    turns = turns_of(dut.i.payload)
    leader = bench.wire(Mux(turns[0], 1, 2))
    both = bench.wire(dut.i.payload[:2].all())
    follower = bench.wire(Mux(both, Mux(turns[0], 2, 1), 0))
    # Model of the contents, as a plain list.
    places = [bench.register(2, f"place_{n}") for n in range(7)]
    count = bench.register(3, "count")
    left = bench.wire(count - ended[0] - ended[1])[:3]
    shifted = [
        Mux(ended[1], two, Mux(ended[0], one, now))
        for now, one, two in zip(
            places, [*places[1:], C(0, 2)], [*places[2:], C(0, 2), C(0, 2)], strict=True
        )
    ]
    bench.next(
        count.eq(left + Mux(put, 1 + both, 0)),
        *(
            place.eq(
                Mux(
                    put & (left == n),
                    leader,
                    Mux(put & (left + 1 == n), follower, Mux(left > n, was, 0)),
                )
            )
            for n, (place, was) in enumerate(zip(places, shifted, strict=True))
        ),
    )
    bench.claim("the first turn is shown", dut.first == places[0])
    bench.claim("the second turn is shown", dut.second == places[1])
    bench.claim("an entry is taken while there is room for two turns", dut.i.ready == (count <= 3))
    for own, place in zip(bench.inside(dut, "turns"), places, strict=False):
        bench.invariant(own == place)
    bench.invariant(count <= 5)
    for n, place in enumerate(places):
        bench.invariant((place != 0) == (count > n))
        bench.invariant(place != 3)
    bench.cover("all places are taken", count == 5)
    bench.cover("two turns end while an entry of two comes", put & ended.all() & both)


@proof(
    "order-queue",
    says="entries leave in order, and those in flight find room",
    component="OrderQueue, 8 entries",
    depth=19,
    mutate=(OrderQueue,),
    spared={
        "in_flight -> level <=": "one entry less than it keeps room for can be in flight",
    },
)
def order_queue_bench(bench):
    """Entries that arrive while there is room, and as many more as may be in flight."""
    dut = bench.add(OrderQueue(1, depth=8))
    push, entry = bench.any(1, "push"), bench.any(1, "entry")
    bench.drive(dut, push=push, i=entry)
    # Three entries may follow the last cycle with room, including one in that cycle, so two
    # without.
    without = bench.register(2, "without")
    bench.next(without.eq(Mux(dut.room, 0, without + push)))
    bench.assume(~push | dut.room | (without < 2))
    got = take(bench, dut.o, "entries")
    queue = keeps_order(bench, "order", push, entry, got, dut.o.payload, most=13)
    inner = bench.inside(dut, "queue")
    bench.claim("entries in flight fit when there is no room", inner.level <= 8)
    stuck = (queue.level != 0) & ~dut.o.valid & dut.o.ready
    answers_within(bench, "an entry is shown after its latency", stuck, dut.latency)
    stopped = ~dut.room & (queue.level == 0)
    answers_within(bench, "there is room again when all have left", stopped, 5)
    bench.cover("queue is so full that it says so", ~dut.room & push & (without == 1))

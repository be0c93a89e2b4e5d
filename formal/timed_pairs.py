# SPDX-License-Identifier: Apache-2.0
"""Proof about windows with a lifespan where two tuples may come at once, one of each side."""

from amaranth import *
from amaranth.lib import data

from hdl.streams.registers import StreamRegister
from hdl.window.time_expiry import TimeExpiry
from hdl.window.tracker import WindowTracker

from .proof import proof
from .small import window_parameters
from .stream_rules import answers_within
from .time import UNSEEN

__all__ = []

#: Bits of a timestamp, and keys that a core can hold.
BITS, KEYS = 3, 3
#: A word: two tuples, or one with its timestamp in both places; whether the first one is stored.
WORD = data.StructLayout({"times": data.ArrayLayout(BITS, 2), "both": 1, "leads": 1})


@proof(
    "window-timed-pairs",
    says="of two tuples in a word, each sees exactly what has not outlived the lifespan at its"
    " own time, and finds room accordingly",
    component=f"WindowTracker, side by side, 1 core, {KEYS} keys, timestamps of {BITS} bits",
    depth=13,
    mutate=(TimeExpiry, WindowTracker),
    spared=UNSEEN
    | dict.fromkeys(
        ("without forget.eq", "self.overflow.eq(0)"),
        "no overflow of this bench is forgotten: window-timed",
    )
    | {"self.begin_count & self.begin_time": "the window begins once, when it is empty"},
)
def timed_pairs(bench):
    """One core; words are accepted as :class:`hdl.region.PairedRegion` accepts them."""
    parameters = window_parameters(cores=1, sub_window=KEYS, timestamp_bits=BITS).with_(
        engine="index", bucket_bits=1, tuples_per_word=2
    )
    dut = bench.add(WindowTracker(parameters))
    words = bench.add(StreamRegister(WORD), "words")
    begins, go, size = bench.first(), bench.any(1, "go"), bench.any(len(dut.size), "size")
    present, word = words.o.valid & ~begins, words.o.payload
    rest = bench.register(1, "rest")  # the first tuple was accepted alone
    accepted = bench.wire(present & go & dut.settled & dut.all_settled)
    alone = bench.wire(present & go & dut.settled & ~dut.all_settled & word.both & ~rest)
    newest = bench.register(BITS, "newest")
    bench.next(
        rest.eq(Mux(accepted | alone, alone, rest)),
        newest.eq(Mux(present, word.times[1], newest)),
    )
    is_new = bench.past(~present | accepted, init=1)
    bench.assume(~(present & is_new) | (word.times[0] >= newest))
    bench.assume(word.times[1] >= word.times[0])
    bench.assume(word.both | (word.times[1] == word.times[0]))
    bench.assume(~begins | ((size >= 0) & (size < 1 << BITS)))
    empty = bench.any(1, "empty")
    bench.assume(~empty | ~(words.o.valid | bench.past(accepted | alone)))
    clears = bench.past(begins | empty, init=1)
    leads = word.leads & ~rest
    both = word.both & ~rest
    takes = accepted | alone
    stores = leads | (word.both & ~word.leads & ~alone)
    probes = (~word.leads & ~rest) | (word.both & word.leads & ~alone)
    at = {
        "store": Mux(word.leads, word.times[0], word.times[1]),
        "probe": Mux(word.leads, word.times[1], word.times[0]),
    }
    bench.drive(
        dut, present=present, rest=rest, between=both & leads, accepted=accepted,
        store=bench.past(takes & stores), arrival=bench.past(at["store"]),
        after=bench.past(both & leads), coming=words.i.payload.times, fills=words.i.ready,
        moves=~words.o.valid | accepted, mine=1, displaces=0, size=size, begin_time=begins,
        begin_count=0, empty=empty, forget=0,
    )  # fmt: skip
    for port, value in (
        (words.i.valid, bench.any(1, "comes")), (words.o.ready, accepted),
        (Value.cast(words.i.payload), bench.any(WORD.size, "coming")),
    ):  # fmt: skip
        bench.set(port, value)
    lifespan = bench.register(BITS, "lifespan")
    bench.next(lifespan.eq(Mux(begins, size, lifespan)))
    probed = bench.past(takes & probes), bench.past(at["probe"])
    first = Mux(rest, word.times[1], word.times[0])
    follow_pairs(bench, dut, clears, lifespan, present, first, probed)
    waits = present & ~clears & ~(dut.settled & (dut.all_settled | (word.both & ~rest)))
    answers_within(bench, "a tuple settles", waits, KEYS + 5)
    bench.cover("a tuple is accepted alone", alone & bench.past(accepted))


def follow_pairs(bench, dut, clears, lifespan, present, first, probed):
    """Claim what leaves, what has no room and what a probe sees, by a list of timestamps."""
    probes, time = probed
    known = ~(bench.first() | clears)
    by_time = bench.inside(dut, "by_time")
    aged, parts = by_time.aged, by_time.parts
    times = [bench.register(BITS, f"time_{n}") for n in range(KEYS)]
    count = bench.register(range(KEYS + 1), "count")
    leaves = bench.wire(known & (aged | parts))
    stays = bench.wire((count - leaves)[: len(count)])
    moved = [Mux(leaves, after, now) for now, after in zip(times, [*times[1:], C(0)], strict=True)]
    bench.next(
        count.eq(Mux(clears, 0, stays + dut.stored)),
        *(
            own.eq(Mux(dut.stored & (stays == n), dut.arrival, was))
            for n, (own, was) in enumerate(zip(times, moved, strict=True))
        ),
    )
    bench.claim("at most one key leaves in a cycle", ~(aged & parts))
    bench.claim("nothing leaves that is not there", ~leaves | (count != 0))
    bench.claim(
        "nothing leaves for a word before it has outlived the lifespan",
        ~(known & aged) | (present & (times[0] + lifespan < first)),
    )
    # A key that parts is seen by the first of the two tuples, and is not by the second one.
    room = (count != KEYS) | (parts & ~dut.after)
    bench.claim("a tuple is stored if there is room then", dut.stored == (dut.store & room))
    overflow = bench.register(1, "overflow")
    bench.next(overflow.eq(overflow | (dut.store & ~room)))
    bench.claim("an overflow is told, and stays", dut.overflow == overflow)
    span, seen = (
        (Value.cast(ends.head) - Value.cast(ends.tail))[: len(Value.cast(ends.tail))]
        for ends in (dut.span, dut.seen)
    )
    bench.claim("the span has as many keys as there are", ~known | (span == count))
    second = dut.after
    there = Mux(second, count - parts + dut.stored, count)
    bench.claim("a probe sees as many keys as there are at its time", ~probes | (seen == there))
    oldest = Mux(second & parts, times[1], times[0])
    lone = second & (count == parts)  # the tuple that is stored is the only key
    stale = Mux(lone, dut.stored & (dut.arrival + lifespan < time),
                (there != 0) & (oldest + lifespan < time))  # fmt: skip
    bench.claim("… none of which has outlived the lifespan", ~probes | ~stale)
    bench.claim(
        "the key that parts has outlived it at the second tuple, and not at the first one",
        ~parts | Mux(second, times[0] + lifespan < time, times[0] + lifespan >= time) | ~probes,
    )
    left = Mux(second, count, count - parts)  # keys there are before a tuple is stored
    oldest = Mux(second, times[0], Mux(parts, times[1], times[0]))
    bench.claim(
        "a tuple that is stored finds no key that has outlived the lifespan",
        ~dut.store | (left == 0) | (oldest + lifespan >= dut.arrival),
    )
    bench.cover("a key parts between a probe and a tuple that finds room by it",
                parts & dut.stored & (count == KEYS))  # fmt: skip
    bench.cover("a key parts after a tuple has been stored", parts & second & dut.stored)
    bench.cover(
        "a word is accepted while its window is emptied",
        dut.accepted & clears & bench.past(clears == 0),
    )
    bench.cover("keys part in two cycles on end", parts & bench.past(parts))
    bench.cover("a key leaves for the word that is accepted", aged & bench.past(dut.accepted)
                & dut.accepted)  # fmt: skip

# SPDX-License-Identifier: Apache-2.0
"""Proofs about time-based windows, with one tuple in a word and with two."""

from amaranth import *
from amaranth.lib import data

from hdl.streams.registers import StreamRegister
from hdl.window.time_expiry import AgeFlags, DeadlineQueue, TimeExpiry
from hdl.window.tracker import WindowTracker

from .proof import proof
from .small import window_parameters
from .stream_rules import answers_within, keeps_order

__all__ = ["UNSEEN"]

# Proofs about windows with a lifespan: what leaves because time has passed.

#: Bits of a timestamp, and keys that a core can hold.
BITS, KEYS = 2, 3
#: Numbers in a deadline queue.
QUEUED = 6


#: Mutants of a tracker that benches with a single time-based window cannot tell.
UNSEEN = {
    **dict.fromkeys(
        (
            "without begin_count.eq(self.begin_count)", "without timed.eq(0)",
            "timed.eq(0) -> timed.eq(1)", "If(begin_time) -> If(1)",
        ),
        "all windows of this bench are time-based",
    ),
    **dict.fromkeys(
        ("without displaced.eq", "~occupancy.vacant -> occupancy.vacant"),
        "no key of a time-based window is displaced",
    ),
    "init=1 -> init=0": "a window begins in the first cycle of this bench",
}  # fmt: skip


@proof(
    "window-timed",
    says="keys leave when they have outlived the lifespan, before the tuple at hand settles,"
    " not sooner; an overflow is told",
    component=f"WindowTracker, 1 core, {KEYS} keys, timestamps of {BITS} bits",
    depth=13,
    mutate=(TimeExpiry, AgeFlags, WindowTracker),
    spared=UNSEEN,
)
def timed_window(bench):
    """One core; tuples come through a register and are stored a cycle after they have settled."""
    parameters = window_parameters(cores=1, sub_window=KEYS, timestamp_bits=BITS)
    dut = bench.add(WindowTracker(parameters))
    begins = {name: bench.any(1, name) for name in ("begin_time", "empty", "forget")}
    words = bench.add(StreamRegister(BITS), "words")
    wanted, go = bench.any(1, "wanted"), bench.any(1, "go")
    present, time = words.o.valid, words.o.payload
    size = bench.any(len(dut.size), "size")
    accepted = bench.wire(present & dut.settled & go)
    store = bench.wire(bench.past(accepted) & wanted)
    arrival = bench.past(time)
    newest = bench.register(BITS, "newest")
    bench.next(newest.eq(Mux(present, time, newest)))
    bench.assume(~present | (time >= newest))
    asks = bench.wire(Cat(begins.values()).any())
    bench.assume(~asks | ~(present | bench.past(accepted)))
    bench.assume(~bench.first() | (begins["begin_time"] & ~present))
    bench.assume(~begins["begin_time"] | ((size >= 0) & (size < 1 << BITS)))
    bench.drive(
        dut, present=present, store=store, arrival=arrival, coming=words.i.payload,
        fills=words.i.ready, moves=~present | accepted, mine=1, displaces=0, size=size,
        begin_count=0, **begins,
    )  # fmt: skip
    for port, value in (
        (words.i.valid, bench.any(1, "comes")), (words.i.payload, bench.any(BITS, "coming")),
        (words.o.ready, accepted),
    ):  # fmt: skip
        bench.set(port, value)
    follow_window(bench, dut, begins, size, present, time, accepted, store, arrival)


def follow_window(bench, dut, begins, size, present, time, accepted, store, arrival):
    """Claim what leaves and what stays, by a list of the timestamps of the stored tuples."""
    lifespan = bench.register(BITS, "lifespan")
    bench.next(lifespan.eq(Mux(begins["begin_time"], size, lifespan)))
    clears = bench.past(begins["begin_time"] | begins["empty"], init=1)
    times = [bench.register(BITS, f"time_{n}") for n in range(KEYS)]
    count = bench.register(range(KEYS + 2), "count")
    tail = Value.cast(dut.span.tail)
    leaves = bench.inside(dut, "by_time").aged
    stays = bench.wire(count - leaves)[: len(count)]
    moved = [Mux(leaves, after, now) for now, after in zip(times, [*times[1:], C(0)], strict=True)]
    bench.next(
        count.eq(Mux(clears, 0, stays + dut.stored)),
        *(
            own.eq(Mux(dut.stored & (stays == n), arrival, was))
            for n, (own, was) in enumerate(zip(times, moved, strict=True))
        ),
    )
    known = ~bench.first()
    outlived = times[0] + lifespan < time
    leaves = bench.wire(leaves & ~clears)  # a window that is emptied holds nothing
    bench.claim(
        "nothing leaves before it has outlived the lifespan", ~leaves | (present & outlived)
    )
    bench.claim("nothing leaves that is not there", ~leaves | (count != 0))
    settled = bench.wire(present & dut.settled & known & ~clears)
    left_over = (stays != 0) & (moved[0] + lifespan < time)
    bench.claim(
        "when a tuple has settled, every older key has left or leaves", ~settled | ~left_over
    )
    stale = (stays == 0) & dut.stored & (arrival + lifespan < time)
    bench.claim("… nor is one on its way in", ~settled | ~stale)
    span = (Value.cast(dut.span.head) - tail)[: len(tail)]
    bench.claim("the span has as many keys as there are", ~known | clears | (span == count))
    full = bench.wire(count == KEYS)
    bench.claim("a tuple is stored while there is room", ~known | (dut.stored == (store & ~full)))
    overflow = bench.register(1, "overflow")
    forgets = bench.past(begins["forget"])
    bench.next(overflow.eq(Mux(forgets, 0, overflow | (store & full))))
    bench.claim("an overflow is told, and stays until it is forgotten", dut.overflow == overflow)
    answers_within(bench, "a tuple settles", present & ~dut.settled, KEYS + 4)
    bench.cover("two keys leave for one tuple", leaves & bench.past(leaves & ~accepted))
    bench.cover(
        "a key leaves while the tuple before is stored", leaves & accepted & dut.stored & ~clears
    )
    bench.cover("overflow", dut.overflow)
    bench.cover("a tuple is at hand while its window is emptied", clears & present & known)


@proof(
    "deadline-queue",
    says="a queue of deadlines loses, repeats and reorders nothing, in memory or past it",
    component=f"DeadlineQueue, 8 places in memory, up to {QUEUED} numbers",
    depth=23,
    mutate=(DeadlineQueue,),
    spared=dict.fromkeys(
        (
            "init=1 -> init=0",
            "If(into & ~out) -> If(1)",
            "without held.eq(held + 1)",
            "without held.eq(held - 1)",
            "without none.eq(held == 1)",
        ),
        "numbers move up later, or all through the memory: slower, within the bound",
    )
    | dict.fromkeys(
        ("held + 1 -> held - 1", "held - 1 -> held + 1"),
        "slower, too; wrong only when the counter has wrapped, after more cycles than the bound"
        " (the component's test goes on for as many)",
    ),
)
def deadline_queue(bench):
    """A queue that can hold two more elements than it has registers at its end."""
    dut = bench.add(DeadlineQueue(1, depth=8))
    add, take = bench.any(1, "add"), bench.any(1, "take")
    value = bench.any(1, "value")
    bench.assume(~take | dut.oldest_valid)
    bench.drive(dut, add=add, take=take, last=value)
    queue = keeps_order(bench, "queue", add, value, take, dut.oldest, most=QUEUED)
    bench.assume(~add | (queue.level < QUEUED))
    bench.claim(
        "nothing is shown that is not there",
        dut.oldest_valid + dut.following_valid <= queue.level,
    )
    waits = (queue.level != 0) & ~dut.oldest_valid
    answers_within(bench, "the oldest one shows", waits, dut.latency)
    for n, (name, valid, behind) in enumerate((
        ("oldest", dut.oldest_valid, dut.following), ("following", dut.following_valid, dut.coming),
    )):  # fmt: skip
        place, rose = getattr(dut, name), bench.past(dut.rises[n])
        bench.claim(
            f"the {name} one was the next a cycle ago, or the same",
            bench.first() | ~valid | (place == Mux(rose, bench.past(behind), bench.past(place))),
        )
        bench.claim(
            f"the {name} one stays until the next one rises",
            bench.first() | rose | (valid & bench.past(valid)),
        )
    last = bench.register(1, "last")  # the watched element was the one that filled the queue
    bench.next(last.eq(queue.watching & (last | (queue.before == QUEUED - 1))))
    bench.cover(
        "one that went through memory is taken", take & last & queue.watching & (queue.before == 0)
    )


# Proof about windows with a lifespan where two tuples may come at once, one of each side.

#: Bits of a timestamp, and keys that a core can hold.
PAIR_BITS = 3
#: A word: two tuples, or one with its timestamp in both places; whether the first one is stored.
WORD = data.StructLayout({"times": data.ArrayLayout(PAIR_BITS, 2), "both": 1, "leads": 1})


@proof(
    "window-timed-pairs",
    says="of two tuples in a word, each sees exactly what has not outlived the lifespan at its"
    " own time, and finds room accordingly",
    component=f"WindowTracker, side by side, 1 core, {KEYS} keys, timestamps of {PAIR_BITS} bits",
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
    parameters = window_parameters(cores=1, sub_window=KEYS, timestamp_bits=PAIR_BITS).with_(
        engine="index", bucket_bits=1, tuples_per_word=2
    )
    dut = bench.add(WindowTracker(parameters))
    words = bench.add(StreamRegister(WORD), "words")
    begins, go, size = bench.first(), bench.any(1, "go"), bench.any(len(dut.size), "size")
    present, word = words.o.valid & ~begins, words.o.payload
    rest = bench.register(1, "rest")  # the first tuple was accepted alone
    accepted = bench.wire(present & go & dut.settled & dut.all_settled)
    alone = bench.wire(present & go & dut.settled & ~dut.all_settled & word.both & ~rest)
    newest = bench.register(PAIR_BITS, "newest")
    bench.next(
        rest.eq(Mux(accepted | alone, alone, rest)),
        newest.eq(Mux(present, word.times[1], newest)),
    )
    is_new = bench.past(~present | accepted, init=1)
    bench.assume(~(present & is_new) | (word.times[0] >= newest))
    bench.assume(word.times[1] >= word.times[0])
    bench.assume(word.both | (word.times[1] == word.times[0]))
    bench.assume(~begins | ((size >= 0) & (size < 1 << PAIR_BITS)))
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
    lifespan = bench.register(PAIR_BITS, "lifespan")
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
    times = [bench.register(PAIR_BITS, f"time_{n}") for n in range(KEYS)]
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

# SPDX-License-Identifier: Apache-2.0
"""Proofs about windows with a lifespan: what leaves because time has passed."""

from amaranth import *

from hdl.streams.registers import StreamRegister
from hdl.window.time_expiry import AgeFlags, DeadlineQueue, TimeExpiry
from hdl.window.tracker import WindowTracker

from .proof import proof
from .small import window_parameters
from .stream_rules import answers_within, keeps_order

__all__ = ["UNSEEN"]

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

# SPDX-License-Identifier: Apache-2.0
"""Proofs about the parts of a core of a chain that hold state, and about the merger behind it."""

from itertools import combinations

from amaranth import *

from bench.handshake.chain import InFlight
from bench.handshake.exits import FreeMerger, Outlet
from bench.handshake.windows import FlowWindow
from hdl.memory.columns import KeyColumn

from .merging import ports_keep_order
from .proof import proof
from .small import chain_parameters
from .stream_rules import (
    answers_within,
)

__all__ = []

# Proofs about the parts of a core of a chain that hold state, and about the merger behind it.


@proof(
    "free-merger",
    says="pairs and marks of a port leave once, in order; one mark for a mark of every port",
    component="FreeMerger, 2 ports",
    depth=10,
    induction=3,
    mutate=(FreeMerger,),
)
def free_merger(bench):
    """Two ports: pairs of a port stay in order, and none passes a mark that came before it."""
    parameters = chain_parameters("handshake")
    dut = bench.add(FreeMerger(parameters, ports=2))
    # The side stands for the port that a pair comes from.
    got = ports_keep_order(
        bench, dut, legal=lambda word, n: word.side == n, came=said,
        left=lambda word, n: said(word), is_of=lambda word, n: word.mark | (word.side == n),
        flags=lambda word: Cat(~word.mark, word.mark),
    )  # fmt: skip
    marks = Cat(i.valid & i.payload.mark for i in dut.i)
    bench.cover("a pair of the second port passes a mark of the first one",
                marks[0] & got & ~dut.o.payload.mark & dut.o.payload.side)  # fmt: skip


def said(word):
    """Return what counts of a word: a mark has no pair."""
    return Cat(word.mark, Mux(word.mark, 0, Cat(word.pair.r, word.pair.s)))


@proof(
    "outlet",
    says="the oldest tuple of a ring is shown, and never one that has left",
    component="Outlet",
    depth=12,
    induction=5,
    mutate=(Outlet,),
)
def outlet(bench):
    """A ring of tuples with consecutive numbers, of which the oldest is read ahead."""
    dut = bench.add(Outlet(chain_parameters("handshake")))
    key, readable, leaves = bench.any(1, "key"), bench.any(1, "readable"), bench.any(1, "leaves")
    bench.drive(dut, readable=readable, leaves=leaves)
    # What is read is that of the oldest tuple if none has left since.
    fetches = [bench.wire(dut.fetch)]
    kept = [bench.wire(dut.fetch & ~leaves)]
    for _ in range(KeyColumn.LATENCY):
        fetches.append(bench.past(fetches[-1]))
        kept.append(bench.past(kept[-1]) & (~leaves if len(kept) < KeyColumn.LATENCY else C(1)))
    bench.set(Value.cast(dut.fetched), key)
    here, held = bench.register(1, "here"), bench.register(1, "held")
    arrives = bench.wire(kept[-1])
    bench.next(here.eq((here | arrives) & ~leaves), held.eq(Mux(arrives, key, held)))
    under_way = bench.inside(dut, "under_way")
    bench.claim("a tuple is shown when it has been read and has not left", dut.valid == here)
    bench.claim("its key is what was read", ~dut.valid | (Value.cast(dut.key) == held))
    bench.claim("only what can be read is read", ~dut.fetch | readable)
    bench.claim("nothing is read while a tuple is shown or under way",
                ~dut.fetch | ~(dut.valid | under_way.any()))  # fmt: skip
    for n in range(KeyColumn.LATENCY):
        bench.invariant(under_way[n] == bench.past(kept[n]))
    answers_within(
        bench, "a tuple is shown after the stated cycles",
        readable & ~dut.valid & ~leaves, dut.latency,
    )  # fmt: skip
    bench.cover("a tuple leaves in every fourth cycle", follow(bench, leaves & dut.valid, 4))


class FewInFlight(InFlight):
    """Tuples in flight in a memory that is small enough to be filled within a bounded proof."""

    BITS = 4


@proof(
    "in-flight",
    says="tuples of S are met until they are acknowledged or expire, and kept while needed",
    component="InFlight, 16 places, numbers of 8 bits",
    depth=22,
    induction=2,
    mutate=(InFlight,),
    spared={"without lead.eq(0)": "as many have expired as were acknowledged when it restarts"},
)
def in_flight(bench):
    """Tuples of S come while there is room; the lanes say which are acknowledged, and expire.

    What is still to be compared is known late, so ``kept`` may be ahead of the first tuple that is
    needed, by as many as the reserve leaves.
    """
    dut = bench.add(FewInFlight(chain_parameters("expedited")))
    last, kept = bench.constant(1, "last"), bench.any(len(dut.kept), "kept")
    add = bench.wire(bench.any(1, "wants") & dut.room)
    acknowledges, expires = bench.any(1, "acknowledges"), bench.any(1, "expires")
    events = (add, acknowledges, expires, bench.any(1, "compares"))
    restart = bench.any(1, "restart")
    counts = [counted(bench, event, restart, len(dut.arrived)) for event in events]
    arrived, acknowledged, expired, needed = counts
    value = bench.any(len(Value.cast(dut.key)) + 1 + len(dut.oldest), "value")
    bench.m.d.comb += Cat(Value.cast(dut.key), dut.homeless, dut.oldest).eq(value)
    bench.drive(
        dut, last=last, restart=restart, add=add, arrived=arrived, kept=kept,
        acknowledged=acknowledges, expires=expires,
    )  # fmt: skip
    # Numbers begin at zero when nothing is under way, and all tuples have expired.
    quiet = ~(Cat(events).any() | bench.past(add))
    for count in counts[1:]:
        quiet &= count == arrived
    bench.assume(~restart | quiet)
    # The links and windows of a chain hold by far fewer than numbers can tell apart.
    for one, other in combinations([*counts, kept], 2):
        bench.assume(distance(bench, one, other) < 50)
        bench.assume(distance(bench, one, other) > -50)
    bench.assume(distance(bench, kept, needed) < dut.RESERVE)
    unacknowledged, behind = (distance(bench, arrived, n) for n in (acknowledged, dut.tail))
    bench.assume(~acknowledges | (unacknowledged > 0))
    bench.assume(distance(bench, kept, dut.tail) <= 0)
    most = (1 << dut.BITS) - dut.RESERVE
    bench.invariant(last | (behind <= most + 1))
    bench.invariant(last | ~dut.room | (behind <= most))
    late = distance(bench, expired, acknowledged)
    bench.claim(
        "the tail is the first tuple that neither was acknowledged nor has expired",
        dut.tail == Mux(late > 0, expired, acknowledged),
    )
    bench.claim(
        "a tuple of R meets those from the tail on, and none in the last core",
        dut.met == Mux(last | (behind < 0), 0, behind),
    )
    bench.claim("the last core has room", ~last | dut.room | bench.first())
    bench.invariant(bench.inside(dut, "lead") == late)
    remembers(bench, dut, last, add, arrived, needed, value, restart)


def remembers(bench, dut, last, add, arrived, needed, value, restart):
    """Claim that a tuple that was chosen when it came can be read as long as it is needed."""
    watching, number = bench.register(1, "watching"), bench.register(len(arrived), "number")
    watched = bench.register(len(value), "watched")
    choose = bench.wire(add & ~watching & bench.any(1, "choose"))
    bench.next(
        watching.eq(choose | (watching & (distance(bench, number, needed) >= 0) & ~restart)),
        number.eq(Mux(choose, arrived, number)), watched.eq(Mux(choose, value, watched)),
    )  # fmt: skip
    bench.set(dut.place, number)
    read = Cat(Value.cast(dut.met_key), dut.met_homeless, dut.met_oldest)
    is_needed = bench.wire(watching & ~last & (distance(bench, number, needed) >= 0))
    written = bench.past(watching)
    bench.claim("a tuple that is needed can be read", ~is_needed | ~written | (read == watched))
    # A tuple is written a cycle after it has come.
    near = bench.inside(dut, "near")
    bench.invariant(~is_needed | written | (near["add"] & (near["place"] == dut.place)))
    stored = Cat(near["key"], near["homeless"], near["oldest"])
    bench.invariant(~is_needed | written | (stored == watched))
    used, rows = distance(bench, arrived, needed), 1 << dut.BITS
    bench.invariant(last | (used <= rows))
    bench.invariant(last | ~dut.room | (used < rows))
    bench.invariant(~is_needed | (distance(bench, arrived, number) > (written & near["add"])))
    bench.invariant(~is_needed | (distance(bench, number, needed) < rows))
    bench.invariant(near["add"] == bench.past(add))
    bench.invariant(~near["add"] | (near["place"] == bench.past(arrived)[: dut.BITS]))
    bench.invariant(~near["add"] | (arrived == (bench.past(arrived) + 1)[: len(arrived)]))
    bench.cover("every place has a tuple that is needed", ~last & written & (used == rows))


def counted(bench, event, restart, bits):
    """Return the number of times that something has happened since a restart, modulo a power."""
    count = bench.register(bits, "count")
    bench.next(count.eq(Mux(restart, 0, count + event)))
    return count


def distance(bench, one, other):
    """Return how far one number is ahead of another one."""
    return bench.wire((one - other)[: len(one)].as_signed(), "distance")


def follow(bench, event, cycles):
    """Return whether an event comes for the second time, as many cycles after the first one."""
    then = event
    for _ in range(cycles):
        then = bench.past(then)
    return event & then


# Proof of what a core of the handshake join counts of a side's tuples.


@proof(
    "flow-window",
    says="the tuples under way in a core are counted, and each is told by its number",
    component="FlowWindow, 32 rows, numbers of 8 bits",
    depth=8,
    induction=2,
    mutate=(FlowWindow,),
)
def flow_window(bench):
    """Tuples arrive while there are rows; each leaves before or when it is released."""
    parameters = chain_parameters("handshake")
    dut = bench.add(FlowWindow(parameters))
    events = [bench.any(1, name) for name in ("arrives", "leaves", "releases")]
    arrives, leaves, releases = events
    restart, bits = bench.any(1, "restart"), len(dut.head)
    for name, event in zip(("arrives", "leaves", "releases"), events, strict=True):
        bench.set(getattr(dut, name), event)
    bench.set(dut.restart, restart)
    most = range(parameters.ring_rows + 1)
    held, rows = bench.register(most, "held"), bench.register(most, "rows")
    bench.assume(~restart | ~Cat(events).any())
    bench.assume(~leaves | (held != 0))
    bench.assume(~releases | (rows > held) | leaves)
    bench.assume(~arrives | (rows != parameters.ring_rows))
    bench.next(
        held.eq(Mux(restart, 0, held + arrives - leaves)),
        rows.eq(Mux(restart, 0, rows + arrives - releases)),
    )
    bench.invariant(held <= rows)
    bench.invariant(rows <= parameters.ring_rows)
    bench.claim("as many are held as have come and have not left", dut.held == held)
    bench.claim("as many rows are in use as have come and were not released", dut.rows == rows)
    bench.claim(
        "one can be read that was held a cycle ago and has not left",
        dut.readable == bench.past((held != 0) & ~((held == 1) & leaves)),
    )
    bench.claim("numbers begin at zero behind a restart", ~bench.past(restart) | (dut.head == 0))
    keeps_numbers(bench, dut, events, (held, rows), bits)
    bench.cover("a tuple has left that is not released yet", rows == held + 2)
    bench.cover("one comes, one leaves and one is released at once", Cat(events).all())


def keeps_numbers(bench, dut, events, inside, bits):
    """Claim that a tuple chosen when it comes is told by its number when it leaves, and at last.

    Parameters
    ----------
    events : list of Signal
        A tuple arrives, one leaves, one is released.
    inside : list of Signal
        Tuples that are held, and rows in use.
    bits : int
        Bits of a number.
    """
    arrives, *goes = events
    number = bench.register(bits, "number")
    choose = bench.wire(arrives & bench.any(1, "choose"))
    bench.next(number.eq(Mux(choose, dut.head, number)))
    for told, gone, count, words in zip(
        (dut.following, dut.tail), goes, inside, ("leaves", "is released"), strict=True
    ):
        watching = bench.register(1, "watching")
        before = bench.register(count.shape(), "before")
        now = bench.wire(watching & gone & (before == 0))
        bench.next(
            watching.eq((choose | (watching & ~now)) & ~dut.restart),
            before.eq(Mux(choose, count - gone, before - gone)),
        )
        bench.claim(f"the tuple that {words} has the number told", ~now | (told == number))
        bench.invariant((dut.head - told)[:bits] == count)
        bench.invariant(~watching | ((told + before)[:bits] == number))
        bench.invariant(~watching | (before < count))

# SPDX-License-Identifier: Apache-2.0
"""Proofs about a ScaleGate, and the states that a two-way merge can be in."""

from types import SimpleNamespace

from amaranth import *

from hdl.scalegate.gate import ScaleGate, TimestampMerge
from hdl.scalegate.port import MergePort, is_late
from hdl.scalegate.words import GateKind, gate_word

from .proof import proof
from .stream_rules import answers_within, keeps_order, offer, register_words, take

__all__ = ["leaving_states", "merge_states"]

# States that a two-way merge can be in while both of its inputs stay, as invariants.


def merge_states(bench, dut, sources, queues, leaves, last, identity):
    """Claim the states of a merge, given what the bench knows of its inputs and its output.

    Parameters
    ----------
    dut : TimestampMerge
    sources : list of Progress
        What each input has said.
    queues : list of Watch
        Tuples and barriers of each input inside.
    leaves : namespace
        What has left: ``reached`` is its latest time.
    last : Value
        Source and time of the latest tuple in this epoch.
    identity : function
        Returns what is watched of a word.
    """
    ports = bench.inside(dut, "ports")
    second, same, quiet, silent = (
        bench.inside(dut, name) for name in ("second", "same", "quiet", "silent")
    )
    bench.invariant(~quiet & ~silent)
    places = [Value.cast(port.place) for port in ports]
    bench.invariant(second == (places[1] < places[0]))
    bench.invariant(same == (ports[0].place.time == ports[1].place.time))
    news = []
    for n, (port, source, queue) in enumerate(zip(ports, sources, queues, strict=True)):
        contents = port_states(bench, port, n)
        counts(bench, contents, source, queue, identity)
        progress(bench, port, contents, source)
        news.append(bench.inside(port, "news"))
    told(bench, ports, news, second, same, leaves.reached)
    bench.invariant(last[1:] <= leaves.reached)
    bench.invariant(~last[0] | ports[0].place.ends | (ports[0].place.time > last[1:]))


def port_states(bench, port, number):
    """Claim the states of a port by itself; return what it holds: the head, then what is next."""
    held, head, ends, gone, joined = (
        bench.inside(port, name) for name in ("held", "head", "ends", "gone", "joined")
    )
    away = [bench.inside(port, name) for name in ("behind", "steady", "late", "settling")]
    bench.invariant(joined & ~gone & ~Cat(away).any())
    contents = [
        SimpleNamespace(there=one.there, word=one.word, barrier=one.word.kind == GateKind.BARRIER)
        for one in [
            SimpleNamespace(there=port.filled, word=head),
            *register_words(bench, held, head),
        ]
    ]
    for one in contents:
        bench.invariant(~one.there | one.barrier | (one.word.kind == GateKind.TUPLE))
        bench.invariant(~one.there | (one.word.source == number))
        bench.invariant(~one.there | ~one.barrier | (one.word.time == 0))
    bench.invariant(ends == (port.filled & contents[0].barrier))
    shows_mark = (head.kind == GateKind.WATERMARK) & ~head.late
    bench.invariant(port.filled | ~port.offers | shows_mark)
    return contents


def counts(bench, contents, source, queue, identity):
    """Claim that the bench has counted what is inside, and that the watched word is where it is."""
    bench.invariant(queue.level == sum(one.there for one in contents))
    barriers = [one.there & one.barrier for one in contents]
    bench.invariant(source.ended == sum(barriers))
    place, before = queue.before, C(0)
    for n, (one, barrier) in enumerate(zip(contents, barriers, strict=True)):
        rank = bench.wire(sum((other.there for other in contents[:n]), C(0)))
        here = queue.watching & one.there & (place == rank)
        bench.invariant(~here | (identity(one.word) == queue.watched))
        bench.invariant(~here | (source.ahead == before))
        before = bench.wire(before + barrier)


def progress(bench, port, contents, source):
    """Claim that times do not fall from the head to the latest word, and what is news of it."""
    mark, fresh = bench.inside(port, "mark"), bench.inside(port, "fresh")
    bench.invariant(mark == source.shown)
    head, *rest = contents
    bench.invariant(rest[0].there | (port.next_place.time == mark))
    latest, ended = head.word.time, head.there & head.barrier
    for one in rest:
        bench.invariant(~one.there | one.barrier | ended | (one.word.time >= latest))
        latest = bench.wire(Mux(one.there, one.word.time, latest))
        ended = Mux(one.there, one.barrier, ended)
    bench.invariant(Mux(fresh, mark > latest, mark == latest))


def told(bench, ports, news, second, same, reached):
    """Claim which watermarks the output knows, and that it has not passed a head."""
    for n, port in enumerate(ports):
        bench.invariant(port.place.ends | (port.place.time >= reached))
        bench.invariant(~port.filled | port.offers)
        bench.invariant(port.filled | ~news[n] | port.offers)
        chosen = ~port.filled & (second == n)
        bench.invariant(~chosen | (port.offers == (port.place.time > reached)))
    bench.invariant(ports[0].filled | ~second | news[0])
    known = ~ports[1].filled & ~second & ~news[1]
    bench.invariant(~known | (same & ~ports[0].place.ends))
    bench.invariant(~known | ~ports[1].offers | ports[0].offers)


# States that a two-way merge can be in while its inputs come and go, as invariants.


def leaving_states(bench, dut, sources, queues, leaves):
    """Claim the states of a merge without barriers, given what the bench knows of it.

    Parameters
    ----------
    dut : TimestampMerge
    sources : list of namespace
        Of each input: ``shown``, the latest time since it came; ``left``, its latest word is LEAVE.
    queues : list of Watch
        Bodies of the tuples of each input inside. A body begins with the tuple's own time.
    leaves : namespace
        What has left: ``reached`` is the latest time, ``silent`` that the latest word was LEAVE.
    """
    ports = bench.inside(dut, "ports")
    names = ("second", "same", "quiet", "silent", "floor")
    second, same, quiet, silent, floor = (bench.inside(dut, name) for name in names)
    bench.invariant(silent == leaves.silent)
    bench.invariant(floor == leaves.reached)
    places = [Value.cast(port.place) for port in ports]
    bench.invariant(second == (places[1] < places[0]))
    bench.invariant(same == (ports[0].place.time == ports[1].place.time))
    for n, (port, source, queue) in enumerate(zip(ports, sources, queues, strict=True)):
        comes_back(bench, port, source, quiet, floor)
        contents(bench, port, n, queue)
        offered(bench, port, second == n, quiet, silent, floor)
    joined, news = ([bench.inside(port, name) for port in ports] for name in ("joined", "news"))
    marks = [
        ~port.filled & ~port.place.gone & there for port, there in zip(ports, joined, strict=True)
    ]
    bench.invariant(~marks[0] | ~second | news[0])
    known = marks[1] & ~second & ~news[1]
    bench.invariant(~known | (same & ~ports[0].place.gone))
    bench.invariant(~known | quiet | ~ports[1].offers | silent | ports[0].offers)


def comes_back(bench, port, source, quiet, floor):
    """Claim how an input that has left takes its steps back, and what its watermark is."""
    names = ("joined", "settling", "behind", "steady", "checked", "late", "mark", "gone")
    joined, settling, behind, steady, checked, late, mark, gone = (
        bench.inside(port, name) for name in names
    )
    word, sampled = port.i.payload, bench.inside(port, "sampled")
    bench.invariant(~settling | (quiet & gone))
    bench.invariant(~gone | ~joined | (settling & (mark == floor)))
    bench.invariant((joined & ~settling) | (~steady & ~checked & (~joined | ~late)))
    bench.invariant(~joined | ~settling | behind)
    bench.invariant(~joined | behind | (~steady & ~checked & ~late))
    bench.invariant(~joined | Mux(behind, source.shown <= mark, source.shown == mark))
    bench.invariant(~steady | (port.i.valid & (sampled.kind == word.kind)))
    bench.invariant(~steady | (sampled.time == word.time))
    bench.invariant(~checked | (steady & (late == is_late(bench.m, word, mark))))
    bench.invariant(joined | (source.left & (source.shown == 0)))
    bench.invariant(~source.left | ~(joined | settling) | port.i.valid)
    bench.invariant(~source.left | ~joined | behind)


def contents(bench, port, number, queue):
    """Claim what a port holds: tuples whose times do not fall, up to its watermark."""
    held, head, joined, gone, mark, fresh = (
        bench.inside(port, name) for name in ("held", "head", "joined", "gone", "mark", "fresh")
    )
    words = [SimpleNamespace(there=port.filled, word=head), *register_words(bench, held, head)]
    bench.invariant(queue.level == sum(one.there for one in words))
    latest = head.time
    for n, one in enumerate(words):
        word, own = one.word, one.word.body[: len(head.time)]
        bench.invariant(~one.there | ((word.kind == GateKind.TUPLE) & (word.source == number)))
        bench.invariant(~one.there | Mux(word.late, own < word.time, own == word.time))
        rank = sum((other.there for other in words[:n]), C(0))
        here = queue.watching & one.there & (queue.before == rank)
        bench.invariant(~here | (word.body == queue.watched))
        bench.invariant(~one.there | (word.time >= latest))
        latest = bench.wire(Mux(one.there, word.time, latest))
    _, following, _ = words
    bench.invariant(~gone | (~port.filled & ~following.there))
    bench.invariant(following.there | (port.next_place.time == mark))
    bench.invariant(~joined | gone | Mux(fresh, mark > latest, mark == latest))


def offered(bench, port, chosen, quiet, silent, floor):
    """Claim what a port offers: every tuple, a watermark that is news, and one LEAVE."""
    head, gone, ends, news = (bench.inside(port, name) for name in ("head", "gone", "ends", "news"))
    bench.invariant(~ends)
    bench.invariant(gone | (head.time >= floor))
    bench.invariant(~port.filled | port.offers)
    mark = bench.wire(~port.filled & ~gone)
    bench.invariant(~mark | ((head.kind == GateKind.WATERMARK) & ~head.late))
    bench.invariant(~gone | ~port.offers | (head.kind == GateKind.LEAVE))
    bench.invariant(~mark | ~news | port.offers)
    current = chosen & ~quiet
    bench.invariant(~current | ~mark | (port.offers == (silent | (head.time > floor))))
    bench.invariant(~current | ~gone | (port.offers == ~silent))


# Proofs about the merges of a ScaleGate: what leaves is sorted and complete, and in time.

TIME_BITS, BODY_BITS = 2, 1
#: Cycles within which a word that may leave does so: from the port to the output.
SOON = 3


def is_stored(word):
    """Return whether a word is one that leaves again."""
    return (word.kind == GateKind.TUPLE) | (word.kind == GateKind.BARRIER)


def identity(word, time, late):
    """Return what must be kept of a tuple or a barrier; of a barrier that is its kind."""
    is_barrier = word.kind == GateKind.BARRIER
    return Cat(is_barrier, Mux(is_barrier, 0, Cat(time, word.body, late)))


class Progress:
    """What a source that never leaves has said of its progress, and when it speaks next.

    Attributes
    ----------
    shown : Signal
        Latest time in the epoch of the last word.
    ended : Signal
        A barrier has not left yet.
    ahead : Signal
        Number of barriers before the word that is watched, or would enter next if none is watched.
    time : Value
        Time that the word at hand has from here on: that of its place if it is late.
    """

    def __init__(self, bench, put, word, got_barrier, *, most):
        self.shown = bench.register(TIME_BITS, "shown")
        self.ended = bench.register(range(most + 1), "ended")
        self.time = bench.wire(Mux(word.time < self.shown, self.shown, word.time))
        is_barrier = word.kind == GateKind.BARRIER
        bench.next(
            self.shown.eq(Mux(put, Mux(is_barrier, 0, self.time), self.shown)),
            self.ended.eq(self.ended + (put & is_barrier) - got_barrier),
        )
        self._got_barrier = got_barrier

    def watch(self, bench, watching):
        """Count the barriers before a word of the source that is watched."""
        self.ahead = Signal.like(self.ended, name=bench.name("ahead"))
        now = Mux(watching, self.ahead, self.ended)
        bench.next(self.ahead.eq(now - (self._got_barrier & (now != 0))))


def outputs(bench, word, got, *, silent=0):
    """Claim that times do not fall up to a barrier; return what leaves.

    ``silent`` says that the output has announced no source yet.
    """
    reached = bench.register(TIME_BITS, "reached")
    silent = bench.register(1, "silent", init=silent)
    is_tuple = bench.wire(got & (word.kind == GateKind.TUPLE))
    is_barrier = bench.wire(got & (word.kind == GateKind.BARRIER))
    is_mark = bench.wire(got & (word.kind == GateKind.WATERMARK))
    timed = bench.wire(is_tuple | is_mark)
    bench.next(
        reached.eq(Mux(is_barrier, 0, Mux(timed, word.time, reached))),
        silent.eq(Mux(got, word.kind == GateKind.LEAVE, silent)),
    )
    bench.claim("times do not fall within an epoch", ~timed | (word.time >= reached))
    bench.claim("a watermark says something new", ~is_mark | silent | (word.time > reached))
    is_last = got & (word.kind == GateKind.LEAVE)
    bench.claim("that no source is left is said once", ~is_last | ~silent)
    bench.claim("a watermark that leaves is not marked as late", ~is_mark | ~word.late)
    return SimpleNamespace(
        tuple=is_tuple, barrier=is_barrier, mark=is_mark, reached=reached, silent=silent
    )


def in_order(bench, number, i, put, progress, late, o, leaves, *, most):
    """Claim that the words of a source leave once, in order, at their times, if they may."""
    mine = leaves.barrier | (leaves.tuple & (o.payload.source == number))
    enters = identity(i.payload, progress.time, late)
    seen = identity(o.payload, o.payload.time, o.payload.late)
    words = f"source {number}"
    return keeps_order(bench, words, put & is_stored(i.payload), enters, mine, seen, most=most)


def assume_rising(bench, i, number, shown, left=0):
    """Assume that an input of a merge shows no less than before, as its contract says.

    A WATERMARK of zero that is the first word behind a LEAVE is marked as late by the entry of a
    source, but not by a merge. The time of a LEAVE is zero behind an entry, and any behind a merge.
    """
    word = i.payload
    kinds = GateKind.WATERMARK, GateKind.BARRIER, GateKind.LEAVE
    is_mark, is_barrier, is_leave = (word.kind == kind for kind in kinds)
    bench.assume(word.source == number)
    bench.assume(Mux(is_barrier, word.time == 0, is_leave | (word.time >= shown)))
    bench.assume(~is_mark | (word.late == (word.time == shown)) | (left & (word.time == 0)))


#: What chooses, offers and moves words in a merge.
MERGE = (
    TimestampMerge.elaborate_choice,
    TimestampMerge.elaborate_output,
    TimestampMerge.elaborate_moves,
)


#: A mutant that nobody sees: what stands at first is replaced in the first cycle.
FIRST = {"elaborate_choice: init=1 -> init=0": "nothing is told before both heads have moved"}


@proof(
    "timestamp-merge",
    says="tuples leave once, in the order of time and source, barriers between, each in time",
    component="TimestampMerge, times of 2 bits, inputs that stay",
    depth=11,
    induction=2,
    mutate=(
        *MERGE,
        MergePort.elaborate_input,
        MergePort.elaborate_head,
    ),
    spared={
        **FIRST,
        **dict.fromkeys(
            (
                "without quiet.eq(",
                "ports[0].settles",
                "without leaves.eq(",
                "elaborate_output: self.o.valid & self.o.ready ->",
                "elaborate_output: If(leaves)",
                "is_last",
                "silent.eq(silent)",
                "without floor.eq(",
                "without port.floor.eq(",
                "without port.blocked.eq(",
                "untold & joined -> ",
            ),
            "all inputs of this bench are present: timestamp-merge-leaving",
        ),
        **dict.fromkeys(
            (
                "without o.payload.late.eq(",
                "~self.silent -> ",
                "without self.next_place.gone.eq(",
                "without self.place.gone.eq(",
                "without gone.eq(",
                "~i.valid -> i.valid (3)",
            ),
            "all inputs of this bench are present: tests of the port",
        ),
    },
)
def merge_staying(bench):
    """Two inputs that never leave, but may end epochs."""
    layout = gate_word(TIME_BITS, BODY_BITS, sources=2)
    dut = bench.add(TimestampMerge(layout))
    got = take(bench, dut.o, "output")
    word = dut.o.payload
    leaves = outputs(bench, word, got)
    bench.set(dut.starving, 0)
    sources, queues = [], []
    for n, i in enumerate(dut.i):
        put = offer(bench, i)
        bench.assume(i.payload.kind != GateKind.LEAVE)
        sources.append(Progress(bench, put, i.payload, leaves.barrier, most=4))
        assume_rising(bench, i, n, sources[n].shown)
        late = i.payload.late
        queues.append(in_order(bench, n, i, put, sources[n], late, dut.o, leaves, most=3))
        refused = i.valid & ~i.ready & (queues[n].level == 0)
        answers_within(bench, f"source {n} is taken while none of its words waits", refused, 1)
    bench.claim("nobody says that a source has left", ~got | (word.kind != GateKind.LEAVE))
    last = bench.register(TIME_BITS + 1, "last")
    place = Cat(word.source, word.time)
    bench.next(last.eq(Mux(leaves.barrier, 0, Mux(leaves.tuple, place, last))))
    bench.claim("tuples leave in the order of time and source", ~leaves.tuple | (place >= last))
    least = Mux(sources[0].shown < sources[1].shown, sources[0].shown, sources[1].shown)
    bench.claim(
        "a watermark is what both sources have shown",
        ~leaves.mark | sources[0].ended.any() | sources[1].ended.any() | (word.time <= least),
    )
    live(bench, dut.o, got, sources, queues, soon=SOON)
    merge_states(
        bench, dut, sources, queues, leaves, last, lambda word: identity(word, word.time, word.late)
    )
    ended = sources[0].ended.any() | sources[1].ended.any()
    untold = dut.o.ready & ~got & ~ended & (least > leaves.reached)
    answers_within(bench, "what follows learns what both sources have shown", untold, SOON)
    bench.cover("a late tuple leaves", leaves.tuple & word.late)
    bench.cover("a tuple leaves behind a barrier", leaves.tuple & bench.past(leaves.barrier))


def live(bench, o, got, sources, queues, *, soon):
    """Claim that a watched tuple, or one before it, leaves once the other sources permit it."""
    idle = bench.wire(o.ready & ~got)
    for n, queue in enumerate(queues):
        time = queue.watched[1 : 1 + TIME_BITS]
        sources[n].watch(bench, queue.watching)
        permitted = C(1)
        for other, progress in enumerate(sources):
            if other != n:
                passed = progress.shown > time if other < n else progress.shown >= time
                same = progress.ended == sources[n].ahead
                permitted &= (same & passed) | (progress.ended > sources[n].ahead)
        may = queue.watching & ~queue.watched[0] & permitted
        answers_within(bench, f"a ready tuple of source {n} leaves", idle & may, soon)
    every = Cat(progress.ended.any() for progress in sources).all()
    answers_within(bench, "a barrier of all sources leaves", idle & every, soon)


@proof(
    "timestamp-merge-leaving",
    says="nothing is lost or out of order while inputs come and go, and nobody waits for them",
    component="TimestampMerge, times of 2 bits, inputs that leave and return",
    depth=13,
    induction=6,
    mutate=(*MERGE, MergePort.elaborate_return),
    spared={
        **FIRST,
        "told[n] & ~quiet -> told[n] | ~quiet": ("timestamp-merge, where watermarks must be told"),
        "without behind.eq(late)": "costs time only: tests of the port",
        "and behind.eq(late) -> exchanged": (
            "an input is gone behind each of its words: tests of the port"
        ),
    },
)
def merge_leaving(bench):
    """Two inputs that come and go; neither is there at first."""
    layout = gate_word(TIME_BITS, BODY_BITS + TIME_BITS, sources=2)
    dut = bench.add(TimestampMerge(layout, present=(False, False)))
    got = take(bench, dut.o, "output")
    word = dut.o.payload
    leaves = outputs(bench, word, got, silent=1)
    bench.set(dut.starving, 0)
    queues, progress, gone = [], [], []
    for n, i in enumerate(dut.i):
        put = offer(bench, i)
        bench.assume(i.payload.kind != GateKind.BARRIER)
        bench.assume((i.payload.kind != GateKind.TUPLE) | ~i.payload.late)
        shown = bench.register(TIME_BITS, "shown")
        is_leave = i.payload.kind == GateKind.LEAVE
        bench.next(shown.eq(Mux(put, Mux(is_leave, 0, i.payload.time), shown)))
        left = bench.register(1, "left", init=1)
        bench.next(left.eq(Mux(put, i.payload.kind == GateKind.LEAVE, left)))
        assume_rising(bench, i, n, shown, left)
        # The body of a tuple is its own time, and a bit.
        bench.assume(i.payload.body[:TIME_BITS] == i.payload.time)
        queue = keeps_order(
            bench, f"source {n}", put & (i.payload.kind == GateKind.TUPLE), i.payload.body,
            leaves.tuple & (word.source == n), word.body, most=3,
        )  # fmt: skip
        stuck = i.valid & ~i.ready & (queue.level == 0) & (dut.o.ready | ~dut.o.valid)
        answers_within(bench, f"source {n} is taken while none of its tuples waits", stuck, 7)
        queues.append(queue)
        progress.append(SimpleNamespace(shown=shown, left=left))
        gone.append(left & ~i.valid)
    leaving_states(bench, dut, progress, queues, leaves)
    own = word.body[:TIME_BITS]
    bench.claim(
        "a tuple has its own time, or is late and has a later one",
        ~leaves.tuple | Mux(word.late, own < word.time, own == word.time),
    )
    idle = dut.o.ready & ~got
    for n in range(2):
        alone = idle & gone[1 - n] & (queues[n].level != 0)
        answers_within(bench, f"source {n} waits for nobody who has left", alone, SOON)
    answers_within(
        bench, "what follows learns that nobody is left",
        idle & gone[0] & gone[1] & ~leaves.silent, SOON,
    )  # fmt: skip
    bench.cover("a source comes back late", leaves.tuple & word.late & (word.source == 1))
    bench.cover("a watermark says that a source is back", leaves.mark & bench.past(leaves.silent))


@proof(
    "scale-gate",
    says="words of three sources leave once, sorted, through a tree of merges",
    component="ScaleGate, 3 sources",
    depth=13,
    mutate=(ScaleGate.elaborate_tree, ScaleGate.elaborate_merge),
    spared=dict.fromkeys(("blamed", "link.o.valid"), "stalls are in the tests of the gate"),
)
def scale_gate(bench):
    """Three sources through two merges; none leaves."""
    dut = bench.add(ScaleGate(TIME_BITS, 1, sources=3, depth=2))
    got = take(bench, dut.o, "output", always=True)
    word = dut.o.payload
    leaves = outputs(bench, word, got)
    for member in (dut.exclude, dut.deadline, dut.forget):
        bench.set(member, 0)
    sources, queues = [], []
    for n, i in enumerate(dut.i):
        put = offer(bench, i)
        bench.assume(i.payload.kind.as_value() < GateKind.LEAVE.value)
        sources.append(Progress(bench, put, i.payload, leaves.barrier, most=10))
        late = bench.wire(i.payload.time < sources[n].shown)
        queues.append(in_order(bench, n, i, put, sources[n], late, dut.o, leaves, most=11))
    live(bench, dut.o, got, sources, queues, soon=dut.latency)
    bench.claim(
        "late tuples are remembered", ~bench.past(leaves.tuple & word.late) | dut.late.any()
    )
    bench.cover("tuples of all sources leave", leaves.tuple & (word.source == 2) & (word.time > 1))

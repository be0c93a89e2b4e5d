# SPDX-License-Identifier: Apache-2.0
"""States that the entry of a source can be in, as invariants."""

from types import SimpleNamespace

from amaranth import *

from hdl.scalegate.words import GateKind

from .register_words import register_words

__all__ = ["entry_states"]


def entry_states(bench, dut, queue, told, owed, deadline):
    """Claim the states of an entry, given what the bench knows of it.

    Parameters
    ----------
    dut : SourceEntry
        With a queue of four places.
    queue : Watch
        Words inside.
    told : Signal
        Time that has been reached by the latest word.
    owed : list of Signal
        A LEAVE has not left: now, also in the last cycle, also in the two last ones.
    deadline : namespace
        ``limit``, ``run`` (cycles of the present stall), ``stalled`` in the last cycle, and whether
        the deadline was ``reached`` one cycle and two cycles ago.
    """
    check, first, waiting, leaves = (
        bench.inside(dut, name) for name in ("check", "first", "queue", "leaves")
    )
    word, late, before = (bench.inside(check, name) for name in ("word", "late", "before"))
    pair = register_words(bench, first, word)
    rows = queue_rows(bench, waiting, dut.i.payload)
    checked = bench.wire(Mux(late, before, word.time))
    is_leave = [one.there & (one.word.kind == GateKind.LEAVE) for one in pair]
    last = check.o.valid & (word.kind == GateKind.LEAVE)
    inside = [SimpleNamespace(there=check.o.valid & ~last, identity=Cat(
        word.kind, late, checked, word.body
    ))]  # fmt: skip
    bench.invariant(~check.o.valid | (word.source == 1))
    reached = checked
    for one in pair:
        bench.invariant(~one.there | (one.word.source == 1))
        inside.append(passes(bench, one, reached))
        reached = inside[-1].reached
    reached = Mux(leaves, 0, reached)
    for one in rows:
        bench.invariant(~one.there | (one.word.kind != GateKind.LEAVE))
        inside.append(passes(bench, one, reached))
        reached = inside[-1].reached
    bench.invariant(told == reached)
    bench.invariant(queue.level == sum(one.there for one in inside))
    for n, one in enumerate(inside):
        rank = sum((other.there for other in inside[:n]), C(0))
        here = queue.watching & one.there & (queue.before == rank)
        bench.invariant(~here | (one.identity == queue.watched))
    # A LEAVE begins in an entry without words, so it is the oldest word, and moves on at once.
    bench.invariant(owed[0] == (leaves | is_leave[0] | last))
    bench.invariant(~is_leave[1])
    bench.invariant(~leaves | (~pair[0].there & ~check.o.valid & ~owed[1] & ~owed[2]))
    bench.invariant(~is_leave[0] | (~check.o.valid & owed[1] & ~owed[2]))
    bench.invariant(~last | (owed[1] & owed[2]))
    bench.invariant(~deadline.stalled | (~pair[0].there & ~check.o.valid))
    empty = bench.wire((queue.level == 0) & ~owed[0])
    stalls(bench, dut, owed, deadline, empty)


def queue_rows(bench, queue, like):
    """Claim the states of a queue of four places by itself; return its words, the oldest first."""
    head, tail, second, reserved = (
        bench.inside(queue, name) for name in ("head", "tail", "second", "reserved")
    )
    before = bench.past(queue.level)
    bench.invariant(second == (tail + 1)[:3])
    bench.invariant(reserved == (head + 1)[:3])
    bench.invariant(queue.filled == (queue.level != 0))
    bench.invariant(queue.room == (before < 3))
    bench.invariant(queue.level <= before + 1)
    bench.invariant(queue.level <= 4)
    memory = bench.inside(queue, "rows")
    return [
        SimpleNamespace(
            there=queue.level > n, word=bench.view(like, bench.row(memory, (tail + n)[:2]))
        )
        for n in range(4)
    ]


def passes(bench, one, reached):
    """Return what a word that is not checked yet will be, and which time will be reached by it."""
    word = one.word
    is_tuple, is_mark = word.kind == GateKind.TUPLE, word.kind == GateKind.WATERMARK
    late = (is_tuple & (word.time < reached)) | (is_mark & (word.time <= reached))
    time = Mux(is_tuple | is_mark, Mux(late, reached, word.time), 0)
    return SimpleNamespace(
        there=bench.wire(one.there & (word.kind != GateKind.LEAVE)),
        identity=bench.wire(Cat(word.kind, late, time, word.body)),
        reached=bench.wire(Mux(one.there, time, reached)),
    )


def stalls(bench, dut, owed, deadline, empty):
    """Claim how the counters of a stall stand to what the bench has counted."""
    left, counted, expired = (bench.inside(dut, name) for name in ("left", "counted", "expired"))
    limit, run, (once, twice) = deadline.limit, deadline.run, deadline.reached
    bench.invariant(left <= limit)
    bench.invariant(counted == deadline.stalled)
    bench.invariant(~empty | (expired == twice))
    # Nobody stalls while a LEAVE is owed.
    bench.invariant(~(owed[0] & owed[1]) | (~counted & ~once & (run == 0)))
    exact = ~owed[0] & ~twice
    bench.invariant(~exact | counted | (~once & (run == 0)))
    bench.invariant(~exact | ~once | (counted & (left == 1) & (run == 0)))
    goes_on = (run != 0) & (run < limit) & (left + run == limit + 1)
    bench.invariant(~exact | once | ~counted | (limit == 0) | goes_on)
    bench.invariant((limit != 0) | ~once)
    bench.invariant(owed[0] | ~twice | ~counted | (left == 0))

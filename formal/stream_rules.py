# SPDX-License-Identifier: Apache-2.0
"""Claims about streams, whatever component stands between them, and their reachable states."""

from types import SimpleNamespace
from typing import NamedTuple

from amaranth import *

__all__ = [
    "Watch", "answers_within", "early_states", "entries_states", "held_in", "keeps_order",
    "keeps_sequence", "offer", "register_states", "register_words", "take",
]  # fmt: skip

# Claims about streams, whatever component stands between them.


class Watch(NamedTuple):
    """State of :func:`keeps_order` about the elements inside.

    Attributes
    ----------
    level : Signal
        Number of elements inside.
    watching : Signal
        One of the elements is watched.
    watched : Signal
        Value of the watched element.
    before : Signal
        Number of elements that leave before it.
    """

    level: Signal
    watching: Signal
    watched: Signal
    before: Signal


def offer(bench, stream, payload=None):
    """Drive a stream as its contract allows; return its transfer.

    Parameters
    ----------
    bench : Bench
    stream : stream interface
        Input of a component.
    payload : Value or None
        Payload to offer; arbitrary by default. Its driver must keep it until it is taken.
    """
    valid = bench.any(1, "offered")
    value = bench.any(len(Value.cast(stream.payload)), "payload") if payload is None else payload
    bench.set(stream.valid, valid)
    bench.set(Value.cast(stream.payload), value)
    waited = bench.past(stream.valid & ~stream.ready)
    bench.assume(~waited | (stream.valid & (Value.cast(stream.payload) == bench.past(value))))
    return bench.wire(stream.valid & stream.ready, "offered_transfer")


def take(bench, stream, words, *, always=False):
    """Take from a stream at any time, and claim that it keeps its contract; return its transfer.

    Parameters
    ----------
    words : str
        Name of the stream in the claim.
    always : bool
        Take in every cycle.
    """
    bench.set(stream.ready, C(1) if always else bench.any(1, "taken"))
    waited = bench.past(stream.valid & ~stream.ready)
    payload = Value.cast(stream.payload)
    bench.claim(
        f"{words} holds what it offers until it is taken",
        ~waited | (stream.valid & (payload == bench.past(payload))),
    )
    return bench.wire(stream.valid & stream.ready, "taken_transfer")


def keeps_order(bench, words, put, value, got, seen, *, most):
    """Claim that elements leave as they entered, in order: none is lost, repeated or changed.

    One element is watched. It is chosen freely when it enters; the number of elements before it is
    recorded at the same time.

    Parameters
    ----------
    put, got : Value
        An element enters; an element leaves.
    value, seen : Value
        The element that enters; the element that leaves.
    most : int
        Largest number of elements inside.

    Returns
    -------
    Watch
    """
    level = bench.register(range(most + 2), "inside")
    watching = bench.register(1, "watching")
    before = bench.register(range(most + 2), "before")
    watched = bench.register(len(Value.cast(value)), "watched")
    choose = bench.wire(put & ~watching & bench.any(1, "choose"), "chosen")
    bench.next(level.eq(level + put - got))
    leaves = bench.wire(watching & got & (before == 0))
    bench.next(
        watching.eq((watching | choose) & ~leaves),
        before.eq(Mux(choose, level - got, before - (got & (before != 0)))),
        watched.eq(Mux(choose, Value.cast(value), watched)),
    )
    bench.claim(f"{words} never holds more than {most}", level <= most)
    bench.claim(f"{words} gives nothing that did not go in before", ~got | (level != 0))
    bench.claim(
        f"{words} gives every element once, unchanged, in order",
        ~leaves | (Value.cast(seen) == watched),
    )
    bench.cover(f"{words} gives the element that is watched", leaves)
    bench.invariant(~watching | (before < level))
    return Watch(level, watching, watched, before)


def answers_within(bench, words, waiting, cycles):
    """Claim that ``waiting`` is never high for more than ``cycles`` cycles on end."""
    waited = bench.register(range(cycles + 2), "waited")
    bench.next(waited.eq(Mux(waiting, waited + (waited <= cycles), 0)))
    bench.claim(words, waited <= cycles)


def keeps_sequence(bench, words, put, parts, kept, got, is_part, *, most):
    """Claim that every element leaves as its parts, in order, before the next element.

    Parameters
    ----------
    put : Value
        An element enters.
    parts : Value
        One bit for each part that an element can have: whether it has that part. The lowest comes
        first.
    kept : Value
        What must be known of the element when its parts leave.
    got : Value
        A part leaves.
    is_part : function
        Function of a ``kept`` value and the number of a part: whether the part that leaves is that
        one.
    most : int
        Largest number of parts inside.

    Returns
    -------
    Signal
        Number of parts inside.
    """
    inside, before = (bench.register(range(most + 2), name) for name in ("parts", "before"))
    watching = bench.register(1, "watching")
    rest = bench.register(len(parts), "rest")
    held = bench.register(Value.cast(kept).shape(), "kept")
    count = sum(parts[n] for n in range(len(parts)))
    chosen = bench.wire(put & ~watching & bench.any(1, "choose"), "chosen")
    arrives = bench.wire(watching & got & (before == 0))
    bench.next(
        inside.eq(inside + Mux(put, count, 0) - got),
        before.eq(Mux(chosen, inside - got, before - (got & (before != 0)))),
        held.eq(Mux(chosen, kept, held)),
        rest.eq(Mux(chosen, parts, Mux(arrives, rest & (rest - 1), rest))),
        watching.eq(Mux(chosen, parts.any(), watching & ~(arrives & ((rest & (rest - 1)) == 0)))),
    )
    right = C(0)
    for n in reversed(range(len(parts))):
        right = Mux(rest[n], is_part(held, n), right)
    bench.claim(f"{words} never holds more than {most} parts", inside <= most)
    bench.claim(f"{words} gives nothing that did not go in", ~got | (inside != 0))
    bench.claim(f"{words} gives the parts of each element once, in order", ~arrives | right)
    bench.cover(
        f"{words} gives the last of several parts", arrives & watching & bench.past(arrives)
    )
    return inside


# Reachable states of stream registers and queues, in which inductions start.


def register_states(bench, register):
    """Claim the states of a stream register as invariants; return the number of payloads in it."""
    write, read = (bench.inside(register, name) for name in ("write", "read"))
    full = ~register.i.ready
    bench.invariant(register.o.valid | ~full)
    bench.invariant((write ^ read) == (register.o.valid ^ full))
    return register.o.valid + full


def held_in(bench, register):
    """Return the contents of a stream register as (valid, payload), the next to leave first."""
    payloads, read = (bench.inside(register, name) for name in ("payloads", "read"))
    flat = [Value.cast(payload) for payload in payloads]
    return [
        (register.o.valid, bench.view(register.o.payload, Mux(read, *flat[::-1]))),
        (~register.i.ready, bench.view(register.o.payload, Mux(read, *flat))),
    ]


def early_states(bench, register, *, flags=None):
    """Claim the states of a register's early fields, as invariants.

    Parameters
    ----------
    flags : function or None
        Function of a payload that returns its early fields, which are zero while the register is
        empty. By default, the early fields are those of the payload, and arbitrary while it is
        empty.
    """
    output, spare = (bench.inside(register, name) for name in ("output", "spare"))
    (valid, first), (full, second) = held_in(bench, register)

    def fields(payload):
        if flags is not None:
            return flags(payload)
        return Cat(Value.cast(payload[name]) for name in register.early)

    bench.invariant(~valid | (output == fields(first)))
    bench.invariant(~full | (spare == fields(second)))
    if flags is not None:
        bench.invariant(valid | (output == 0))


def entries_states(bench, watch, entries):
    """Claim that the elements inside are in these places, the next to leave first.

    Parameters
    ----------
    watch : Watch
    entries : list of (Value, Value)
        Places, as (valid, element).
    """
    before = C(0, 1)
    for held, value in entries:
        here = watch.watching & held & (watch.before == before)
        bench.invariant(~here | (Value.cast(value) == watch.watched))
        before = bench.wire(before + held, "place")
    bench.invariant(watch.level == before)


# States of a stream register with early fields, for inductions about what it is a part of.


def register_words(bench, register, like):
    """Claim the states of a stream register by itself; return its words, the older one first.

    Parameters
    ----------
    register : StreamRegister
        With the early fields ``kind`` and ``time``.
    like : view
        What has the shape of a word.

    Returns
    -------
    list of namespace
        Of both places: whether a word is ``there``, and this ``word``.
    """
    payloads, write, read, ready, valid, output, spare = (
        bench.inside(register, name)
        for name in ("payloads", "write", "read", "ready", "valid", "output", "spare")
    )
    bench.invariant(ready | valid)
    bench.invariant((write ^ read) == (ready & valid))
    words = [bench.view(like, Mux(read ^ n, payloads[1], payloads[0])) for n in range(2)]
    for there, one, early in zip((valid, ~ready), words, (output, spare), strict=True):
        bench.invariant(~there | (early == Cat(one.kind, one.time)))
    return [
        SimpleNamespace(there=there, word=one)
        for there, one in zip((valid, ~ready), words, strict=True)
    ]

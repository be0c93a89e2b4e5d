# SPDX-License-Identifier: Apache-2.0
"""What is claimed of streams, whatever stands between them."""

from typing import NamedTuple

from amaranth import *

__all__ = ["Watch", "answers_within", "keeps_order", "keeps_sequence", "offer", "take"]


class Watch(NamedTuple):
    """What :func:`keeps_order` knows of the elements inside.

    Attributes
    ----------
    level : Signal
        How many there are.
    watching : Signal
        One of them is watched.
    watched : Signal
        It is this one.
    before : Signal
        So many leave before it.
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
        What is offered; anything by default. It is the driver's duty to keep it.
    """
    valid = bench.any(1, "offered")
    value = bench.any(len(Value.cast(stream.payload)), "payload") if payload is None else payload
    bench.set(stream.valid, valid)
    bench.set(Value.cast(stream.payload), value)
    waited = bench.past(stream.valid & ~stream.ready)
    bench.assume(~waited | (stream.valid & (Value.cast(stream.payload) == bench.past(value))))
    return bench.wire(stream.valid & stream.ready, "offered_transfer")


def take(bench, stream, words, *, always=False):
    """Take from a stream at any time; claim that it keeps its contract; return its transfer.

    Parameters
    ----------
    words : str
        What the stream is called in the claim.
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
    """Claim that what comes out is what went in, in order: nothing lost, repeated or changed.

    Any one element is watched: it is chosen freely when it goes in, together with how many are
    inside before it.

    Parameters
    ----------
    put, got : Value
        An element goes in, one comes out.
    value, seen : Value
        … which.
    most : int
        Elements that may be inside at the most.

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
    """Claim that something does not wait for longer than so many cycles on end."""
    waited = bench.register(range(cycles + 2), "waited")
    bench.next(waited.eq(Mux(waiting, waited + (waited <= cycles), 0)))
    bench.claim(words, waited <= cycles)


def keeps_sequence(bench, words, put, parts, kept, got, is_part, *, most):
    """Claim that every element that goes in comes out as its parts, in order, before the next one.

    Parameters
    ----------
    put : Value
        An element goes in.
    parts : Value
        A bit for each part that it may have: whether it has it. The lowest comes first.
    kept : Value
        What is to be known of the element when its parts come out.
    got : Value
        A part comes out.
    is_part : function
        Whether what comes out is the part with this number, of the element that was ``kept``.
    most : int
        Parts that may be inside at the most.

    Returns
    -------
    Signal
        Parts inside.
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

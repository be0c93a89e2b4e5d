# SPDX-License-Identifier: Apache-2.0
"""What is claimed of streams, whatever stands between them."""

from typing import NamedTuple

from amaranth import *

__all__ = ["Watch", "answers_within", "keeps_order", "offer", "take"]


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
    bench.claim(f"{words} gives nothing that did not go in", ~got | (level != 0) | put)
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

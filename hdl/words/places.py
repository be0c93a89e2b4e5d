# SPDX-License-Identifier: Apache-2.0
"""Where the tuples of an input word are, and which of two comes first."""

from amaranth import *

from .inputs import InputKind

__all__ = ["has_tuples", "held_tuples", "place_tuple", "times"]


def has_tuples(parameters, word):
    """Does an input word hold a tuple, or two?"""
    single = ~Value.cast(word.kind)[1]
    return single if parameters.tuples_per_word == 1 else single | (word.kind == InputKind.BOTH)


def held_tuples(parameters, word):
    """Return whether an input word holds a tuple of R, and whether it holds one of S."""
    single = [word.kind == InputKind.R, word.kind == InputKind.S]
    if parameters.tuples_per_word == 1:
        return single
    return [is_side | (word.kind == InputKind.BOTH) for is_side in single]


def place_tuple(m, word, placed):
    """Put the only tuple of ``word``, if it is of S, where ``placed`` has that of S among two."""
    with m.If(word.kind == InputKind.S):
        m.d.comb += placed.body.both.s.eq(word.body.tuple)


def times(word):
    """Return the timestamps of the first and of the last tuple in a word that may hold two."""
    is_both = word.kind == InputKind.BOTH
    # If there is only one, it is where that of R is among two.
    r, s = word.body.both.r.timestamp, word.body.both.s.timestamp
    return Mux(is_both & word.first, s, r), Mux(is_both & ~word.first, s, r)

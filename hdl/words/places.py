# SPDX-License-Identifier: Apache-2.0
"""Where an input word holds its tuples, and which of two tuples comes first."""

from amaranth import *

from .inputs import InputKind

__all__ = ["has_tuples", "held_tuples", "place_tuple", "times"]


def has_tuples(parameters, word):
    """Return whether an input word holds one tuple or two."""
    single = ~Value.cast(word.kind)[1]
    return single if parameters.tuples_per_word == 1 else single | (word.kind == InputKind.BOTH)


def held_tuples(parameters, word):
    """Return whether an input word holds a tuple of R, and whether it holds a tuple of S."""
    single = [word.kind == InputKind.R, word.kind == InputKind.S]
    if parameters.tuples_per_word == 1:
        return single
    return [is_side | (word.kind == InputKind.BOTH) for is_side in single]


def place_tuple(m, word, placed):
    """Copy a tuple of S that is alone in ``word`` to where two tuples in ``placed`` have S."""
    with m.If(word.kind == InputKind.S):
        m.d.comb += placed.body.both.s.eq(word.body.tuple)


def times(word):
    """Return the timestamps of the first and of the last tuple of a word that may hold two."""
    is_both = word.kind == InputKind.BOTH
    # A single tuple has the place that R has among two.
    r, s = word.body.both.r.timestamp, word.body.both.s.timestamp
    return Mux(is_both & word.first, s, r), Mux(is_both & ~word.first, s, r)

# SPDX-License-Identifier: Apache-2.0
"""What an input word says by itself."""

from amaranth import *

from hdl.words.inputs import Control, InputKind
from hdl.words.operands import bounds_set, ends_groups, is_legal, value_limits
from hdl.words.places import held_tuples

__all__ = ["is_clear", "word_facts"]


def word_facts(parameters, word):
    """Return what an input word says by itself, so that nothing else has to look into it.

    ``legal``: it means something; a word that does not holds no tuple, ends no group and sets
    nothing. ``clear``: it is CLEAR. ``is_r``, ``is_s``: it holds a tuple of this side. ``first``,
    where there may be two: side of the one that comes first, if it holds two. ``finish``: it closes
    the groups of both sides. ``set_precision``: it is PRECISION, and asks for the ``wanted`` period
    from star to star, which is ``single`` if it is one and ``unordered`` if it is longer than a
    group; all three may be anything in other words. ``bounds``: those that it sets. ``limits``: the
    ends of ranges that its value exceeds.
    """
    control = word.body.control
    is_control = word.kind == InputKind.CONTROL
    bits = parameters.probe_bits
    longest = 1 << bits
    low, high = control.value[:bits], control.value[bits:]
    held = held_tuples(parameters, word)
    shorter = (low != 0) & (high == 0)  # than the longest, which zero and too long ones mean
    order = {"first": word.first} if parameters.tuples_per_word == 2 else {}
    return {
        **order,
        # What goes to both schedules is kept apart: in the Verilog, neighbours become one port, and
        # these are neighbours in another order for the other side.
        "legal": is_legal(parameters, word),
        "clear": is_clear(word),
        "is_r": held[0],
        "wanted": Mux(shorter, low, longest),
        "is_s": held[1],
        "set_precision": is_control & (control.op == Control.PRECISION),
        "finish": ends_groups(parameters, word),
        "single": Mux(shorter, low == 1, longest == 1),
        "unordered": Mux(shorter, low > parameters.probes, longest > parameters.probes),
        "bounds": bounds_set(parameters, word),
        "limits": value_limits(parameters, word),
    }


def is_clear(word):
    """Is this input word CLEAR?"""
    return (word.kind == InputKind.CONTROL) & (word.body.control.op == Control.CLEAR)

# SPDX-License-Identifier: Apache-2.0
"""What an input word says by itself."""

from amaranth import *

from hdl.words.inputs import Control, InputKind
from hdl.words.operands import (
    bounds_set,
    core_exists,
    ends_groups,
    executes,
    is_legal,
    value_limits,
)
from hdl.words.operations import begins_window, empties_window
from hdl.words.places import held_tuples
from hdl.words.rounds import rounds_code

__all__ = ["is_clear", "word_facts"]


def word_facts(parameters, word):
    """Return what an input word says by itself, so that later stages need not decode it.

    ``legal``: the word is legal. An illegal word holds no tuple, ends no group and sets nothing.
    ``clear``: the word is CLEAR.
    ``is_r``, ``is_s``: the word holds a tuple of this side.
    ``first``, if a word may hold two tuples: the side of the tuple that comes first.
    ``finish``: the word closes the groups of both sides.
    ``set_precision``: the word sets the precision.
    ``wanted``: the period from star to star that PRECISION asks for; zero if it asks for no stars.
    ``single``, ``unordered``: this period is one; it is longer than a group, or there is none.
    ``rounds``, with rounds: the code of the rounds that INNER asks for; zero for PRECISION.
    ``core``: the word is CORE.
    ``exists``: the value of the word is the number of a core.
    ``segment``: the word is SEGMENT.
    ``empties``: the sides whose windows the word empties.
    ``begins``: the word is WINDOW or LIFESPAN.
    ``timed``: it is LIFESPAN.
    ``bounds``: the bounds that the word sets.
    ``limits``: the limits that the value of the word exceeds.

    PRECISION and INNER set the precision: INNER asks for a period of one. In other words,
    ``wanted``, ``single``, ``unordered`` and ``rounds`` may have any value. In words that do not
    hold two tuples, ``first`` may have any value.
    """
    control = word.body.control
    is_control = word.kind == InputKind.CONTROL
    bits = parameters.probe_bits
    longest = 1 << bits
    low, high = control.value[:bits], control.value[bits:]
    held = held_tuples(parameters, word)
    # The period is shorter than the longest one. Numbers that are too large, and those below zero,
    # stand for the longest period; zero stands for no stars.
    none = control.value == 0
    shorter = (low != 0) & (high == 0)
    order = {"first": word.first} if parameters.tuples_per_word == 2 else {}
    inner, sets, rounds = Const(0), control.op == Control.PRECISION, {}
    if parameters.rounds:
        inner = control.op == Control.INNER
        sets = control.op.as_value().matches(Control.PRECISION, Control.INNER)
        rounds = {"rounds": Mux(inner, rounds_code(parameters, control.value), 0)}
    return {
        **order,
        # Facts that go to both schedules are not neighbours here. Neighbours become one port in the
        # Verilog, and the schedules of the two sides take these facts in different orders.
        "legal": is_legal(parameters, word),
        "clear": is_clear(word),
        "is_r": held[0],
        "wanted": Mux(inner, 1, Mux(shorter, low, Mux(none, 0, longest))),
        **rounds,
        "is_s": held[1],
        "set_precision": is_control & sets,
        "finish": ends_groups(parameters, word),
        "single": inner | Mux(shorter, low == 1, ~none & (longest == 1)),
        "unordered": ~inner
        & Mux(shorter, low > parameters.probes, none | (longest > parameters.probes)),
        "core": is_control & (control.op == Control.CORE),
        "exists": core_exists(parameters, control),
        "segment": is_control & (control.op == Control.SEGMENT),
        "empties": emptied(parameters, word),
        "begins": is_control & begins_window(control),
        "timed": control.op == Control.LIFESPAN,
        "bounds": bounds_set(parameters, word),
        "limits": value_limits(parameters, word),
    }


def emptied(parameters, word):
    """Return the sides whose windows an input word empties."""
    control = word.body.control
    begins = begins_window(control)
    own = Cat(control.index == 0, control.index == 1)
    empties = executes(parameters, word) & empties_window(control, parameters)
    return empties.replicate(2) & (own | (~begins).replicate(2))


def is_clear(word):
    """Return whether an input word is CLEAR."""
    return (word.kind == InputKind.CONTROL) & (word.body.control.op == Control.CLEAR)

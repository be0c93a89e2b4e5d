# SPDX-License-Identifier: Apache-2.0
"""Operands and operations of control words, and the places of tuples."""

from functools import reduce
from operator import or_

from amaranth import *

from .inputs import Control, InputKind, bounds_layout, operation_indices, value_ranges

__all__ = [
    "ANSWERED",
    "answers_mark",
    "begins_window",
    "bounds_set",
    "clamped_time",
    "core_exists",
    "empties_own_window",
    "empties_window",
    "ends_groups",
    "executes",
    "has_tuples",
    "held_tuples",
    "is_legal",
    "limit_value",
    "place_tuple",
    "saturated",
    "times",
    "value_limits",
]


#: Operations that an accelerator answers with a mark, if it executes them.
ANSWERED = (Control.CLEAR, Control.FLUSH, Control.PRECISION, Control.INNER)


def answers_mark(control):
    """Return whether the accelerator answers a control word with a mark."""
    return control.op.as_value().matches(*ANSWERED)


def begins_window(control):
    """Return whether a control word begins a new window for a side."""
    return control.op.as_value().matches(Control.WINDOW, Control.LIFESPAN)


def empties_window(control, parameters):
    """Return whether a control word empties a window, and so waits until the engine is idle."""
    own = parameters.engine.restarts + parameters.rule.restarts
    return begins_window(control) | control.op.as_value().matches(Control.CLEAR, *own)


def empties_own_window(control):
    """Return whether a control word that empties a window empties the one that a region stores.

    Parameters
    ----------
    control : View
        The word as the region gets it, in which the side that it stores is side 1.
    """
    return ~begins_window(control) | (control.index == 1)


def has_tuples(parameters, word):
    """Return whether an input word holds one tuple or two."""
    single = ~Value.cast(word.kind)[1]
    return single if not parameters.side_by_side else single | (word.kind == InputKind.BOTH)


def held_tuples(parameters, word):
    """Return whether an input word holds a tuple of R, and whether it holds a tuple of S."""
    single = [word.kind == InputKind.R, word.kind == InputKind.S]
    if not parameters.side_by_side:
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


def executes(parameters, word, *, without=()):
    """Return whether an input word is a control word that the accelerator executes.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator.
    word : View
        An :func:`hdl.words.inputs.input_word`.
    without : collection of Control
        Operations to leave out.
    """
    control = word.body.control
    known = (
        (control.op == op) & (control.index < count)
        for op, count in operation_indices(parameters).items()
        if op not in without
    )
    return (word.kind == InputKind.CONTROL) & reduce(or_, known)


def is_legal(parameters, word):
    """Return whether an input word holds tuples or is a control word that is executed."""
    return has_tuples(parameters, word) | executes(parameters, word)


def core_exists(parameters, control):
    """Return whether the value of a control word is the number of a core."""
    return (control.value >= 0) & (control.value < parameters.cores)


def ends_groups(parameters, word):
    """Return whether an input word is a control word that closes the groups of both sides.

    MASK and UNMASK of a core that does not exist have no effect at all.
    """
    control = word.body.control
    ends = executes(parameters, word, without=(Control.BOUND_LOW, Control.BOUND_HIGH, Control.CORE))
    if not parameters.has_gates:
        return ends
    of_core = control.op.as_value().matches(Control.MASK, Control.UNMASK)
    return ends & (~of_core | core_exists(parameters, control))


def bounds_set(parameters, word):
    """Return a flag for each bound, which says whether an input word sets it.

    The flags are in the order of :func:`hdl.words.inputs.bounds_layout`.
    """
    control = word.body.control
    is_control = word.kind == InputKind.CONTROL
    return Cat(
        is_control & (control.index == index) & (control.op == op)
        for index, _ in enumerate(bounds_layout(parameters))
        for op in (Control.BOUND_LOW, Control.BOUND_HIGH)
    )


def saturated(value, width):
    """Clamp the signed ``value`` to ``width`` signed bits."""
    if width >= len(value):
        return value
    upper = value[width - 1 :]
    extreme = Cat((~value[-1]).replicate(width - 1), value[-1])
    return Mux(~upper.any() | upper.all(), value[:width], extreme).as_signed()


def clamped_time(value, width):
    """Clamp ``value`` to ``width`` unsigned bits: zero stands for less, the last time for more."""
    sign = value.shape().signed
    magnitude, negative = value[: len(value) - sign], value[-1] & sign
    above = magnitude[width:].any()
    return (magnitude[:width] | above.replicate(width)) & (~negative).replicate(width)


def value_limits(parameters, word):
    """Return a flag for each limit, which says whether the value of an input word exceeds it.

    The flags are in the order of :func:`hdl.words.inputs.limits_layout`.
    """
    control = word.body.control
    is_control = word.kind == InputKind.CONTROL
    flags = []
    for op, (low, high) in value_ranges(parameters).items():
        own = is_control & (control.op == op)
        flags += [own & (control.value < low), own & (control.value > high)]
    return Cat(flags)


def limit_value(m, parameters, scheduled):
    """Clamp the value of a scheduled word to its range, as the word's ``limits`` say."""
    for op, (low, high) in value_ranges(parameters).items():
        limits = scheduled.limits[op.name]
        for flag, nearest in ((limits.below, low), (limits.above, high)):
            with m.If(flag):
                m.d.comb += scheduled.word.body.control.value.eq(nearest)

# SPDX-License-Identifier: Apache-2.0
"""Legality of input words, and clamping of operands that are out of range."""

from functools import reduce
from operator import or_

from amaranth import *

from .inputs import Control, InputKind, bounds_layout, operation_indices, value_ranges
from .places import has_tuples

__all__ = [
    "bounds_set",
    "clamped_time",
    "core_exists",
    "ends_groups",
    "executes",
    "is_legal",
    "limit_value",
    "saturated",
    "value_limits",
]


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

# SPDX-License-Identifier: Apache-2.0
"""Which input words are legal, and what operands that are out of range stand for."""

from functools import reduce
from operator import or_

from amaranth import *

from .inputs import Control, InputKind, bounds_layout, operation_indices, value_ranges
from .places import has_tuples

__all__ = [
    "bounds_set",
    "ends_groups",
    "executes",
    "is_legal",
    "limit_value",
    "saturated",
    "value_limits",
]


def executes(parameters, word, *, without=()):
    """Is an input word a control word that the accelerator executes?

    Parameters
    ----------
    parameters : JoinParameters
        Of the accelerator.
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
    """Does an input word mean something: does it hold tuples, or is it executed?"""
    return has_tuples(parameters, word) | executes(parameters, word)


def ends_groups(parameters, word):
    """Is an input word a control word that closes the groups of both sides?"""
    return executes(parameters, word, without=(Control.BOUND_LOW, Control.BOUND_HIGH))


def bounds_set(parameters, word):
    """Return which bounds an input word sets (:func:`hdl.words.inputs.bounds_layout`)."""
    control = word.body.control
    is_control = word.kind == InputKind.CONTROL
    return Cat(
        is_control & (control.index == index) & (control.op == op)
        for index, _ in enumerate(bounds_layout(parameters))
        for op in (Control.BOUND_LOW, Control.BOUND_HIGH)
    )


def saturated(value, width):
    """Return the number of ``width`` signed bits that is nearest to the signed ``value``."""
    if width >= len(value):
        return value
    upper = value[width - 1 :]
    extreme = Cat((~value[-1]).replicate(width - 1), value[-1])
    return Mux(~upper.any() | upper.all(), value[:width], extreme).as_signed()


def value_limits(parameters, word):
    """Return which ranges a word's value exceeds (:func:`hdl.words.inputs.limits_layout`)."""
    control = word.body.control
    is_control = word.kind == InputKind.CONTROL
    flags = []
    for op, (low, high) in value_ranges(parameters).items():
        own = is_control & (control.op == op)
        flags += [own & (control.value < low), own & (control.value > high)]
    return Cat(flags)


def limit_value(m, parameters, scheduled):
    """Put the nearest value that is in range into a word, if its ``limits`` say that it is not."""
    for op, (low, high) in value_ranges(parameters).items():
        limits = scheduled.limits[op.name]
        for flag, nearest in ((limits.below, low), (limits.above, high)):
            with m.If(flag):
                m.d.comb += scheduled.word.body.control.value.eq(nearest)

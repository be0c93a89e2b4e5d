# SPDX-License-Identifier: Apache-2.0
"""What a core does with the reductions of an operator: how wide they are, and how windows move."""

from amaranth import *
from amaranth.utils import ceil_log2

from hdl.expressions import lower

__all__ = ["combined", "delta_reductions", "exceeds", "pane_reductions", "partial_bits"]

#: What a reduction by delta does to two states, and to take one out of the other.
ADDS, TAKES = "a + b", "a - b"


def is_additive(rule):
    """Return whether a reduction is a sum, from which a pane can be taken out again."""
    return (rule.combine, rule.inverse) == (ADDS, TAKES)


def delta_reductions(parameters):
    """Return the reductions whose windows move by delta: a pane is added, another taken out."""
    return [rule for rule in parameters.operator.reductions if is_additive(rule)]


def pane_reductions(parameters):
    """Return the reductions that are combined from all panes of a window, for every window."""
    return [rule for rule in parameters.operator.reductions if not is_additive(rule)]


def partial_bits(parameters, rule):
    """Return the bits of a reduction of one pane: those of its state, or fewer if it is a sum."""
    if parameters.pane_bits is None or not is_additive(rule):
        return rule.bits
    return min(rule.bits, parameters.pane_bits)


def shape_of(bits, rule):
    """Return the shape of a number of a reduction."""
    return signed(bits) if rule.signed else unsigned(bits)


def partial_shape(parameters, rule):
    """Return the shape of a reduction of one pane."""
    return shape_of(partial_bits(parameters, rule), rule)


def running_shape(parameters, rule):
    """Return the shape of a sum over the panes of a window, which always fits."""
    return shape_of(partial_bits(parameters, rule) + ceil_log2(parameters.panes), rule)


def window_shape(parameters, rule):
    """Return the shape of a reduction of a window, as a result holds it."""
    if not is_additive(rule):
        return partial_shape(parameters, rule)
    return shape_of(min(rule.bits, running_shape(parameters, rule).width), rule)


def lifted_value(rule, fields):
    """Return what a tuple contributes to a reduction, which always fits its state.

    Parameters
    ----------
    rule : ReductionRule
    fields : mapping of str to value-like
        Fields of the tuple, and its ``timestamp``.
    """
    return Value.cast(lower(rule.value, fields))


def combined(rule, a, b):
    """Return the reduction of two disjoint sets of tuples, as wide as it may become."""
    return Value.cast(lower(rule.combine, {"a": a, "b": b}))


def exceeds(value, shape):
    """Return whether ``value`` is outside of ``shape``."""
    if not shape.signed:
        above = value[shape.width :].any() if len(value) > shape.width else Const(0, 1)
        negative = value[-1] if value.shape().signed else Const(0, 1)
        return above | negative
    if not value.shape().signed:
        return value[shape.width - 1 :].any() if len(value) >= shape.width else Const(0, 1)
    if len(value) <= shape.width:
        return Const(0, 1)
    above = value[shape.width - 1 :]
    return above.any() & ~above.all()

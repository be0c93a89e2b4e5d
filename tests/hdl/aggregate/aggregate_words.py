# SPDX-License-Identifier: Apache-2.0
"""Input words of an aggregate accelerator as integers."""

from hdl.aggregate.words import AggregateKind, aggregate_word

__all__ = ["control_word", "tuple_word"]


def control_word(parameters, op, value=0):
    """A control word. ``op`` is an operation, or the number of one, which need not exist."""
    layout = aggregate_word(parameters)
    control = layout["body"].shape.members["control"]
    bits = getattr(op, "value", op) | value << control["value"].offset
    return bits << layout["body"].offset | AggregateKind.CONTROL.value


def tuple_word(parameters, time, **fields):
    """A tuple."""
    body = {"tuple": {**fields, "timestamp": time}}
    layout = aggregate_word(parameters)
    return layout.const({"kind": AggregateKind.TUPLE, "body": body}).as_value().value

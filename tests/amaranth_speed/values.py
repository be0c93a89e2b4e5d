# SPDX-License-Identifier: Apache-2.0
"""Shapes of Amaranth's values, and formats of its signals, computed once or not at all.

Amaranth computes the shape of an expression from the shapes of its operands at each use, and its
length from its shape. It describes every field of a signal for tools that print or draw signals,
which few tests do. Together that is a fifth of the processor's time of tests that elaborate and
simulate components. A value cannot be changed once it is made.
"""

import sys

from amaranth.hdl import _ast
from amaranth.lib import data

__all__ = ["keep_shapes", "postpone_formats", "recognize_values"]

#: Classes of expressions whose shape follows from how they were made.
EXPRESSIONS = ["Concat", "Operator", "Part", "Signal", "Slice", "SwitchValue"]


def keep_shapes(monkeypatch):
    """Let expressions remember the shapes that Amaranth computes for them.

    Parameters
    ----------
    monkeypatch : pytest.MonkeyPatch
        Undoes it.
    """
    for name in EXPRESSIONS:
        expression = getattr(_ast, name)
        monkeypatch.setattr(expression, "shape", kept(expression.shape))


def kept(computed):
    """Return a method with the value that the method ``computed`` has at its first call."""

    def shape(self):
        try:
            return self._kept_shape
        except AttributeError:
            self._kept_shape = known = computed(self)
            return known

    shape.__doc__ = computed.__doc__
    return shape


def recognize_values(monkeypatch):
    """Let casts to a value return at once if they are given a value of a class that they know.

    Parameters
    ----------
    monkeypatch : pytest.MonkeyPatch
        Undoes it.
    """
    compute, known = _ast.Value.cast, set()

    def cast(obj):
        if type(obj) in known:
            return obj
        value = compute(obj)
        if value is obj:
            known.add(type(obj))
        return value

    monkeypatch.setattr(_ast.Value, "cast", staticmethod(cast))


class Postponed:
    """The format of a signal, before anyone has asked for it."""

    def __init__(self, compute):
        self.compute = compute


def postpone_formats(monkeypatch):
    """Let signals compute the format of a layout when it is first read.

    Parameters
    ----------
    monkeypatch : pytest.MonkeyPatch
        Undoes it.
    """
    compute, made_by = data.Layout.format, _ast.Signal.__init__.__code__

    def format_of_layout(self, value, format_spec):
        if sys._getframe(1).f_code is made_by:
            return Postponed(lambda: compute(self, value, format_spec))
        return compute(self, value, format_spec)

    def read(signal):
        if isinstance(signal._kept_format, Postponed):
            signal._kept_format = signal._kept_format.compute()
        return signal._kept_format

    def write(signal, value):
        signal._kept_format = value

    monkeypatch.setattr(data.Layout, "format", format_of_layout)
    monkeypatch.setattr(_ast.Signal, "_format", property(read, write), raising=False)

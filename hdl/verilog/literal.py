# SPDX-License-Identifier: Apache-2.0
"""Constants that are not folded, so that copies of a component share one module."""

from amaranth import *

__all__ = ["literal"]


def literal(value, shape):
    """Return an expression that is always ``value`` but that Amaranth does not fold.

    A constant that drives a submodule's input is folded into the submodule, and the port
    disappears. Every copy of, say, a join core would then be a different module, to be printed,
    compiled and read on its own. The double negation returned here remains a cell of the *parent*,
    so the submodule keeps its port and all copies share one module. Synthesis folds the negation
    when, and only when, it flattens the hierarchy, so it costs nothing.

    Use it for inputs that tell otherwise equal components apart, such as a core's position.

    Parameters
    ----------
    value : int
        Constant; it must fit ``shape``.
    shape : shape-like
        Unsigned shape of at least one bit, or of zero bits for the constant zero.

    Examples
    --------
    >>> m.d.comb += core.position.eq(literal(3, core.position.shape()))  # doctest: +SKIP
    """
    shape = Shape.cast(shape)
    if shape.signed:
        raise ValueError(f"Literal must be of an unsigned shape, not {shape!r}")
    if not 0 <= value < 1 << shape.width:
        raise ValueError(f"Literal {value!r} does not fit {shape.width} bits")
    if shape.width == 0:
        return Const(0, 0)
    return ~Const(~value & ((1 << shape.width) - 1), shape)

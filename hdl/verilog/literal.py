# SPDX-License-Identifier: Apache-2.0
"""Constants that stay nets, so that copies of a component stay equal."""

from amaranth import *

__all__ = ["literal"]


def literal(value, shape):
    """Return an expression that is always ``value`` but that Amaranth does not fold.

    A constant assigned to a submodule's input disappears into that submodule: its port goes away,
    and every copy of, say, a join core becomes a different module that has to be printed,
    compiled and read on its own. The double negation written here stays a cell of the *parent*;
    the submodule keeps its port, so all copies share one module. Synthesis folds it when (and
    only when) it flattens the hierarchy, so it costs nothing.

    Use it for inputs that tell otherwise equal components apart, e.g. a core's position.

    Parameters
    ----------
    value : int
        The constant; must fit ``shape``.
    shape : shape-like
        An unsigned shape of at least one bit, or zero bits for the constant zero.

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

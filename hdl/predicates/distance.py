# SPDX-License-Identifier: Apache-2.0
"""Example of a predicate with a pipeline of its own: points near one another, by multipliers."""

from amaranth import *

from .own import Predicate

__all__ = ["Distance", "within_25"]


class Distance(Predicate):
    """Two points of a plane are at most so far apart.

    The differences, their squares, and the comparison of the sum of these have a register each.

    Latency: 3 cycles. Throughput: 1 comparison per cycle.

    Parameters
    ----------
    radius : int
        The largest distance, at least zero.
    """

    latency = 3

    def __init__(self, radius):
        if radius < 0:
            raise ValueError(f"A distance is at least 0, not {radius!r}")
        self.radius = radius
        dx, dy = "(l.x - r.x)", "(l.y - r.y)"
        self.where = f"{dx} * {dx} + {dy} * {dy} <= {radius**2}"

    def match(self, m, r, s):
        squares = []
        for name in ("x", "y"):
            difference = getattr(r, name) - getattr(s, name)
            apart = Signal(difference.shape(), name=f"d{name}", reset_less=True)
            square = Signal(2 * len(apart), name=f"d{name}_squared", reset_less=True)
            m.d.sync += [apart.eq(difference), square.eq(apart * apart)]
            squares.append(square)
        match = Signal(reset_less=True)
        m.d.sync += match.eq(sum(squares) <= self.radius**2)
        return match


#: For ``hdl generate --predicate hdl.predicates.distance:within_25``.
within_25 = Distance(25)

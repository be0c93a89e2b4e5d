# SPDX-License-Identifier: Apache-2.0
"""Ranges of expressions, by interval arithmetic: what fits into 64 bits, and into how few."""

import ast
from collections.abc import Mapping
from dataclasses import dataclass

from host.errors import ExpressionError
from host.expressions.expression import Expression
from host.expressions.grammar import dotted

__all__ = ["INT64", "Interval", "interval"]


@dataclass(frozen=True)
class Interval:
    """All integers from ``low`` to ``high``."""

    low: int
    high: int

    @property
    def signed(self) -> bool:
        """Whether a number of this range can be negative."""
        return self.low < 0

    @property
    def bits(self) -> int:
        """Bits of the smallest field that holds the range, in two's complement if it is signed."""
        if not self.signed:
            return max(1, self.high.bit_length())
        return max((~self.low).bit_length(), max(self.high, 0).bit_length()) + 1

    @classmethod
    def of_field(cls, bits: int, signed: bool) -> "Interval":
        """Return the range of a field."""
        return cls(-(1 << bits - 1), (1 << bits - 1) - 1) if signed else cls(0, (1 << bits) - 1)

    def holds(self, other: "Interval") -> bool:
        """Return whether ``other`` lies within this range."""
        return self.low <= other.low and other.high <= self.high

    def __or__(self, other: "Interval") -> "Interval":
        return Interval(min(self.low, other.low), max(self.high, other.high))


#: What arrays compute with.
INT64 = Interval.of_field(64, True)


def interval(expression: Expression, ranges: Mapping[str, Interval]) -> Interval:
    """Return a range that holds every value of an expression.

    Parameters
    ----------
    expression : Expression
    ranges : mapping of str to Interval
        Ranges of the names.

    Raises
    ------
    ExpressionError
        If the expression reads another name, or if a part of it can leave 64 bits.
    """
    return _Ranges(expression, ranges).of(expression.tree)


class _Ranges:
    def __init__(self, expression: Expression, ranges: Mapping[str, Interval]) -> None:
        self._expression = expression
        self._ranges = ranges

    def of(self, node: ast.expr) -> Interval:
        found = self._of(node)
        if not INT64.holds(found):
            raise ExpressionError(
                self._expression.text,
                f"its part {ast.unparse(node)!r} can be from {found.low} to {found.high}, which is "
                f"more than 64 bits",
                "give its fields fewer bits, or limit the part with & or min",
            )
        return found

    def _of(self, node: ast.expr) -> Interval:
        name = dotted(node)
        if name is not None:
            if name not in self._ranges:
                names = ", ".join(sorted(self._ranges)) or "none"
                raise ExpressionError(
                    self._expression.text, f"there is no {name!r} here", f"the names are: {names}"
                )
            return self._ranges[name]
        if isinstance(node, ast.Constant):
            assert isinstance(node.value, int)
            return Interval(node.value, node.value)
        if isinstance(node, ast.UnaryOp):
            at = self.of(node.operand)
            step = 1 if isinstance(node.op, ast.Invert) else 0
            return Interval(-at.high - step, -at.low - step)
        if isinstance(node, ast.BinOp):
            return _binary(node.op, self.of(node.left), self.of(node.right))
        if isinstance(node, ast.Compare):
            for side in (node.left, node.comparators[0]):
                self.of(side)
            return Interval(0, 1)
        assert isinstance(node, ast.Call)
        assert isinstance(node.func, ast.Name)
        return _call(node.func.id, [self.of(argument) for argument in node.args])


def _binary(operator: ast.operator, left: Interval, right: Interval) -> Interval:
    if isinstance(operator, ast.Add):
        return Interval(left.low + right.low, left.high + right.high)
    if isinstance(operator, ast.Sub):
        return Interval(left.low - right.high, left.high - right.low)
    if isinstance(operator, ast.Mult):
        corners = [
            one * other for one in (left.low, left.high) for other in (right.low, right.high)
        ]
        return Interval(min(corners), max(corners))
    if isinstance(operator, ast.LShift):
        return Interval(left.low << right.low, left.high << right.low)
    if isinstance(operator, ast.RShift):
        return Interval(left.low >> right.low, left.high >> right.low)
    if isinstance(operator, ast.FloorDiv):
        return Interval(left.low // right.low, left.high // right.low)
    if isinstance(operator, ast.Mod):
        if left.low // right.low == left.high // right.low:
            return Interval(left.low % right.low, left.high % right.low)
        return Interval(0, right.low - 1)
    return _bitwise(operator, left, right)


def _bitwise(operator: ast.operator, left: Interval, right: Interval) -> Interval:
    if isinstance(operator, ast.BitAnd):
        positive = [side.high for side in (left, right) if not side.signed]
        if positive:
            return Interval(0, min(positive))
    bits = max(max(side.high, ~side.low).bit_length() for side in (left, right))
    return Interval(-(1 << bits) if left.signed or right.signed else 0, (1 << bits) - 1)


def _call(name: str, arguments: list[Interval]) -> Interval:
    lows, highs = [at.low for at in arguments], [at.high for at in arguments]
    if name == "abs":
        (at,) = arguments
        nearest = 0 if at.low <= 0 <= at.high else min(abs(at.low), abs(at.high))
        return Interval(nearest, max(abs(at.low), abs(at.high)))
    if name == "min":
        return Interval(min(lows), min(highs))
    if name == "max":
        return Interval(max(lows), max(highs))
    return arguments[1] | arguments[2]

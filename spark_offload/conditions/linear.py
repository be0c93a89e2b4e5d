# SPDX-License-Identifier: Apache-2.0
"""Expressions of Spark as sums: columns of both sides with factors, and a constant.

Spark has analysed the expressions before, so names are resolved, types are known and casts are
written out. What is not such a sum is refused, with its text.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from host import UsageError
from host.columns.kinds import DAY
from host.query.quantities import Duration
from host.reference.arrivals import Side
from spark_offload.catalyst import children, kind_of

__all__ = ["Attribute", "Linear", "linear"]

_WIDTHS = ("tinyint", "smallint", "int", "bigint", "decimal", "float", "double")
"""Types of numbers; a cast to one further on keeps the value, or rounds it as Spark's rule says."""

_TRANSPARENT = ("DatetimeSub", "KnownNotNull", "PromotePrecision")
"""Expressions whose only child stands for them."""

_SUMS: dict[str, int] = {
    "Add": 1,
    "Subtract": -1,
    "TimestampAddInterval": 1,
    "SubtractTimestamps": -1,
    "SubtractDates": -1,
}
"""Expressions of two summands, with the factor of the second one."""


@dataclass(frozen=True)
class Attribute:
    """A column of one of the inputs.

    Parameters
    ----------
    side : Side
        Which input.
    name : str
        Name of the column.
    type : str
        Type of the column, as Spark writes it.
    """

    side: Side
    name: str
    type: str


@dataclass(frozen=True)
class Linear:
    """A sum.

    Parameters
    ----------
    factors : mapping of Attribute to Fraction
        Columns and their factors, without zeros.
    constant : Fraction
        The rest, in nanoseconds if it is a duration.
    is_duration : bool
        Whether the constant is a duration.
    """

    factors: Mapping[Attribute, Fraction]
    constant: Fraction = Fraction(0)
    is_duration: bool = False

    def plus(self, other: "Linear", factor: int) -> "Linear":
        """Return this sum plus ``factor`` times another one."""
        factors = dict(self.factors)
        for attribute, own in other.factors.items():
            factors[attribute] = factors.get(attribute, Fraction(0)) + factor * own
        return Linear(
            {attribute: own for attribute, own in factors.items() if own},
            self.constant + factor * other.constant,
            self.is_duration or other.is_duration,
        )

    def bound(self) -> int | Fraction | Duration:
        """Return the constant as the bound of a difference."""
        if self.is_duration:
            return Duration(int(self.constant))
        return int(self.constant) if self.constant.denominator == 1 else self.constant


def linear(expression: Any, attributes: Mapping[int, Attribute]) -> Linear:
    """Return an expression as a sum.

    Parameters
    ----------
    expression : Expression
        An analysed expression of the JVM.
    attributes : mapping of int to Attribute
        Columns of both inputs, by the numbers that Spark has given them.

    Raises
    ------
    UsageError
        If it is none.
    """
    if expression.foldable():
        return _constant(expression)
    kind = kind_of(expression)
    if kind == "AttributeReference":
        return Linear({attributes[expression.exprId().id()]: Fraction(1)})
    operands = list(children(expression))
    if kind in _TRANSPARENT or (kind == "Cast" and _keeps_values(operands[0], expression)):
        return linear(operands[0], attributes)
    if kind == "UnaryMinus":
        return Linear({}).plus(linear(operands[0], attributes), -1)
    if kind in _SUMS:
        first, second = (linear(operand, attributes) for operand in operands[:2])
        return first.plus(second, _SUMS[kind])
    if kind in ("DateAdd", "DateSub"):
        days = linear(operands[1], attributes)
        length = Linear({}, days.constant * DAY, is_duration=True)
        if not days.factors:
            return linear(operands[0], attributes).plus(length, 1 if kind == "DateAdd" else -1)
    raise UsageError(
        f"Part {expression.toString()!r} of the condition is no sum of columns and constants; "
        f"compute it with withColumn(...) before the join, and compare that column."
    )


def _keeps_values(operand: Any, cast: Any) -> bool:
    """Whether a cast neither rounds, nor cuts, nor parses."""
    before, after = (
        str(expression.dataType().catalogString()).partition("(")[0]
        for expression in (operand, cast)
    )
    if before in _WIDTHS and after in _WIDTHS:
        return _WIDTHS.index(before) <= _WIDTHS.index(after)
    return before == after or (before.startswith("interval") and after.startswith("interval"))


def _constant(expression: Any) -> Linear:
    """Return an expression without columns as a number or a duration."""
    type_name = str(expression.dataType().catalogString())
    value = expression.eval(None)
    if value is not None and type_name.startswith("interval") and isinstance(value, int):
        return Linear({}, Fraction(value * 1000), is_duration=True)  # microseconds
    if type_name.partition("(")[0] in _WIDTHS and value is not None:
        try:
            return Linear({}, Fraction(str(value)))
        except ValueError:
            pass  # NaN and infinity
    raise UsageError(
        f"Constant {expression.toString()!r} of type {type_name} in the condition is neither a "
        f"number nor a duration; compare columns with columns, and filter one side with "
        f"where(...) before the join."
    )

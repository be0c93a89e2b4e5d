# SPDX-License-Identifier: Apache-2.0
"""Conditions that are written as Columns of Spark, read as the terms of a join."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame

from host import UsageError
from host.columns.kinds import DAY
from host.query.quantities import Duration
from host.query.queries import Term
from host.reference.arrivals import Side
from spark_offload.cluster.machines import is_connect
from spark_offload.cluster.query_plans import analysed, children, kind_of
from spark_offload.partitioning.columns import check_frame

__all__ = [
    "Attribute",
    "Linear",
    "linear",
    "split_conditions",
    "terms_of",
]

# Expressions of Spark as sums: columns of both sides with factors, and a constant.
#
# Spark has analysed the expressions before, so names are resolved, types are known and casts are
# written out. What is not such a sum is refused, with its text.

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


# Read a condition, a Column of Spark, as the terms of a join.
#
# Spark analyses the condition as that of its own join, which runs nothing. So names and aliases
# mean what they mean there. Every part that the condition joins by AND must compare a column of
# the left input with one of the right: be equal, or differ by so much at most.

Limit: TypeAlias = "int | Fraction | Duration | None"

_OPPOSITE = {
    "LessThan": "GreaterThan",
    "LessThanOrEqual": "GreaterThanOrEqual",
    "GreaterThan": "LessThan",
    "GreaterThanOrEqual": "LessThanOrEqual",
    "EqualTo": "EqualTo",
}
"""Comparisons, and what they are with both sides exchanged."""

_STEPS: dict[str, int | Duration] = {
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint"), 1),
    **dict.fromkeys(("timestamp", "timestamp_ntz"), Duration(1_000)),
    "date": Duration(DAY),
}
"""Smallest difference of two values, by type."""


def split_conditions(given: Any, argument: str) -> tuple[Any, list[tuple[str, Column]]]:
    """Return what an argument names, and the conditions among it, with the argument's name.

    Conditions may stand in a list, among names.
    """
    if isinstance(given, Column):
        return None, [(argument, given)]
    if isinstance(given, list):
        named = [entry for entry in given if not isinstance(entry, Column)]
        return named, [(argument, entry) for entry in given if isinstance(entry, Column)]
    return given, []


def terms_of(left: DataFrame, right: DataFrame, condition: Column, argument: str) -> list[Term]:
    """Return the terms of a condition on two frames.

    Parameters
    ----------
    left, right : DataFrame
        The inputs.
    condition : Column
        Comparisons of left with right columns, joined by ``&``.
    argument : str
        Where the condition was given, for messages.

    Raises
    ------
    UsageError
        If Spark cannot resolve the condition, or a part of it is no term.
    """
    for frame, side in ((left, "left"), (right, "right")):
        check_frame(frame, side)
    if is_connect(left):
        raise UsageError(
            f"{argument} is a Column, which Spark Connect does not let a program read; name the "
            f"columns instead: on=['a'], band={{('b', 'c'): (low, high)}}."
        )
    try:
        # An inner join of batch frames and one of streams alike; it is analysed, and dropped.
        plan = analysed(left.join(right, condition))
    except AnalysisException as error:
        reason = str(error).strip().splitlines()[0].rstrip(".")
        raise UsageError(
            f"Spark cannot resolve the condition in {argument}: {reason}. Name columns by their "
            f"frames, or by aliases of the frames if both come from one."
        ) from error
    attributes = _attributes(plan, (left, right))
    bounds: dict[tuple[str, str], _Bounds] = {}
    for part in _parts(plan.condition().get()):
        for pair, found in _compared(part, attributes):
            bounds[pair] = bounds[pair].and_(found) if pair in bounds else found
    return [Term(*pair, found.low, found.high) for pair, found in bounds.items()]


def _attributes(plan: Any, frames: Sequence[DataFrame]) -> dict[int, Attribute]:
    """Return the columns of both inputs by the numbers that they have in Spark's join."""
    found = {}
    for side, frame, child in zip(Side, frames, (plan.left(), plan.right()), strict=True):
        output = child.output()
        for place, field in enumerate(frame.schema.fields):
            number = output.apply(place).exprId().id()
            found[number] = Attribute(side, field.name, field.dataType.simpleString())
    return found


def _parts(condition: Any) -> Iterator[Any]:
    """Yield what a condition joins by AND."""
    if kind_of(condition) == "And":
        for operand in children(condition):
            yield from _parts(operand)
    else:
        yield condition


@dataclass(frozen=True)
class _Bounds:
    """Between which limits the difference of two columns lies, both inclusive."""

    low: Limit
    high: Limit

    def and_(self, other: "_Bounds") -> "_Bounds":
        """Return the limits that keep both."""
        lows = [limit for limit in (self.low, other.low) if limit is not None]
        highs = [limit for limit in (self.high, other.high) if limit is not None]
        return _Bounds(
            max(lows, key=_size) if lows else None, min(highs, key=_size) if highs else None
        )


def _size(limit: int | Fraction | Duration) -> int | Fraction:
    return limit.nanoseconds if isinstance(limit, Duration) else limit


def _compared(
    part: Any, attributes: dict[int, Attribute]
) -> Iterator[tuple[tuple[str, str], _Bounds]]:
    """Yield the columns that a comparison is about, and the limits of their difference."""
    kind = kind_of(part)
    if kind not in _OPPOSITE:
        raise UsageError(
            f"Part {part.toString()!r} of the condition is no comparison of a left column with a "
            f"right one by ==, <, <=, >, >= or between, joined by &; give other conditions to "
            f"where(...) behind the join."
        )
    first, second = children(part)
    if kind_of(second) == "Abs":
        first, second, kind = second, first, _OPPOSITE[kind]
    if kind_of(first) == "Abs" and kind.startswith("LessThan"):
        inner, limit = linear(next(children(first)), attributes), linear(second, attributes)
        yield _limits(part, inner.plus(limit, -1), kind)
        yield _limits(part, inner.plus(limit, 1), _OPPOSITE[kind])
    else:
        yield _limits(part, linear(first, attributes).plus(linear(second, attributes), -1), kind)


def _limits(part: Any, difference: Linear, kind: str) -> tuple[tuple[str, str], _Bounds]:
    """Return the limits of left - right for a sum that is compared with zero."""
    sides = {attribute.side: attribute for attribute in difference.factors}
    if len(difference.factors) != 2 or len(sides) != 2:
        raise UsageError(
            f"Part {part.toString()!r} of the condition does not compare one left column with one "
            f"right column; filter one side with where(...) before the join, and what is about "
            f"several columns behind it."
        )
    left, right = sides[Side.R], sides[Side.S]
    factor = difference.factors[left]
    if difference.factors[right] != -factor or abs(factor) != 1:
        raise UsageError(
            f"Part {part.toString()!r} of the condition compares no difference of "
            f"{left.name!r} and {right.name!r}, but another sum; only differences have bounds."
        )
    if factor < 0:
        difference, kind = Linear({}).plus(difference, -1), _OPPOSITE[kind]
    # left - right + constant is compared with zero.
    limit = Linear({}, -difference.constant, difference.is_duration).bound()
    if kind in ("LessThan", "GreaterThan"):
        limit = _beside(limit, left, right, part, -1 if kind == "LessThan" else 1)
    low = None if kind.startswith("LessThan") else limit
    high = None if kind.startswith("GreaterThan") else limit
    return (left.name, right.name), _Bounds(low, high)


def _beside(
    limit: int | Fraction | Duration, left: Attribute, right: Attribute, part: Any, factor: int
) -> int | Fraction | Duration:
    """Return the next difference below or above a limit that is excluded."""
    steps = [_STEPS[kind.type] for kind in (left, right) if kind.type in _STEPS]
    if len(steps) < 2 or isinstance(limit, Fraction):
        raise UsageError(
            f"Part {part.toString()!r} of the condition excludes its bound, and there is no next "
            f"number to {left.type}; write <= or >=."
        )
    step = min(steps, key=_size)
    if isinstance(step, Duration):
        return Duration(int(_size(limit)) + factor * step.nanoseconds)
    return limit + factor * step  # type: ignore[operator]

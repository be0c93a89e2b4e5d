# SPDX-License-Identifier: Apache-2.0
"""Read a condition, a Column of Spark, as the terms of a join.

Spark analyses the condition as that of its own join, which runs nothing. So names and aliases mean
what they mean there. Every part that the condition joins by AND must compare a column of the left
input with one of the right: be equal, or differ by so much at most.
"""

from collections.abc import Iterator, Sequence
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
from spark_offload.catalyst import analysed, children, kind_of
from spark_offload.cluster import is_connect
from spark_offload.conditions.linear import Attribute, Linear, linear
from spark_offload.layout.columns import check_frame

__all__ = ["split_conditions", "terms_of"]

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

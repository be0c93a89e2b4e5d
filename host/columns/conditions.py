# SPDX-License-Identifier: Apache-2.0
"""Conditions over columns: checked against their types, and evaluated on pairs of rows.

Integers, decimals and times are computed with exactly, in whatever size they come to; floats as
doubles are. NaN equals NaN and is above all numbers, as in Spark. A condition has three values, as
in SQL: what compares a null is neither true nor false.
"""

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce
from math import gcd
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from host.arrays import Bools
from host.columns.fields import TermTypes, bounds_of
from host.columns.kinds import (
    ColumnType,
    Kind,
    column_type,
    common_tick,
    doubles,
    integer_view,
    validity,
)
from host.errors import ExpressionError, UsageError
from host.expressions import INT64, OPERATIONS, Interval, range_of_call
from host.query.conditions import Condition, column_of, expression_error, number_of
from host.query.quantities import parse_duration

__all__ = [
    "BoundCondition",
    "Part",
]


# The condition as a tree of typed parts, which say how they are computed.

_NUMBERS = (Kind.INTEGER, Kind.DECIMAL)
_POINTS = (Kind.DATE, Kind.TIMESTAMP, Kind.INSTANT, Kind.TIME)
_TEXTS = (Kind.TEXT, Kind.BINARY)
#: What Arrow compares, and nothing computes with.
_IN_ARROW = (*_TEXTS, Kind.WIDE_DECIMAL)
_NONE = Interval(0, 0)
_UNLIMITED = Interval(-(1 << 512), 1 << 512)


@dataclass(frozen=True)
class Part:
    """A part of a condition with its type.

    Parameters
    ----------
    operation : str
        ``"column"``, ``"constant"``, ``"+"``, ``"-"``, ``"*"``, ``"%"`` by a constant, ``"abs"``,
        ``"min"``, ``"max"``, a comparison such as ``"<="``, ``"&"``, ``"|"``, ``"not"``, or
        ``"true"`` of a column of truth values.
    operands : tuple of Part
        What it is computed of; of numbers that are compared or added, all in one unit.
    kind : Kind or None
        What its value measures; None for a truth.
    unit : Fraction
        Of an exact value, which is a whole number of units: in ones for numbers, in nanoseconds for
        times.
    range : Interval
        Holds every exact value that the types of the columns allow, in units.
    value : object
        Of a constant; in units if it is exact.
    column : (int, ColumnType) or None
        Side and type of a column.
    factor : int
        What the value of a column or an operation is multiplied by, to be in the unit.
    """

    operation: str
    operands: tuple["Part", ...] = ()
    kind: Kind | None = None
    unit: Fraction = Fraction(1)
    range: Interval = _NONE
    value: Any = None
    column: tuple[int, ColumnType] | None = None
    factor: int = 1

    @property
    def is_exact(self) -> bool:
        """Whether the value is a whole number of units."""
        return self.kind is not None and self.kind not in (Kind.FLOAT, *_IN_ARROW)

    def in_unit(self, unit: Fraction) -> "Part":
        """Return the part in a unit that divides its own."""
        factor = self.unit / unit
        assert factor.denominator == 1
        times = int(factor)
        if times == 1:
            return self
        value = self.value * times if self.operation == "constant" else self.value
        scaled = Interval(self.range.low * times, self.range.high * times)
        return replace(self, unit=unit, range=scaled, value=value, factor=self.factor * times)


class _Typing:
    """Turns the tree of a condition into typed parts, or raises for what has no type."""

    def __init__(self, condition: Condition, schemas: tuple[pa.Schema, pa.Schema]) -> None:
        self._condition = condition
        self._schemas = schemas

    def _refuse(self, node: ast.expr, rule: str, remedy: str) -> ExpressionError:
        return expression_error(self._condition, node, rule, remedy)

    def truth(self, node: ast.expr) -> Part:
        """Return a part that is true, false or neither."""
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.BitAnd, ast.BitOr)):
            joint = "&" if isinstance(node.op, ast.BitAnd) else "|"
            return Part(joint, (self.truth(node.left), self.truth(node.right)))
        if isinstance(node, ast.Compare):
            right = node.comparators[0]
            if isinstance(node.ops[0], ast.Eq) and number_of(right) == 0 and self._is_truth(node):
                return Part("not", (self.truth(node.left),))
            return self._compared(node, OPERATIONS[type(node.ops[0])].sign, node.left, right)
        part = self.value(node)
        if part.kind is not Kind.BOOLEAN:
            raise self._refuse(
                node, f"{ast.unparse(node)} is {_shown(part)}, no condition", "compare it"
            )
        return Part("true", (part,))

    def _is_truth(self, node: ast.Compare) -> bool:
        """Return whether what is compared with 0 is a truth, so that the comparison is ``not``."""
        left = node.left
        if isinstance(left, ast.BinOp):
            return isinstance(left.op, (ast.BitAnd, ast.BitOr))
        if isinstance(left, ast.Compare):
            return True
        return column_of(left) is not None and self.value(left).kind is Kind.BOOLEAN

    def _compared(self, node: ast.expr, sign: str, *sides: ast.expr) -> Part:
        parts = self._alike(node, [self.value(side) for side in sides], sides)
        if parts[0].kind is Kind.BOOLEAN and sign not in ("==", "!="):
            raise self._refuse(node, "truth values have no order", "compare them with == or !=")
        return Part(sign, tuple(parts))

    def value(self, node: ast.expr) -> Part:
        """Return a part that is a number, a time, a text or the like."""
        number = number_of(node)
        if number is not None:
            unit = Fraction(1, Fraction(number).denominator)
            size = int(number / unit)
            kind = Kind.INTEGER if unit == 1 else Kind.DECIMAL
            return Part("constant", (), kind, unit, Interval(size, size), size)
        if isinstance(node, ast.Constant):
            return Part("constant", (), Kind.TEXT, value=node.value)
        found = column_of(node)
        if found is not None:
            return self._column(node, *found)
        if isinstance(node, ast.UnaryOp):
            zero = Part("constant", (), Kind.INTEGER, value=0)
            return self._subtracted(node, zero, self.value(node.operand), is_sign=True)
        if isinstance(node, ast.BinOp):
            left, right = self.value(node.left), self.value(node.right)
            if isinstance(node.op, ast.Mult):
                return self._multiplied(node, left, right)
            if isinstance(node.op, ast.Sub):
                return self._subtracted(node, left, right)
            if isinstance(node.op, ast.Add):
                return self._added(node, left, right)
            if isinstance(node.op, ast.Mod):
                return self._remainder(node, left, right)
        if isinstance(node, ast.Call):
            return self._called(node)
        raise self._refuse(
            node, f"{ast.unparse(node)} is a condition, no value", "join conditions with and, or"
        )

    def _column(self, node: ast.expr, side: int, name: str) -> Part:
        try:
            kind = column_type(self._schemas[side], name, ("left", "right")[side])
        except UsageError as error:
            rule, _, remedy = str(error).rstrip(".").partition("; ")
            raise self._refuse(node, rule, remedy or "name another column") from error
        return _column(side, kind)

    def _added(self, node: ast.expr, left: Part, right: Part) -> Part:
        left, right = self._lengths(node, left, right)
        kinds = {left.kind, right.kind}
        points = [part.kind for part in (left, right) if part.kind in _POINTS]
        if points and (len(points) > 1 or Kind.DURATION not in kinds):
            raise self._refuse(
                node,
                f"{ast.unparse(_sides(node)[0])} and {ast.unparse(_sides(node)[1])} have no sum",
                "add a duration, such as '5s', to a time",
            )
        if not points:
            left, right = self._alike(node, [left, right], _sides(node))
        both = _in_one_unit(left, right)
        bounds = both[0].range + both[1].range
        return self._computed(node, "+", both, points[0] if points else left.kind, bounds)

    def _subtracted(
        self, node: ast.expr, left: Part, right: Part, *, is_sign: bool = False
    ) -> Part:
        if is_sign and right.kind in (Kind.FLOAT, Kind.DURATION):
            left = replace(left, kind=right.kind, value=0.0 if right.kind is Kind.FLOAT else 0)
        left, right = self._lengths(node, left, right)
        kind = left.kind
        if left.kind in _POINTS and right.kind is not Kind.DURATION:
            left, right = self._alike(node, [left, right], _sides(node))
            kind = Kind.DURATION
        elif left.kind not in _POINTS:
            left, right = self._alike(node, [left, right], _sides(node))
            kind = left.kind
        both = _in_one_unit(left, right)
        return self._computed(node, "-", both, kind, both[0].range - both[1].range)

    def _multiplied(self, node: ast.expr, left: Part, right: Part) -> Part:
        kind = left.kind
        if Kind.DURATION in (left.kind, right.kind):
            other = right if left.kind is Kind.DURATION else left
            if other.kind not in _NUMBERS:
                raise self._refuse(
                    node,
                    f"a duration is not multiplied by {_shown(other)}",
                    "multiply it by a whole number or a decimal",
                )
            kind = Kind.DURATION
        else:
            left, right = self._alike(node, [left, right], _sides(node), one_unit=False)
            kind = left.kind
            if kind in _POINTS:
                raise self._refuse(node, "times are not multiplied", "multiply a difference")
        made = self._computed(node, "*", (left, right), kind, left.range * right.range)
        return replace(made, unit=left.unit * right.unit)

    def _remainder(self, node: ast.expr, left: Part, right: Part) -> Part:
        """Return what a value is beyond a multiple of a constant: of times, since 1970-01-01."""
        left, right = self._lengths(node, left, right)
        kind = left.kind
        if kind in _POINTS and right.kind is Kind.DURATION:
            kind = Kind.DURATION
        elif not {kind, right.kind} <= set(_NUMBERS) and not kind is right.kind is Kind.DURATION:
            raise self._refuse(
                node,
                f"{ast.unparse(_sides(node)[0])} is {_shown(left)}, which has no remainder by "
                f"{_shown(right)}",
                "take it of whole numbers or decimals by a number, or of times by a duration",
            )
        if right.value < 1:
            raise self._refuse(node, "a remainder is by a duration above 0", "write a longer one")
        both = _in_one_unit(left, right)
        return self._computed(node, "%", both, kind, Interval(0, both[1].value - 1))

    def _called(self, node: ast.Call) -> Part:
        name = ast.unparse(node.func)
        parts = self._alike(node, [self.value(one) for one in node.args], node.args)
        if name == "abs" and parts[0].kind in _POINTS:
            raise self._refuse(node, "a time has no size", "take a difference of times")
        bounds = range_of_call(name, [part.range for part in parts])
        return self._computed(node, name, tuple(parts), parts[0].kind, bounds)

    def _computed(
        self,
        node: ast.expr,
        operation: str,
        parts: tuple[Part, ...],
        kind: Kind | None,
        bounds: Interval,
    ) -> Part:
        """Return an operation on values, unless there is none on values of their kind."""
        for part in parts:
            if part.kind in (*_TEXTS, Kind.BOOLEAN):
                raise self._refuse(
                    node, f"{_shown(part)} is not computed with", "compare it, or cast it"
                )
        if not _UNLIMITED.holds(bounds):
            raise self._refuse(node, "its values can have more than 512 bits", "multiply less")
        return Part(operation, parts, kind, parts[0].unit, bounds)

    def _lengths(self, node: ast.expr, left: Part, right: Part) -> tuple[Part, Part]:
        """Return both parts, a text beside a time as the duration that it is."""
        both = [left, right]
        for at in (0, 1):
            if both[at].operation == "constant" and both[at].kind is Kind.TEXT:
                other = both[1 - at].kind
                if other in (*_POINTS, Kind.DURATION):
                    both[at] = self._duration(_sides(node)[at], both[at])
        return both[0], both[1]

    def _duration(self, node: ast.expr, part: Part) -> Part:
        try:
            size = parse_duration(part.value).nanoseconds
        except UsageError as error:
            rule, _, remedy = str(error).rstrip(".").partition("; ")
            raise self._refuse(node, rule, remedy or "write a duration") from error
        return Part("constant", (), Kind.DURATION, Fraction(1), Interval(size, size), size)

    def _alike(
        self,
        node: ast.expr,
        parts: list[Part],
        sides: Sequence[ast.expr],
        *,
        one_unit: bool = True,
    ) -> list[Part]:
        """Return parts as values of one kind, which can be compared; constants take that kind."""
        kinds = [part.kind for part in parts if part.operation != "constant"]
        model = next(iter(kinds), parts[0].kind)
        parts = [
            self._as_kind(side, part, model) if part.operation == "constant" else part
            for side, part in zip(sides, parts, strict=True)
        ]
        first = parts[0]
        for side, part in zip(sides[1:], parts[1:], strict=True):
            if part.kind is not first.kind and not {part.kind, first.kind} <= set(_NUMBERS):
                raise self._refuse(
                    node,
                    f"{ast.unparse(sides[0])} is {_shown(first)}, {ast.unparse(side)} is "
                    f"{_shown(part)}",
                    "compare and compute values of one kind, or cast one of the columns",
                )
        return list(_in_one_unit(*parts)) if one_unit else parts

    def _as_kind(self, node: ast.expr, part: Part, kind: Kind | None) -> Part:
        """Return a constant as a value of a kind, if it can be one."""
        if kind is Kind.FLOAT and part.kind in _NUMBERS:
            return Part("constant", (), kind, value=float(part.value * part.unit))
        if kind is Kind.DURATION and part.value == 0:
            return replace(part, kind=kind)
        if kind is Kind.BOOLEAN and part.value in (0, 1) and part.kind is Kind.INTEGER:
            return replace(part, kind=kind)
        if part.kind is not Kind.TEXT or kind is Kind.TEXT:
            return part
        if kind is Kind.DURATION:
            return self._duration(node, part)
        if kind is Kind.BINARY:
            return replace(part, kind=kind, value=part.value.encode())
        if kind in _POINTS:
            return self._point(node, part, kind)
        return part

    def _point(self, node: ast.expr, part: Part, kind: Kind | None) -> Part:
        """Return the date or time that a text is."""
        types = {
            Kind.DATE: [pa.date32()],
            Kind.TIMESTAMP: [pa.timestamp("us"), pa.timestamp("ns")],
            Kind.INSTANT: [pa.timestamp("us", "UTC"), pa.timestamp("ns", "UTC")],
            Kind.TIME: [pa.timestamp("ns")],  # of the first day
        }
        assert kind is not None
        written = f"1970-01-01 {part.value}" if kind is Kind.TIME else part.value
        for dtype in types[kind]:
            try:
                array = pa.array([written]).cast(dtype)
            except pa.ArrowInvalid:
                continue
            read = column_type(pa.schema([("", dtype)]), "", "left")
            size = int(integer_view(array)[0])
            return Part("constant", (), kind, Fraction(read.tick), Interval(size, size), size)
        example = {
            Kind.DATE: "2024-01-31",
            Kind.TIMESTAMP: "2024-01-31 12:30:00",
            Kind.INSTANT: "2024-01-31 12:30:00Z",
            Kind.TIME: "12:30:00",
        }
        raise self._refuse(
            node, f"{part.value!r} is no {kind.value}", f"write one such as '{example[kind]}'"
        )


def _column(side: int, kind: ColumnType) -> Part:
    """Return a column of the left or of the right rows."""
    if kind.kind is Kind.DECIMAL:
        unit = Fraction(10) ** -kind.dtype.scale
        most = 10**kind.dtype.precision - 1
        bounds = Interval(-most, most)
    elif kind.kind in (Kind.FLOAT, *_IN_ARROW):
        return Part("column", (), kind.kind, column=(side, kind))
    else:
        unit = Fraction(kind.tick)
        bounds = Interval(*kind.limits)
    return Part("column", (), kind.kind, unit, bounds, column=(side, kind))


def _size(value: Any, kind: Kind | None, unit: Fraction) -> Part:
    """Return a number of units as a constant."""
    if kind is Kind.FLOAT:
        return Part("constant", (), kind, value=float(value))
    return Part("constant", (), kind, unit, Interval(value, value), value)


def _ends(term: TermTypes) -> tuple[Any, Any]:
    """Return the bounds of a term: doubles, or in the common unit of its columns."""
    if term.is_float_difference:
        return term.term.low, term.term.high
    bounds = bounds_of(term, common_tick(*term.columns)[0], 1)
    return bounds.low, bounds.high


def _sides(node: ast.expr) -> tuple[ast.expr, ast.expr]:
    """Return the two parts of an operation; of a sign, what it stands before twice."""
    if isinstance(node, ast.BinOp):
        return node.left, node.right
    assert isinstance(node, ast.UnaryOp)
    return node.operand, node.operand


def _in_one_unit(*parts: Part) -> tuple[Part, ...]:
    """Return exact parts in their greatest common unit, others as they are."""
    if not all(part.is_exact for part in parts):
        return parts
    unit = reduce(_common, (part.unit for part in parts))
    return tuple(part.in_unit(unit) for part in parts)


def _common(one: Fraction, other: Fraction) -> Fraction:
    return Fraction(
        gcd(one.numerator * other.denominator, other.numerator * one.denominator),
        one.denominator * other.denominator,
    )


def _shown(part: Part) -> str:
    """Return what a message calls the value of a part."""
    if part.column is not None:
        return f"of type {part.column[1].dtype}"
    kind = part.kind
    if kind is Kind.TEXT:
        return "a text"
    article = "an" if kind in (Kind.INTEGER, Kind.INSTANT) else "a"
    return f"{article} {'' if kind is None else kind.value}"


# Evaluate a condition on many pairs: arrays in, which pairs fulfil it out.

_EXACT: dict[str, Callable[..., Any]] = {
    one.sign: one.compute for kind, one in OPERATIONS.items() if not issubclass(kind, ast.unaryop)
} | {"min": np.minimum, "max": np.maximum}
_OF_ENDS: dict[str, Callable[[Any, Any], Any]] = {"min": min, "max": max}  # of Python's integers
_FLOAT = _EXACT | {"min": np.fmin}  # NaN is above all numbers
_OF_TEXTS: dict[str, Callable[[Any, Any], Any]] = {
    "==": pc.equal, "!=": pc.not_equal, "<": pc.less, "<=": pc.less_equal, ">": pc.greater,
    ">=": pc.greater_equal,
}  # fmt: skip


@dataclass(frozen=True)
class _Values:
    """Values of a part in some pairs.

    Parameters
    ----------
    values : array, or Arrow array
        The values; that of a null is undefined.
    valid : array of bool or None
        Which are not null; None if none is.
    low, high : int
        Bounds of exact values, as they are here.
    """

    values: Any
    valid: Bools | None = None
    low: int = 0
    high: int = 0


@dataclass(frozen=True)
class BoundCondition:
    """A condition on rows of two schemas; make one with :meth:`of`.

    Parameters
    ----------
    text : str
        The condition.
    root : Part
        Its typed parts.
    places : (tuple of int, tuple of int)
        Positions of the columns that it reads among those of the left and of the right rows.
    names : (tuple of str, tuple of str)
        Their names.
    """

    text: str
    root: Part
    places: tuple[tuple[int, ...], tuple[int, ...]]
    names: tuple[tuple[str, ...], tuple[str, ...]]

    @classmethod
    def of(cls, condition: Condition, left: pa.Schema, right: pa.Schema) -> "BoundCondition":
        """Check a condition against the columns of both sides.

        Raises
        ------
        ExpressionError
            If a column is missing, or types do not go together; the error shows the place.
        """
        root = _Typing(condition, (left, right)).truth(condition.tree)
        read = set(condition.columns())
        names = tuple(
            tuple(name for name in schema.names if (side, name) in read)
            for side, schema in enumerate((left, right))
        )
        places = tuple(
            tuple(map(schema.get_field_index, named))
            for schema, named in zip((left, right), names, strict=True)
        )
        return cls(condition.text, root, (places[0], places[1]), (names[0], names[1]))

    @classmethod
    def of_term(cls, term: TermTypes, left: pa.Schema, right: pa.Schema) -> "BoundCondition":
        """Return a term of a query as a condition, for an accelerator that compares it roughly.

        As in Spark, the difference of doubles is compared with the bounds, and NaN is above all
        numbers.
        """
        columns = _in_one_unit(*(_column(side, one) for side, one in enumerate(term.columns)))
        kind, unit = columns[0].kind, columns[0].unit
        if term.left.kind.is_coded and not term.is_float_difference:
            tests = [Part("==", columns)]
        else:
            difference = Part("-", columns, kind, unit, columns[0].range - columns[1].range)
            tests = [
                Part(sign, (difference, _size(bound, kind, unit)))
                for sign, bound in zip((">=", "<="), _ends(term), strict=True)
                if bound is not None
            ]
        zero = _size(0, kind, unit)
        root = reduce(
            lambda one, other: Part("&", (one, other)), tests or [Part("==", (zero, zero))]
        )
        names = tuple((column.column,) for column in term.columns)
        places = (left.get_field_index(names[0][0]),), (right.get_field_index(names[1][0]),)
        return cls(str(term.term), root, places, (names[0], names[1]))

    def holds(self, left: Sequence[pa.Array], right: Sequence[pa.Array]) -> Bools:
        """Return for which pairs the condition is true.

        Parameters
        ----------
        left, right : sequence of array
            The columns at :attr:`places`, with a row for each pair.
        """
        arrays = {
            (side, name): array
            for side, columns in enumerate((left, right))
            for name, array in zip(self.names[side], columns, strict=True)
        }
        holds, _ = _Evaluation(arrays).truth(self.root)
        return np.broadcast_to(holds, len(next(iter(arrays.values()))))


class _Evaluation:
    """One evaluation of a condition: its columns are read once, however often it names them."""

    def __init__(self, arrays: dict[tuple[int, str], pa.Array]) -> None:
        self._arrays = arrays
        self._read: dict[tuple[int, str], _Values] = {}
        self._known: dict[int, _Values] = {}  # of parts, which may be compared with two bounds

    def truth(self, part: Part) -> tuple[Bools, Bools]:
        """Return where a part is true, and where it is false; where neither, a null decides."""
        if part.operation in ("&", "|"):
            (one, not_one), (other, not_other) = map(self.truth, part.operands)
            if part.operation == "&":
                return one & other, not_one | not_other
            return one | other, not_one & not_other
        if part.operation == "not":
            holds, fails = self.truth(part.operands[0])
            return fails, holds
        if part.operation == "true":
            found = self.value(part.operands[0])
            return _known(found.values != 0, found.valid)
        left, right = map(self.value, part.operands)
        return _known(self._compared(part, left.values, right.values), _valid(left, right))

    @staticmethod
    def _compared(part: Part, left: Any, right: Any) -> Bools:
        kind = part.operands[0].kind
        if kind in _IN_ARROW:
            held = _OF_TEXTS[part.operation](left, right)
            found: Bools = np.asarray(pc.fill_null(held, False))
            return found
        if kind is not Kind.FLOAT:
            return np.asarray(_EXACT[part.operation](left, right), np.bool_)
        sign = part.operation
        if sign in (">", ">="):
            left, right, sign = right, left, sign.replace(">", "<")
        none = np.isnan(left), np.isnan(right)
        if sign in ("==", "!="):
            equal = (left == right) | (none[0] & none[1])
            return equal if sign == "==" else ~equal
        return (left < right) | (~none[0] & none[1]) if sign == "<" else (left <= right) | none[1]

    def value(self, part: Part) -> _Values:
        """Return the values of a part."""
        if part.operation == "constant":
            return _constant(part)
        if id(part) not in self._known:
            found = self._computed(part) if part.column is None else self._column(*part.column)
            if part.factor != 1:
                found = _exactly("*", found, _Values(part.factor, None, part.factor, part.factor))
            self._known[id(part)] = found
        return self._known[id(part)]

    def _column(self, side: int, kind: ColumnType) -> _Values:
        key = side, kind.column
        if key not in self._read:
            self._read[key] = _read(self._arrays[key], kind)
        return self._read[key]

    def _computed(self, part: Part) -> _Values:
        values = [self.value(one) for one in part.operands]
        if part.operation == "abs":
            (one,) = values
            if part.kind is Kind.FLOAT:
                return _Values(abs(one.values), one.valid)
            # The least number of 64 bits has no positive counterpart in them.
            opposite = _exactly("-", _Values(0), one)
            return _exactly("max", one, opposite)
        if part.kind is not Kind.FLOAT:
            return reduce(lambda one, other: _exactly(part.operation, one, other), values)
        with np.errstate(invalid="ignore", over="ignore"):
            made = reduce(_FLOAT[part.operation], (one.values for one in values))
        return _Values(made, _valid(*values))


def _known(held: Bools, valid: Bools | None) -> tuple[Bools, Bools]:
    return (held, ~held) if valid is None else (held & valid, ~held & valid)


def _valid(*values: _Values) -> Bools | None:
    masks = [one.valid for one in values if one.valid is not None]
    return np.logical_and.reduce(masks) if masks else None


def _constant(part: Part) -> _Values:
    if part.kind in _TEXTS:
        kind = pa.large_string() if part.kind is Kind.TEXT else pa.large_binary()
        return _Values(pa.scalar(part.value, kind))
    if part.kind is Kind.FLOAT:
        return _Values(np.float64(part.value))
    return _Values(int(part.value), None, part.range.low, part.range.high)


def _read(array: pa.Array, kind: ColumnType) -> _Values:
    """Return the values of a column."""
    if kind.kind in _IN_ARROW:
        array = kind.comparable(array)
        return _Values(array, validity(array))
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if kind.kind is Kind.FLOAT:
        return _Values(doubles(array), validity(array))
    if kind.is_wide:
        # More digits than 64 bits hold.
        ten = Fraction(10) ** kind.dtype.scale
        sizes = [0 if one is None else int(Fraction(one) * ten) for one in array.to_pylist()]
        values = np.array(sizes, object)
        return _Values(values, validity(array), min(sizes, default=0), max(sizes, default=0))
    array = kind.comparable(array)
    view, valid = integer_view(array), validity(array)
    if valid is not None:
        view = np.where(valid, view, view.dtype.type(0))
    low, high = (int(view.min()), int(view.max())) if len(view) else (0, 0)
    return _Values(view.astype(np.int64 if high <= INT64.high else object), valid, low, high)


def _exactly(operation: str, one: _Values, other: _Values) -> _Values:
    """Return an operation on whole numbers, of 64 bits if these hold it, else of Python's own."""
    ends = [
        _OF_ENDS.get(operation, _EXACT[operation])(mine, theirs)
        for mine in (one.low, one.high)
        for theirs in (other.low, other.high)
    ]
    low, high = (0, other.high - 1) if operation == "%" else (min(ends), max(ends))
    values = [one.values, other.values]
    if min(low, one.low, other.low) < INT64.low or max(high, one.high, other.high) > INT64.high:
        values = [np.asarray(each, object) for each in values]
    made = _EXACT[operation](*values)
    return _Values(made, _valid(one, other), low, high)

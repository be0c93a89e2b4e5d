# SPDX-License-Identifier: Apache-2.0
"""Expressions: one text for hardware, NumPy and Python, in what they share of Python's language.

The expressions of operators are of integers, and are here. Those of a condition on two rows, which
are of columns of any type, are :mod:`host.query.conditions`.
"""

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, time, timedelta
from decimal import Decimal
from functools import reduce
import operator
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from host.errors import ExpressionError

__all__ = [
    "Canonical",
    "Expression",
    "FUNCTIONS",
    "INT64",
    "Interval",
    "OPERATIONS",
    "Operation",
    "Record",
    "Source",
    "Symbol",
    "canonical",
    "differences",
    "dotted",
    "evaluate",
    "interval",
    "is_truth",
    "maximum",
    "minimum",
    "parsed",
    "place_in",
    "range_of_call",
    "text_of",
    "where",
]

T = TypeVar("T")

# The language of expressions: the part of Python that integers, arrays and circuits share.
#
# Python's own parser and printer are used, so a text means what it means in Python. A comparison
# is 0 or 1. What Python, NumPy and a circuit would answer differently is either left out, such as
# ``and``, or rewritten here: ``~`` of a comparison becomes ``== 0``, ``x if c else y`` becomes
# ``where``.


class Operation(NamedTuple):
    """An operator of the language.

    Parameters
    ----------
    sign : str
        How a text writes it.
    compute : callable
        What it is of integers and of int64 arrays.
    traced : np.ufunc
        What NumPy calls it of symbols.
    """

    sign: str
    compute: Callable[..., Any]
    traced: np.ufunc


#: Operators that a text may contain, as Python's parser names them.
OPERATIONS: dict[type[ast.AST], Operation] = {
    ast.Add: Operation("+", operator.add, np.add),
    ast.Sub: Operation("-", operator.sub, np.subtract),
    ast.Mult: Operation("*", operator.mul, np.multiply),
    ast.FloorDiv: Operation("//", operator.floordiv, np.floor_divide),
    ast.Mod: Operation("%", operator.mod, np.remainder),
    ast.BitAnd: Operation("&", operator.and_, np.bitwise_and),
    ast.BitOr: Operation("|", operator.or_, np.bitwise_or),
    ast.BitXor: Operation("^", operator.xor, np.bitwise_xor),
    ast.LShift: Operation("<<", operator.lshift, np.left_shift),
    ast.RShift: Operation(">>", operator.rshift, np.right_shift),
    ast.USub: Operation("-", operator.neg, np.negative),
    ast.Invert: Operation("~", operator.invert, np.invert),
    ast.Eq: Operation("==", operator.eq, np.equal),
    ast.NotEq: Operation("!=", operator.ne, np.not_equal),
    ast.Lt: Operation("<", operator.lt, np.less),
    ast.LtE: Operation("<=", operator.le, np.less_equal),
    ast.Gt: Operation(">", operator.gt, np.greater),
    ast.GtE: Operation(">=", operator.ge, np.greater_equal),
}


def _signs() -> str:
    return " ".join(sorted({one.sign for one in OPERATIONS.values()}))


#: Functions that a text may call, with the least and the largest number of their arguments.
FUNCTIONS = {"abs": (1, 1), "max": (2, 8), "min": (2, 8), "where": (3, 3)}

#: Longest text, so that neither the parser nor a circuit is asked for the impossible.
_LONGEST = 4_000

#: What people write by habit, and what to write instead.
_REMEDIES: dict[type[ast.AST], str] = {
    ast.And: "join conditions with &, each in parentheses",
    ast.Or: "join conditions with |, each in parentheses",
    ast.Not: "write ~(condition), or compare with 0",
    ast.Div: "use // with a positive number, or give an output its divisor with `per`",
    ast.Pow: "multiply",
}


def canonical(text: str) -> ast.expr:
    """Return the tree of ``text``, checked and in its canonical form.

    Raises
    ------
    ExpressionError
        If ``text`` is no expression of the language.
    """
    text = text.strip()
    return Canonical(text).visit(parsed(text))


def parsed(text: str) -> ast.expr:
    """Return the tree of ``text`` as Python's parser has it.

    Raises
    ------
    ExpressionError
        If ``text`` is no expression of Python, or longer than any should be.
    """
    if len(text) > _LONGEST:
        raise ExpressionError(
            f"{text[:40]}…", f"it has {len(text)} characters, of {_LONGEST} at most", "split it up"
        )
    try:
        return ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        reason = getattr(error, "msg", None) or str(error)
        place = None
        if isinstance(error, SyntaxError) and error.lineno == 1 and error.offset:
            place = (error.offset - 1, max(error.end_offset or 0, error.offset + 1) - 1)
        raise ExpressionError(
            text, f"it is no Python expression ({reason})", "correct it", place
        ) from error


def place_in(text: str, node: ast.expr) -> tuple[int, int] | None:
    """Return where a part of a text begins and ends; None if that is unknown, or all of it."""
    if getattr(node, "end_col_offset", None) is None or getattr(node, "end_lineno", 2) != 1:
        return None
    # The parser counts bytes.
    begin, end = (
        len(text.encode()[:offset].decode()) for offset in (node.col_offset, node.end_col_offset)
    )
    return None if end - begin >= len(text) else (begin, end)


def dotted(node: ast.expr) -> str | None:
    """Return the name that a node is, such as ``"x"`` or ``"l.x"``; None if it is none."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return f"{node.value.id}.{node.attr}"
    return None


def is_truth(node: ast.expr) -> bool:
    """Return whether a node of a canonical tree is 0 or 1 because it is made of comparisons."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.BitAnd, ast.BitOr, ast.BitXor)):
        return is_truth(node.left) and is_truth(node.right)
    return isinstance(node, ast.Compare)


class Canonical(ast.NodeVisitor):
    """Rewrite a tree to its canonical form, or raise for what is not in the language.

    Each part of the new tree keeps its place in the text.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._at: ast.AST | None = None  # the part that is visited

    def visit(self, node: ast.AST) -> Any:
        outer, self._at = self._at, node
        made = super().visit(node)
        self._at = outer
        return ast.copy_location(made, node)

    def _refuse(self, rule: str, remedy: str) -> ExpressionError:
        place = place_in(self._text, self._at) if isinstance(self._at, ast.expr) else None
        return ExpressionError(self._text, rule, remedy, place)

    def _operator(self, operator: ast.AST) -> None:
        if type(operator) not in OPERATIONS:
            raise self._refuse(
                f"{type(operator).__name__} is not in the language",
                _REMEDIES.get(type(operator), f"use {_signs()}"),
            )

    def generic_visit(self, node: ast.AST) -> ast.expr:
        raise self._refuse(
            f"{type(node).__name__} is not in the language",
            "use integers, names of fields, operators, comparisons and "
            f"{', '.join(sorted(FUNCTIONS))}",
        )

    def visit_Name(self, node: ast.Name) -> ast.expr:  # ruff's names of visitors are Python's
        if node.id in FUNCTIONS:
            raise self._refuse(
                f"{node.id!r} is a function, not a value", "call it, or rename the field"
            )
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        if dotted(node) is None:
            raise self._refuse("an attribute of an expression has no meaning", "name a field")
        return node

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        if not isinstance(node.value, int):
            raise self._refuse(f"{node.value!r} is no integer", "write an integer")
        return ast.Constant(int(node.value))

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        operand: ast.expr = self.visit(node.operand)
        if isinstance(node.op, ast.UAdd):
            return operand
        self._operator(node.op)
        if isinstance(node.op, ast.Invert) and is_truth(operand):
            return ast.Compare(operand, [ast.Eq()], [ast.Constant(0)])
        return ast.UnaryOp(node.op, operand)

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        self._operator(node.op)
        right = self.visit(node.right)
        if isinstance(node.op, (ast.FloorDiv, ast.Mod)) and not _is_number(right, 1, 1 << 62):
            raise self._refuse(
                f"{OPERATIONS[type(node.op)].sign} needs a positive number on its right",
                "divide by a number, or give an output its divisor with `per`",
            )
        if isinstance(node.op, (ast.LShift, ast.RShift)) and not _is_number(right, 0, 63):
            raise self._refuse(
                f"{OPERATIONS[type(node.op)].sign} needs a number from 0 to 63 on its right",
                "shift by a number",
            )
        return ast.BinOp(self.visit(node.left), node.op, right)

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        self._operator(node.op)
        raise AssertionError("no Boolean operator is in the language")

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        if len(node.ops) > 1:
            raise self._refuse(
                "a chain of comparisons is not in the language",
                "join two comparisons with &, each in parentheses",
            )
        self._operator(node.ops[0])
        return ast.Compare(self.visit(node.left), node.ops, [self.visit(node.comparators[0])])

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        parts = [self.visit(part) for part in (node.test, node.body, node.orelse)]
        return ast.Call(ast.Name("where"), parts, [])

    def visit_Call(self, node: ast.Call) -> ast.expr:
        name = node.func.id if isinstance(node.func, ast.Name) else ast.unparse(node.func)
        if name not in FUNCTIONS:
            raise self._refuse(
                f"function {name!r} is not in the language", f"use {', '.join(sorted(FUNCTIONS))}"
            )
        least, most = FUNCTIONS[name]
        starred = any(isinstance(argument, ast.Starred) for argument in node.args)
        if node.keywords or starred or not least <= len(node.args) <= most:
            count = f"{least}" if least == most else f"{least} to {most}"
            raise self._refuse(
                f"{name} takes {count} arguments by position", f"give {name} its arguments"
            )
        return ast.Call(ast.Name(name), [self.visit(argument) for argument in node.args], [])


def _is_number(node: ast.expr, low: int, high: int) -> bool:
    return (
        isinstance(node, ast.Constant) and isinstance(node.value, int) and low <= node.value <= high
    )


# Turn a Python function into the text of an expression, by calling it with symbols.
#
# A function is not read, it is run: each operation on a :class:`Symbol` makes a longer symbol. So
# a function may use numbers, loops and other functions as it likes; only the choice between two
# values of a tuple must be said with :func:`where`, because Python's ``if`` would choose once.


#: What NumPy's operators of symbols are in a tree; what the language lacks is refused there.
_TRACED: dict[np.ufunc, type[ast.AST]] = {one.traced: kind for kind, one in OPERATIONS.items()}
_TRACED |= {np.true_divide: ast.Div, np.power: ast.Pow}


class Symbol(NDArrayOperatorsMixin):
    """A value that is not known yet; operations on it give symbols.

    Parameters
    ----------
    node : ast.expr or str
        Tree of the value, or its name.
    """

    __slots__ = ("node",)
    __hash__ = None  # type: ignore[assignment]  # == gives a symbol, so there is no equality

    def __init__(self, node: ast.expr | str) -> None:
        self.node = ast.Name(node) if isinstance(node, str) else node

    def __repr__(self) -> str:
        return ast.unparse(self.node)

    def __bool__(self) -> bool:
        raise ExpressionError(
            repr(self),
            "its value is not known while the description is made, so Python cannot decide by it",
            "use where(condition, a, b), minimum, maximum, and & | ~ for and, or, not",
        )

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        """Return the symbol of an operation, which is how the mixin has all of Python's operators.

        ``x += 1`` names ``x`` as the place of the result, which is a new symbol all the same.
        """
        if ufunc in (np.positive, np.absolute):
            return self if ufunc is np.positive else _call("abs", self)
        kind = _TRACED.get(ufunc)
        if kind is None or method != "__call__":
            raise ExpressionError(
                repr(self),
                f"NumPy's {ufunc.__name__} is not in the language",
                f"use {_signs()}, where, minimum and maximum",
            )
        made, (node, *others) = kind(), map(_node, map(_scalar, inputs))
        if isinstance(made, ast.unaryop):
            return Symbol(ast.UnaryOp(made, node))
        if isinstance(made, ast.operator):
            return Symbol(ast.BinOp(node, made, *others))
        assert isinstance(made, ast.cmpop)
        return Symbol(ast.Compare(node, [made], others))


class Record:
    """A tuple whose attributes are symbols, for functions of a tuple.

    Parameters
    ----------
    name : str, optional
        With a name, the fields are read as ``name.field``; otherwise as ``field``.
    """

    def __init__(self, name: str | None = None) -> None:
        self._name = name

    def __getattr__(self, field: str) -> Symbol:
        if field.startswith("__"):
            raise AttributeError(field)
        if self._name is None:
            return Symbol(field)
        return Symbol(ast.Attribute(ast.Name(self._name), field))

    def __getitem__(self, field: str) -> Symbol:
        return self.__getattr__(field)


def where(condition: Any, then: Any, otherwise: Any) -> Any:
    """Return ``then`` where ``condition`` is not 0, else ``otherwise``."""
    if any(isinstance(value, Symbol) for value in (condition, then, otherwise)):
        return _call("where", condition, then, otherwise)
    return then if condition else otherwise


def minimum(*values: Any) -> Any:
    """Return the least of two or more values."""
    return _call("min", *values) if _any_symbol(values) else min(values)


def maximum(*values: Any) -> Any:
    """Return the greatest of two or more values."""
    return _call("max", *values) if _any_symbol(values) else max(values)


def text_of(value: Any) -> str:
    """Return the text of what a traced function has returned."""
    return ast.unparse(_node(value))


def _any_symbol(values: tuple[Any, ...]) -> bool:
    return any(isinstance(value, Symbol) for value in values)


def _call(name: str, *arguments: Any) -> Symbol:
    return Symbol(ast.Call(ast.Name(name), [_node(argument) for argument in arguments], []))


def _scalar(value: Any) -> Any:
    """Return Python's own value of one of NumPy, which NumPy may have put into an array."""
    if isinstance(value, np.ndarray) and not value.ndim:
        value = value[()]
    plain = value.item() if isinstance(value, np.generic) else value
    # Of nanoseconds, it would be a plain number.
    is_time = isinstance(value, (np.datetime64, np.timedelta64))
    return value if is_time and isinstance(plain, int) else plain


def _node(value: Any) -> ast.expr:
    if isinstance(value, Symbol):
        return value.node
    if isinstance(value, int):
        return _signed(int(value))
    if isinstance(value, (float, Decimal)) and Decimal(repr(float(value))) == Decimal(str(value)):
        return _signed(float(value))
    if isinstance(value, str):
        return ast.Constant(value)
    if isinstance(value, timedelta):
        return ast.Constant(f"{value // timedelta(microseconds=1)}us")
    if isinstance(value, (date, time)):
        return ast.Constant(value.isoformat())
    raise ExpressionError(
        repr(value),
        f"a value of type {type(value).__name__} has no place in an expression",
        "compute with numbers and fields of the tuple, and return one value",
    )


def _signed(value: float) -> ast.expr:
    number = ast.Constant(abs(value))
    return ast.UnaryOp(ast.USub(), number) if value < 0 else number


# One expression: its canonical text, and the names that it reads.


@dataclass(frozen=True)
class Expression:
    """An integer expression; make one with :meth:`of`.

    Parameters
    ----------
    text : str
        Any text of the language. It is kept in its canonical form, so expressions that differ in
        spaces and parentheses only are equal.

    Attributes
    ----------
    names : tuple of str
        Names that the expression reads, sorted: ``"x"``, or ``"l.x"`` for a field of a tuple ``l``.
    tree : ast.expr
        Tree of the canonical text.
    """

    text: str
    names: tuple[str, ...] = field(init=False, compare=False, repr=False)
    tree: ast.expr = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        tree = canonical(self.text)
        object.__setattr__(self, "text", ast.unparse(tree))
        object.__setattr__(self, "tree", tree)
        object.__setattr__(self, "names", tuple(sorted(_names(tree))))

    @classmethod
    def of(cls, source: "Source", *arguments: Any) -> "Expression":
        """Return the expression that a text, a number or a function is.

        Parameters
        ----------
        source : str, int, Expression or callable
            A function is called once with ``arguments``, and what it does with them becomes the
            text. Numbers and tables around it are therefore used as they are at that time.
        *arguments : Symbol or Record
            Arguments for a function (:mod:`host.expressions`).

        Raises
        ------
        ExpressionError
            If the source is no expression of the language.
        """
        if isinstance(source, Expression):
            return source
        if isinstance(source, str):
            return cls(source)
        if callable(source):
            return cls(text_of(source(*arguments)))
        if isinstance(source, int):
            return cls(str(int(source)))
        raise ExpressionError(
            repr(source), "it is no expression", "give a text, an integer or a function"
        )

    def __str__(self) -> str:
        return self.text


#: What an expression may be given as.
Source: TypeAlias = str | int | Expression | Callable[..., Any]


def _names(node: ast.expr) -> set[str]:
    name = dotted(node)
    return {name} if name is not None else set().union(*map(_names, _taken_apart(node)[1]))


def _taken_apart(node: ast.expr) -> tuple[type[ast.AST] | str, Sequence[ast.expr]]:
    """Return the operator or function of a part of a tree, and its operands; numbers have none."""
    match node:
        case ast.UnaryOp():
            return type(node.op), [node.operand]
        case ast.BinOp():
            return type(node.op), [node.left, node.right]
        case ast.Compare():
            return type(node.ops[0]), [node.left, *node.comparators]
        case ast.Call(func=ast.Name(name)):
            return name, node.args
    return "", []


def _known(name: str, known: Mapping[str, T], expression: Expression) -> T:
    """Return what is known of a name that an expression reads."""
    if name not in known:
        names = ", ".join(sorted(known)) or "none"
        raise ExpressionError(
            expression.text, f"there is no {name!r} here", f"the names are: {names}"
        )
    return known[name]


# Evaluate expressions on Python integers and on NumPy arrays.


def evaluate(expression: Expression, values: Mapping[str, Any]) -> Any:
    """Return the value of an expression.

    Integers give an exact integer. Arrays must be int64, and are exact if
    :func:`interval` accepts the expression for their ranges.

    Parameters
    ----------
    expression : Expression
    values : mapping of str to int or int64 array
        Values of the names, all of one shape or integers.

    Raises
    ------
    ExpressionError
        If the expression reads a name that has no value.
    """
    return _value(expression.tree, values, expression)


def _value(node: ast.expr, values: Mapping[str, Any], expression: Expression) -> Any:
    name = dotted(node)
    if name is not None:
        return _known(name, values, expression)
    if isinstance(node, ast.Constant):
        return node.value
    kind, operands = _taken_apart(node)
    parts = [_value(operand, values, expression) for operand in operands]
    if isinstance(kind, str):
        return _FUNCTIONS[kind](*parts)
    made = OPERATIONS[kind].compute(*parts)
    return _number(made) if issubclass(kind, ast.cmpop) else made


def _number(truth: Any) -> Any:
    """Return a truth as 0 or 1, so that ``~`` and ``-`` mean the same for all kinds of values."""
    return truth.astype(np.int64) if isinstance(truth, np.ndarray) else int(truth)


def _where(condition: Any, then: Any, otherwise: Any) -> Any:
    if isinstance(condition, np.ndarray):
        return np.where(condition != 0, then, otherwise)
    return then if condition else otherwise


def _end(of_arrays: np.ufunc, plain: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function of one end of several values, some of which may be arrays."""

    def end(*values: Any) -> Any:
        arrays = any(isinstance(value, np.ndarray) for value in values)
        return reduce(of_arrays, values) if arrays else plain(values)

    return end


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "abs": abs,
    "min": _end(np.minimum, min),
    "max": _end(np.maximum, max),
    "where": _where,
}


# Ranges of expressions, by interval arithmetic: what fits into 64 bits, and into how few.


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

    def __add__(self, other: "Interval") -> "Interval":
        return Interval(self.low + other.low, self.high + other.high)

    def __sub__(self, other: "Interval") -> "Interval":
        return Interval(self.low - other.high, self.high - other.low)

    def __mul__(self, other: "Interval") -> "Interval":
        corners = [one * two for one in (self.low, self.high) for two in (other.low, other.high)]
        return Interval(min(corners), max(corners))


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

    def of(node: ast.expr) -> Interval:
        found = within(node)
        if not INT64.holds(found):
            raise ExpressionError(
                expression.text,
                f"its part {ast.unparse(node)!r} can be from {found.low} to {found.high}, which is "
                f"more than 64 bits",
                "give its fields fewer bits, or limit the part with & or min",
            )
        return found

    def within(node: ast.expr) -> Interval:
        name = dotted(node)
        if name is not None:
            return _known(name, ranges, expression)
        if isinstance(node, ast.Constant):
            assert isinstance(node.value, int)
            return Interval(node.value, node.value)
        kind, operands = _taken_apart(node)
        parts = list(map(of, operands))
        if isinstance(kind, str):
            return range_of_call(kind, parts)
        if issubclass(kind, ast.unaryop):
            step = int(kind is ast.Invert)
            return Interval(-parts[0].high - step, -parts[0].low - step)
        return Interval(0, 1) if issubclass(kind, ast.cmpop) else _binary(kind, *parts)

    return of(expression.tree)


def _binary(kind: type[ast.AST], left: Interval, right: Interval) -> Interval:
    compute = OPERATIONS[kind].compute
    if kind in (ast.Add, ast.Sub, ast.Mult):
        found: Interval = compute(left, right)
        return found
    if kind in (ast.BitAnd, ast.BitOr, ast.BitXor):
        return _bitwise(kind, left, right)
    number = right.low  # all others have one on their right
    if kind is ast.Mod and left.low // number != left.high // number:
        return Interval(0, number - 1)
    return Interval(compute(left.low, number), compute(left.high, number))


def _bitwise(kind: type[ast.AST], left: Interval, right: Interval) -> Interval:
    if kind is ast.BitAnd:
        positive = [side.high for side in (left, right) if not side.signed]
        if positive:
            return Interval(0, min(positive))
    bits = max(max(side.high, ~side.low).bit_length() for side in (left, right))
    return Interval(-(1 << bits) if left.signed or right.signed else 0, (1 << bits) - 1)


def range_of_call(name: str, arguments: Sequence[Interval]) -> Interval:
    """Return a range that holds every value of one of the functions of the language."""
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


# Differences of a left and a right field that a condition demands, which accelerators compare.


def differences(condition: Expression) -> Iterator[tuple[str, str, int | None, int | None]]:
    """Yield (left field, right field, low, high) for what a condition of two tuples demands.

    Where the condition holds, ``low <= l.LEFT - r.RIGHT <= high`` holds for each of them; None is
    no bound. Parts of the condition that are no such differences are passed over.
    """
    for part in _demanded(condition.tree):
        assert isinstance(part.ops[0], ast.cmpop)
        found = _bounds(part)
        if found is not None:
            yield found


def _demanded(node: ast.expr) -> Iterator[ast.Compare]:
    """Yield the comparisons that hold wherever a condition holds."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitAnd) and is_truth(node):
        yield from _demanded(node.left)
        yield from _demanded(node.right)
    elif isinstance(node, ast.Compare):
        yield node


def _bounds(node: ast.Compare) -> tuple[str, str, int | None, int | None] | None:
    """Return the difference of two fields that a comparison bounds, if it does."""
    kind, (left, right) = type(node.ops[0]), (node.left, node.comparators[0])
    if kind in (ast.Gt, ast.GtE):
        kind, left, right = {ast.Gt: ast.Lt, ast.GtE: ast.LtE}[kind], right, left
    step = 1 if kind is ast.Lt else 0
    if kind not in (ast.Lt, ast.LtE, ast.Eq):
        return None
    inner = _inside_abs(left)
    limit = _linear(right)
    if inner is not None and limit is not None and not limit[0]:
        # |difference + rest| <= limit; of an equality the limit is an upper bound too.
        most = limit[1] - step
        return _between(_linear(inner), -most, most)
    sides = _linear(left), _linear(right)
    if sides[0] is None or sides[1] is None:
        return None
    names = dict(sides[0][0])
    for name, factor in sides[1][0].items():
        names[name] = names.get(name, 0) - factor
    total = {name: factor for name, factor in names.items() if factor}, sides[0][1] - sides[1][1]
    return _between(total, 0 if kind is ast.Eq else None, -step)


def _inside_abs(node: ast.expr) -> ast.expr | None:
    """Return what ``abs`` is called with, if a node is such a call."""
    if isinstance(node, ast.Call) and ast.unparse(node.func) == "abs":
        return node.args[0]
    return None


def _between(
    found: tuple[dict[str, int], int] | None, low: int | None, high: int | None
) -> tuple[str, str, int | None, int | None] | None:
    """Return ``low <= sum <= high`` as a difference of two fields, if it is one."""
    if found is None or sorted(found[0].values()) != [-1, 1]:
        return None
    plus, minus = sorted(found[0], key=lambda name: -found[0][name])
    low, high = (None if bound is None else bound - found[1] for bound in (low, high))
    if plus.startswith("r."):
        plus, minus = minus, plus
        low, high = (None if bound is None else -bound for bound in (high, low))
    if not plus.startswith("l.") or not minus.startswith("r."):
        return None
    if plus == "l.timestamp" or minus == "r.timestamp":
        return None
    return plus[2:], minus[2:], low, high


def _linear(node: ast.expr) -> tuple[dict[str, int], int] | None:
    """Return the factors of names and the constant of a sum; None if it is something else."""
    name = dotted(node)
    if name is not None:
        return {name: 1}, 0
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return {}, node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = _linear(node.operand)
        return None if inner is None else ({n: -f for n, f in inner[0].items()}, -inner[1])
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
        left, right = _linear(node.left), _linear(node.right)
        if left is None or right is None:
            return None
        sign = 1 if isinstance(node.op, ast.Add) else -1
        names = {n: left[0].get(n, 0) + sign * right[0].get(n, 0) for n in {**left[0], **right[0]}}
        return {n: f for n, f in names.items() if f}, left[1] + sign * right[1]
    return None

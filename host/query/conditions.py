# SPDX-License-Identifier: Apache-2.0
"""Conditions on two rows: their language, and which parts of them are equalities and bands.

A condition reads the columns of a left row ``l`` and of a right row ``r``, as in
``abs(l.x - r.x) <= 3 and l.city != r.city``. Its text is parsed, never run.
"""

import ast
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from functools import cached_property, reduce
from inspect import signature
from keyword import iskeyword
from typing import Any, TypeAlias
import unicodedata

from host.errors import ExpressionError, UsageError
from host.expressions import Canonical, Symbol, parsed, place_in, text_of
from host.query.quantities import Duration, parse_duration

__all__ = [
    "Columns",
    "Condition",
    "Difference",
    "MIRRORED",
    "Where",
    "all_of",
    "column_of",
    "expression_error",
    "is_made_of_comparisons",
    "number_of",
    "read_column",
]

#: What the rows may be called, and the side of each.
ROWS = {"l": 0, "left": 0, "r": 1, "right": 1}

_OPERATORS = (
    ast.Add, ast.Sub, ast.Mult, ast.Mod, ast.USub, ast.And, ast.Or, ast.Not, ast.Eq, ast.NotEq,
    ast.Lt, ast.LtE, ast.Gt, ast.GtE,
)  # fmt: skip
_TRUTHS = (ast.BitAnd, ast.BitOr, ast.Invert)  # as functions of two rows must write them
_REMEDIES: dict[type[ast.AST], str] = {
    ast.Div: "multiply the other side of the comparison",
    ast.FloorDiv: "multiply the other side of the comparison",
    ast.Pow: "multiply",
    ast.BitXor: "write (a or b) and not (a and b)",
    ast.In: "write == for each value, joined by or",
    ast.NotIn: "write != for each value, joined by and",
    ast.Is: "a comparison with null is never true; write == for values",
    ast.IsNot: "a comparison with null is never true; write != for values",
}


def read_column(node: ast.AST) -> tuple[ast.Name, str] | None:
    """Return the row and the name of the column that a node reads, if it is one of whatever row."""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return node.value, node.attr
    if not isinstance(node, ast.Subscript) or not isinstance(node.slice, ast.Constant):
        return None
    row, name = node.value, node.slice.value
    return (row, name) if isinstance(row, ast.Name) and isinstance(name, str) else None


def column_of(node: ast.AST) -> tuple[int, str] | None:
    """Return the side and the name of the column that a node of a condition reads, if it is one."""
    found = read_column(node)
    return (ROWS[found[0].id], found[1]) if found and found[0].id in ROWS else None


class Columns(ast.NodeTransformer):
    """Puts other nodes in the place of columns.

    Parameters
    ----------
    replaced : callable
        Returns what a row and the name of its column become.
    """

    def __init__(self, replaced: Callable[[str, str], ast.expr]) -> None:
        self._replaced = replaced

    def visit(self, node: ast.AST) -> Any:
        """Return what a column becomes, and any other node with that in it."""
        found = read_column(node)
        return super().visit(node) if found is None else self._replaced(found[0].id, found[1])


def _column(side: int, name: str) -> ast.expr:
    row = ast.Name("lr"[side])
    plain = name.isidentifier() and not iskeyword(name)
    # The parser takes names apart that are written with ligatures and the like.
    if plain and unicodedata.normalize("NFKC", name) == name:
        return ast.Attribute(row, name)
    return ast.Subscript(row, ast.Constant(name))


#: How deep parts may lie in one another, so that no program that walks through them gives up.
_DEEPEST = 120


def _depth(node: ast.AST) -> int:
    return 1 + max(map(_depth, ast.iter_child_nodes(node)), default=0)


def is_made_of_comparisons(node: ast.expr) -> bool:
    """Return whether a part is a comparison, or several of them."""
    joined = isinstance(node, ast.BinOp) and isinstance(node.op, (ast.BitAnd, ast.BitOr))
    return joined or isinstance(node, ast.Compare)


def all_of(parts: Sequence[ast.expr]) -> ast.expr:
    """Return what holds where all parts hold, of which there is one at least."""
    return reduce(lambda one, other: ast.BinOp(one, ast.BitAnd(), other), parts)


def _may_be_true(node: ast.expr) -> bool:
    """Return whether a part is made of comparisons, or is a column that may hold truth values."""
    return is_made_of_comparisons(node) or column_of(node) is not None


class _Row:
    """A row whose columns are symbols, for functions of two rows."""

    def __init__(self, side: int) -> None:
        self._side = side

    def __getattr__(self, name: str) -> Symbol:
        if name.startswith("__"):
            raise AttributeError(name)
        return self[name]

    def __getitem__(self, name: str) -> Symbol:
        return Symbol(_column(self._side, name))


class _CanonicalCondition(Canonical):
    """Rewrite a tree to the canonical form of a condition, or raise for what is none.

    ``and`` and ``or`` become ``&`` and ``|`` of truths, and ``not`` a comparison with 0, as a
    circuit has them. A column may be a truth, if it turns out to hold truth values.
    """

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id in ROWS:
            raise self._refuse(f"{node.id!r} is a row", f"name a column of it, as {node.id}.x")
        raise self._refuse(
            f"{node.id!r} is no column", f"write l.{node.id} or r.{node.id} for that of a row"
        )

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        return self.visit_Subscript(node)

    def visit_Subscript(self, node: ast.Subscript | ast.Attribute) -> ast.expr:
        found = column_of(node)
        if found is None:
            raise self._refuse(
                f"{ast.unparse(node)!r} is no column",
                "write l.x for column x of the left row, r.x for that of the right one, and "
                "l['a name'] for a name that is no word",
            )
        return _column(*found)

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        value = node.value
        if isinstance(value, (int, str)):
            return ast.Constant(int(value) if isinstance(value, int) else value)
        if isinstance(value, float):
            written = ast.get_source_segment(self._text, node) or repr(value)
            if Decimal(written.replace("_", "")) != Decimal(repr(value)):
                raise self._refuse(
                    f"{written} has more digits than a number here", f"write {value!r}"
                )
            return ast.Constant(value)
        if value is None:
            raise self._refuse("null is no value", _REMEDIES[ast.Is])
        raise self._refuse(f"{ast.unparse(node)} is no value here", "write a number or a text")

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        operand: ast.expr = self.visit(node.operand)
        if isinstance(node.op, ast.UAdd):
            return operand
        if isinstance(node.op, (ast.Not, ast.Invert)):
            return ast.Compare(self._truth(operand), [ast.Eq()], [ast.Constant(0)])
        return ast.UnaryOp(ast.USub(), operand)

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        if isinstance(node.op, (ast.BitAnd, ast.BitOr)):
            sides = [self._truth(self.visit(side)) for side in (node.left, node.right)]
            return ast.BinOp(sides[0], node.op, sides[1])
        self._operator(node.op)
        right = self.visit(node.right)
        if isinstance(node.op, ast.Mod) and not _is_modulus(right):
            raise self._refuse(
                "% needs a positive number or a duration on its right",
                "write one, as in l.t % '5s'",
            )
        return ast.BinOp(self.visit(node.left), node.op, right)

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        joint = ast.BitAnd() if isinstance(node.op, ast.And) else ast.BitOr()
        joined, *others = [self._truth(self.visit(value)) for value in node.values]
        for other in others:
            joined = ast.copy_location(ast.BinOp(joined, joint, other), node)
        return joined

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        for operator in node.ops:
            self._operator(operator)
        values = [self.visit(value) for value in (node.left, *node.comparators)]
        joined: ast.expr | None = None
        for operator, left, right in zip(node.ops, values, values[1:], strict=False):
            one = ast.copy_location(ast.Compare(left, [operator], [right]), node)
            joined = one if joined is None else ast.BinOp(joined, ast.BitAnd(), one)
            joined = ast.copy_location(joined, node)
        assert joined is not None
        return joined

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        if isinstance(node.func, ast.Name) and node.func.id == "where":
            raise self._refuse("where is for operators", "use and, or and not")
        return super().visit_Call(node)

    def generic_visit(self, node: ast.AST) -> ast.expr:
        raise self._refuse(
            f"{type(node).__name__} is not in the language of conditions",
            "use columns l.x and r.x, numbers, texts, + - * %, comparisons, and, or, not, abs, "
            "min and max",
        )

    def _operator(self, operator: ast.AST) -> None:
        if not isinstance(operator, _OPERATORS):
            raise self._refuse(
                f"{type(operator).__name__} is not in the language of conditions",
                _REMEDIES.get(type(operator), "use + - * %, comparisons, and, or, not"),
            )

    def _truth(self, node: ast.expr) -> ast.expr:
        """Return a part that is joined with others, if it can be true or false."""
        if _may_be_true(node):
            return node
        place = place_in(self._text, node)
        raise ExpressionError(
            self._text, f"{ast.unparse(node)!r} is no condition", "compare it with something", place
        )


@dataclass(frozen=True)
class Difference:
    """A part of a condition that bounds the difference of a left and a right column.

    Parameters
    ----------
    left, right : str
        The columns.
    low, high : int, Fraction, Duration or None
        Inclusive bounds of ``left - right``; zero and zero for an equality.
    is_whole : bool
        Whether the bounds say all that the part says. Otherwise they hold for some pairs for which
        the part does not.
    is_equal : bool
        Whether the part compares the two columns themselves. Of infinite numbers, those that are
        equal have no difference of zero.
    """

    left: str
    right: str
    low: int | Fraction | Duration | None
    high: int | Fraction | Duration | None
    is_whole: bool = True
    is_equal: bool = False

    def implies(self, other: "Difference") -> bool:
        """Return whether ``other``, about the same columns, says nothing that this does not."""
        if self.low == self.high == 0 and not other.is_equal:
            return False
        return other.is_whole and _both(self, other) == self


@dataclass(frozen=True)
class Condition:
    """A condition on a left and a right row; make one with :meth:`of`.

    Parameters
    ----------
    text : str
        Any text of the language. It is kept in its canonical form, so conditions that differ in
        spaces and parentheses only are equal.

    Attributes
    ----------
    given : str
        The text as it was given, in which messages show places.
    tree : ast.expr
        Tree of the canonical text; its parts have their places in the given one.
    """

    text: str
    given: str = field(init=False, compare=False, repr=False)
    tree: ast.expr = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        given = self.text.replace("\n", " ").strip()
        try:
            tree = _CanonicalCondition(given).visit(parsed(given))
            deep = _depth(tree) > _DEEPEST
            text = "" if deep else ast.unparse(tree)
        except RecursionError:
            deep = True
        if deep:
            rule = f"more than {_DEEPEST} of its parts lie in one another"
            raise ExpressionError(f"{given[:40]}…", rule, "split it up")
        object.__setattr__(self, "given", given)
        object.__setattr__(self, "tree", tree)
        object.__setattr__(self, "text", text)
        if not _may_be_true(tree):
            raise expression_error(
                self, tree, f"{text!r} is no condition", "compare it with something"
            )
        if not any(True for _ in self.columns()):
            raise ExpressionError(given, "it reads no column", "compare columns, as l.x < r.x")

    @classmethod
    def of(cls, given: "str | Condition | Callable[[Any, Any], Any]") -> "Condition":
        """Return the condition that a text or a function is.

        A function of two rows is called once, with rows whose columns stand for themselves; it
        joins comparisons with ``&``, ``|`` and ``~``.

        Raises
        ------
        ExpressionError
            If it is none of the language.
        """
        if isinstance(given, Condition):
            return given
        if isinstance(given, str):
            return cls(given)
        if not callable(given):
            raise UsageError(
                f"where is a text such as 'l.x < r.x and l.k != r.k', or a function of a left and "
                f"a right row, not {given!r}."
            )
        try:
            signature(given).bind("l", "r")
        except TypeError as error:
            raise UsageError(
                f"where calls its function with a left and a right row, but {given!r} takes other "
                f"arguments ({error})."
            ) from error
        return cls(text_of(given(_Row(0), _Row(1))))

    def __str__(self) -> str:
        return self.text

    def __reduce__(self) -> tuple[Any, ...]:
        return Condition, (self.text,)

    def __and__(self, other: "Condition") -> "Condition":
        """Return the condition that both hold; messages show places in this one."""
        made = Condition(f"({self.text}) and ({other.text})")
        object.__setattr__(made, "given", self.given)
        object.__setattr__(made, "tree", ast.BinOp(self.tree, ast.BitAnd(), other.tree))
        return made

    def columns(self, node: ast.expr | None = None) -> Iterator[tuple[int, str]]:
        """Yield side and name of each column that the condition, or a part of it, reads."""
        for part in ast.walk(self.tree if node is None else node):
            if (found := column_of(part)) is not None:
                yield found

    @cached_property
    def parts(self) -> tuple[ast.expr, ...]:
        """The parts that must all hold."""
        return tuple(_conjuncts(self.tree))

    @cached_property
    def differences(self) -> tuple[Difference, ...]:
        """The equalities and bands among the parts, those of the same columns as one."""
        found: dict[tuple[str, str], Difference] = {}
        for part in self.parts:
            one = self._difference(part)
            if one is None:
                continue
            columns = one.left, one.right
            both = _both(found[columns], one) if columns in found else one
            if both is not None:
                found[columns] = both
        return tuple(found.values())

    @cached_property
    def rest(self) -> "Condition | None":
        """What must hold beside the equalities and bands; None if they say all."""
        known = {(one.left, one.right): one for one in self.differences}
        parts = []
        for part in self.parts:
            one = self._difference(part)
            if one is None or not known[one.left, one.right].implies(one):
                parts.append(part)
        return self.of_parts(parts)

    def of_parts(self, parts: Sequence[ast.expr]) -> "Condition | None":
        """Return the condition that some of the parts are; None for no part."""
        if not parts:
            return None
        if len(parts) == len(self.parts):
            return self
        tree = all_of(parts)
        made = Condition(ast.unparse(tree))
        # Messages show places in what the user wrote.
        object.__setattr__(made, "given", self.given)
        object.__setattr__(made, "tree", tree)
        return made

    def _difference(self, part: ast.expr) -> Difference | None:
        """Return the bounds that a part sets, if it is ``l.x == r.y`` or bounds their distance."""
        if not isinstance(part, ast.Compare):
            return None
        operator, (left, right) = part.ops[0], (part.left, part.comparators[0])
        columns = column_of(left), column_of(right)
        if isinstance(operator, ast.Eq) and columns[0] and columns[1]:
            if columns[0][0] == columns[1][0]:
                return None
            names = dict((columns[0], columns[1]))
            return Difference(names[0], names[1], 0, 0, is_equal=True)
        if type(operator) not in MIRRORED:
            return None
        if not isinstance(left, (ast.BinOp, ast.Call)):
            left, right, operator = right, left, MIRRORED[type(operator)]()
        is_distance = isinstance(left, ast.Call) and left.func.id == "abs"  # type: ignore[attr-defined]
        difference = left.args[0] if isinstance(left, ast.Call) else left
        if not isinstance(difference, ast.BinOp) or not isinstance(difference.op, ast.Sub):
            return None
        columns = column_of(difference.left), column_of(difference.right)
        bound = self._bound(right)
        if bound is None or not columns[0] or not columns[1] or columns[0][0] == columns[1][0]:
            return None
        if isinstance(left, ast.Call) and not is_distance:
            return None
        names = dict((columns[0], columns[1]))
        is_whole = not isinstance(operator, (ast.Lt, ast.Gt))
        upper = isinstance(operator, (ast.Lt, ast.LtE))
        if is_distance:
            if not upper:
                return None
            return Difference(names[0], names[1], -bound, bound, is_whole)
        is_equal = isinstance(operator, ast.Eq)
        low = None if upper else bound
        high = bound if upper or is_equal else None
        if columns[0][0] == 1:  # right - left
            low, high = None if high is None else -high, None if low is None else -low
        return Difference(names[0], names[1], low, high, is_whole)

    def _bound(self, node: ast.expr) -> int | Fraction | Duration | None:
        """Return a constant that bounds a difference: a number, or a text that is a duration."""
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            try:
                return parse_duration(node.value)
            except UsageError as error:
                raise expression_error(
                    self,
                    node,
                    str(error).rstrip("."),
                    "compare a difference of times with a duration",
                ) from error
        return number_of(node)


#: What a condition may be given as: its text, or a function of a left and a right row.
Where: TypeAlias = str | Condition | Callable[[Any, Any], Any]

#: The comparison that says the same with its sides swapped.
MIRRORED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.Eq, ast.Lt: ast.Gt, ast.LtE: ast.GtE, ast.Gt: ast.Lt, ast.GtE: ast.LtE,
}  # fmt: skip


def _is_modulus(node: ast.expr) -> bool:
    """Return whether a node is a positive number, or a text, which may be a duration."""
    number = number_of(node)
    return isinstance(node, ast.Constant) and (number is None or number > 0)


def number_of(node: ast.expr) -> int | Fraction | None:
    """Return the number that a node of a condition is, exactly as it is written, if it is one."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        number = number_of(node.operand)
        return None if number is None else -number
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
        exact = Fraction(repr(node.value))
        return exact.numerator if exact.denominator == 1 else exact
    return None


def _conjuncts(node: ast.expr) -> Iterator[ast.expr]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitAnd):
        yield from _conjuncts(node.left)
        yield from _conjuncts(node.right)
    else:
        yield node


def _both(one: Difference, other: Difference) -> Difference | None:
    """Return what two parts about the same columns bound together; None if it is no difference."""
    ends = one.low, one.high, other.low, other.high
    if len({isinstance(end, Duration) for end in ends if end not in (None, 0)}) > 1:
        return None  # which of the two the columns do not suit, their types will tell
    lows = [end for end in (one.low, other.low) if end is not None]
    highs = [end for end in (one.high, other.high) if end is not None]
    return replace(
        one,
        low=max(lows, key=_size) if lows else None,
        high=min(highs, key=_size) if highs else None,
        is_whole=one.is_whole and other.is_whole,
        is_equal=one.is_equal or other.is_equal,
    )


def _size(end: int | Fraction | Duration) -> int | Fraction:
    return end.nanoseconds if isinstance(end, Duration) else end


def expression_error(
    condition: Condition, node: ast.expr, rule: str, remedy: str
) -> ExpressionError:
    """Return the error for a part of a condition, which its message shows."""
    return ExpressionError(condition.given, rule, remedy, place_in(condition.given, node))

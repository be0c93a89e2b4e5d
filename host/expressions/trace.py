# SPDX-License-Identifier: Apache-2.0
"""Turn a Python function into the text of an expression, by calling it with symbols.

A function is not read, it is run: each operation on a :class:`Symbol` makes a longer symbol. So a
function may use numbers, loops and other functions as it likes; only the choice between two values
of a tuple must be said with :func:`where`, because Python's ``if`` would choose once.
"""

import ast
from typing import Any

from host.errors import ExpressionError

__all__ = ["Record", "Symbol", "maximum", "minimum", "text_of", "where"]


class Symbol:
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

    def _binary(self, operator: ast.operator, other: Any, *, swapped: bool = False) -> "Symbol":
        left, right = (_node(other), self.node) if swapped else (self.node, _node(other))
        return Symbol(ast.BinOp(left, operator, right))

    def _compared(self, operator: ast.cmpop, other: Any) -> "Symbol":
        return Symbol(ast.Compare(self.node, [operator], [_node(other)]))

    def __add__(self, other: Any) -> "Symbol":
        return self._binary(ast.Add(), other)

    def __radd__(self, other: Any) -> "Symbol":
        return self._binary(ast.Add(), other, swapped=True)

    def __sub__(self, other: Any) -> "Symbol":
        return self._binary(ast.Sub(), other)

    def __rsub__(self, other: Any) -> "Symbol":
        return self._binary(ast.Sub(), other, swapped=True)

    def __mul__(self, other: Any) -> "Symbol":
        return self._binary(ast.Mult(), other)

    def __rmul__(self, other: Any) -> "Symbol":
        return self._binary(ast.Mult(), other, swapped=True)

    def __floordiv__(self, other: Any) -> "Symbol":
        return self._binary(ast.FloorDiv(), other)

    def __mod__(self, other: Any) -> "Symbol":
        return self._binary(ast.Mod(), other)

    def __truediv__(self, other: Any) -> "Symbol":
        return self._binary(ast.Div(), other)

    def __and__(self, other: Any) -> "Symbol":
        return self._binary(ast.BitAnd(), other)

    def __rand__(self, other: Any) -> "Symbol":
        return self._binary(ast.BitAnd(), other, swapped=True)

    def __or__(self, other: Any) -> "Symbol":
        return self._binary(ast.BitOr(), other)

    def __ror__(self, other: Any) -> "Symbol":
        return self._binary(ast.BitOr(), other, swapped=True)

    def __xor__(self, other: Any) -> "Symbol":
        return self._binary(ast.BitXor(), other)

    def __rxor__(self, other: Any) -> "Symbol":
        return self._binary(ast.BitXor(), other, swapped=True)

    def __lshift__(self, other: Any) -> "Symbol":
        return self._binary(ast.LShift(), other)

    def __rshift__(self, other: Any) -> "Symbol":
        return self._binary(ast.RShift(), other)

    def __neg__(self) -> "Symbol":
        return Symbol(ast.UnaryOp(ast.USub(), self.node))

    def __pos__(self) -> "Symbol":
        return self

    def __invert__(self) -> "Symbol":
        return Symbol(ast.UnaryOp(ast.Invert(), self.node))

    def __abs__(self) -> "Symbol":
        return _call("abs", self)

    def __lt__(self, other: Any) -> "Symbol":
        return self._compared(ast.Lt(), other)

    def __le__(self, other: Any) -> "Symbol":
        return self._compared(ast.LtE(), other)

    def __gt__(self, other: Any) -> "Symbol":
        return self._compared(ast.Gt(), other)

    def __ge__(self, other: Any) -> "Symbol":
        return self._compared(ast.GtE(), other)

    def __eq__(self, other: object) -> "Symbol":  # type: ignore[override]
        return self._compared(ast.Eq(), other)

    def __ne__(self, other: object) -> "Symbol":  # type: ignore[override]
        return self._compared(ast.NotEq(), other)


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


def _node(value: Any) -> ast.expr:
    if isinstance(value, Symbol):
        return value.node
    if isinstance(value, int):
        number = ast.Constant(abs(int(value)))
        return ast.UnaryOp(ast.USub(), number) if value < 0 else number
    raise ExpressionError(
        repr(value),
        f"a value of type {type(value).__name__} is no integer",
        "compute with integers and fields of the tuple, and return one value",
    )

# SPDX-License-Identifier: Apache-2.0
"""Evaluate expressions on Python integers and on NumPy arrays."""

import ast
from collections.abc import Callable, Mapping
from functools import reduce
import operator
from typing import Any

import numpy as np

from host.errors import ExpressionError
from host.expressions.expression import Expression
from host.expressions.grammar import dotted

__all__ = ["evaluate"]

_BINARY: dict[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_UNARY: dict[type[ast.AST], Callable[[Any], Any]] = {
    ast.USub: operator.neg,
    ast.Invert: operator.invert,
}


def evaluate(expression: Expression, values: Mapping[str, Any]) -> Any:
    """Return the value of an expression.

    Integers give an exact integer. Arrays must be int64, and are exact if
    :func:`host.expressions.interval.interval` accepts the expression for their ranges.

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


def _value(node: ast.expr, values: Mapping[str, Any], whole: Expression) -> Any:
    name = dotted(node)
    if name is not None:
        if name not in values:
            raise ExpressionError(
                whole.text, f"there is no {name!r}", f"the names are {', '.join(sorted(values))}"
            )
        return values[name]
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.UnaryOp):
        return _UNARY[type(node.op)](_value(node.operand, values, whole))
    if isinstance(node, ast.BinOp):
        left, right = (_value(side, values, whole) for side in (node.left, node.right))
        return _BINARY[type(node.op)](left, right)
    if isinstance(node, ast.Compare):
        left, right = (_value(side, values, whole) for side in (node.left, node.comparators[0]))
        return _number(_BINARY[type(node.ops[0])](left, right))
    assert isinstance(node, ast.Call)
    assert isinstance(node.func, ast.Name)
    arguments = [_value(argument, values, whole) for argument in node.args]
    return _FUNCTIONS[node.func.id](*arguments)


def _number(truth: Any) -> Any:
    """Return a truth as 0 or 1, so that ``~`` and ``-`` mean the same for all kinds of values."""
    return truth.astype(np.int64) if isinstance(truth, np.ndarray) else int(truth)


def _where(condition: Any, then: Any, otherwise: Any) -> Any:
    if isinstance(condition, np.ndarray):
        return np.where(condition != 0, then, otherwise)
    return then if condition else otherwise


def _least(left: Any, right: Any) -> Any:
    arrays = isinstance(left, np.ndarray) or isinstance(right, np.ndarray)
    return np.minimum(left, right) if arrays else min(left, right)


def _greatest(left: Any, right: Any) -> Any:
    arrays = isinstance(left, np.ndarray) or isinstance(right, np.ndarray)
    return np.maximum(left, right) if arrays else max(left, right)


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "abs": abs,
    "min": lambda *values: reduce(_least, values),
    "max": lambda *values: reduce(_greatest, values),
    "where": _where,
}

# SPDX-License-Identifier: Apache-2.0
"""Lower expressions, of operators and of predicates, to Amaranth values.

The language of an operator is that of ``host/expressions.py``, whose texts come here in their
canonical form. A predicate is written as ``host/query/conditions.py`` has it, so ``and``, ``or``,
``not`` and chains of comparisons are known too. A value is as wide as it needs to be, so that it is
exact: a circuit never drops a bit of an expression.
"""

import ast
from functools import reduce
from operator import and_, or_

from amaranth import *

__all__ = ["FUNCTIONS", "OPERATIONS", "dotted", "lower", "names_of", "parse"]


def least(*values):
    """Return the least of the values."""
    return reduce(lambda one, other: Mux(one < other, one, other), values)


def greatest(*values):
    """Return the greatest of the values."""
    return reduce(lambda one, other: Mux(one > other, one, other), values)


#: What each operator of Python's parser does to Amaranth values.
OPERATIONS = {
    ast.Add: lambda one, other: one + other,
    ast.Sub: lambda one, other: one - other,
    ast.Mult: lambda one, other: one * other,
    ast.FloorDiv: lambda one, other: one // other,
    ast.Mod: lambda one, other: one % other,
    ast.BitAnd: lambda one, other: one & other,
    ast.BitOr: lambda one, other: one | other,
    ast.BitXor: lambda one, other: one ^ other,
    ast.LShift: lambda one, other: one << other,
    ast.RShift: lambda one, other: one >> other,
    ast.Eq: lambda one, other: one == other,
    ast.NotEq: lambda one, other: one != other,
    ast.Lt: lambda one, other: one < other,
    ast.LtE: lambda one, other: one <= other,
    ast.Gt: lambda one, other: one > other,
    ast.GtE: lambda one, other: one >= other,
    ast.USub: lambda one: -one,
    # Amaranth's own ~ of an unsigned value stays unsigned; that of an integer is negative.
    ast.Invert: lambda one: -one - 1,
}
FUNCTIONS = {
    "abs": abs,
    "min": least,
    "max": greatest,
    "where": lambda condition, one, other: Mux(condition != 0, one, other),
}


def parse(text):
    """Return the tree of a text.

    Raises
    ------
    ValueError
        If it is no Python expression.
    """
    try:
        return ast.parse(text, mode="eval").body
    except SyntaxError as error:
        raise ValueError(f"Expression {text!r} is no Python expression ({error.msg})") from error


def lower(text, values):
    """Return the Amaranth value of an expression.

    Parameters
    ----------
    text : str
        The expression in its canonical form.
    values : mapping of str to value-like
        Values of the names that it may read, such as ``"x"`` or ``"l.x"``.

    Raises
    ------
    ValueError
        If the text is no expression of the language, or reads another name.
    """

    def visit(node):
        name = dotted(node)
        if name is not None:
            if name not in values:
                raise ValueError(
                    f"Expression {text!r} reads {name!r}; it may read {', '.join(sorted(values))}"
                )
            return Value.cast(values[name])
        match node:
            case ast.Constant(value=int(number)):
                # A constant on the right of a shift or a division stays a number.
                return Const(number)
            case ast.UnaryOp(op=operator, operand=operand) if type(operator) in OPERATIONS:
                return OPERATIONS[type(operator)](visit(operand))
            case ast.BinOp(left=left, op=operator, right=right) if type(operator) in OPERATIONS:
                return OPERATIONS[type(operator)](visit(left), visit(right))
            case ast.Compare(left=left, ops=operators, comparators=rights) if all(
                type(operator) in OPERATIONS for operator in operators
            ):
                sides = [visit(left), *map(visit, rights)]
                pairs = zip(operators, sides, sides[1:], strict=False)
                return reduce(and_, (OPERATIONS[type(op)](one, two) for op, one, two in pairs))
            case ast.BoolOp(op=operator, values=parts):
                joint = and_ if isinstance(operator, ast.And) else or_
                return reduce(joint, map(truth, parts))
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return truth(operand) == 0
            case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if name in FUNCTIONS:
                return FUNCTIONS[name](*(visit(argument) for argument in arguments))
        raise ValueError(
            f"Expression {text!r} has {ast.unparse(node)!r}, which is not in the language"
        )

    def truth(node):
        value = visit(node)
        if len(value) != 1 or value.shape().signed:
            raise ValueError(
                f"Expression {text!r} has {ast.unparse(node)!r}, which is no condition; compare it"
            )
        return value

    return visit(parse(text))


def names_of(text):
    """Return the names that an expression reads, sorted."""
    found = set()

    def visit(node):
        name = dotted(node)
        if name is not None:
            found.add(name)
            return
        children = node.args if isinstance(node, ast.Call) else ast.iter_child_nodes(node)
        for child in children:
            visit(child)

    visit(parse(text))
    return tuple(sorted(found))


def dotted(node):
    """Return the name that a node is; None if it is something else."""
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=ast.Name(id=record), attr=name):
            return f"{record}.{name}"
    return None

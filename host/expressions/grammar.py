# SPDX-License-Identifier: Apache-2.0
"""The language of expressions: the part of Python that integers, arrays and circuits share.

Python's own parser and printer are used, so a text means what it means in Python. A comparison is 0
or 1. What Python, NumPy and a circuit would answer differently is either left out, such as ``and``,
or rewritten here: ``~`` of a comparison becomes ``== 0``, ``x if c else y`` becomes ``where``.
"""

import ast

from host.errors import ExpressionError

__all__ = ["FUNCTIONS", "OPERATIONS", "canonical", "dotted", "is_truth"]

#: Operators that a text may contain, as Python's parser names them.
OPERATIONS: dict[type[ast.AST], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.BitXor: "^",
    ast.LShift: "<<",
    ast.RShift: ">>",
    ast.USub: "-",
    ast.Invert: "~",
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
}
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
    if len(text) > _LONGEST:
        raise ExpressionError(
            f"{text[:40]}…", f"it has {len(text)} characters, of {_LONGEST} at most", "split it up"
        )
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        reason = getattr(error, "msg", None) or str(error)
        raise ExpressionError(text, f"it is no Python expression ({reason})", "correct it") from (
            error
        )
    return _Canonical(text).visit(tree)


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


class _Canonical(ast.NodeVisitor):
    """Rewrite a tree to its canonical form, or raise for what is not in the language."""

    def __init__(self, text: str) -> None:
        self._text = text

    def _refuse(self, rule: str, remedy: str) -> ExpressionError:
        return ExpressionError(self._text, rule, remedy)

    def _operator(self, operator: ast.AST) -> None:
        if type(operator) not in OPERATIONS:
            raise self._refuse(
                f"{type(operator).__name__} is not in the language",
                _REMEDIES.get(type(operator), f"use {' '.join(sorted(set(OPERATIONS.values())))}"),
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
                f"{OPERATIONS[type(node.op)]} needs a positive number on its right",
                "divide by a number, or give an output its divisor with `per`",
            )
        if isinstance(node.op, (ast.LShift, ast.RShift)) and not _is_number(right, 0, 63):
            raise self._refuse(
                f"{OPERATIONS[type(node.op)]} needs a number from 0 to 63 on its right",
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

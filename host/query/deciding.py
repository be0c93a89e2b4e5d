# SPDX-License-Identifier: Apache-2.0
"""Which predicate an accelerator is generated with, so that it decides a condition of a query."""

import ast
from collections.abc import Iterable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from typing import TypeAlias

from host.query.conditions import ROWS, Columns, Condition, all_of, column_of

__all__ = ["GeneratedPredicate", "comparisons_of", "predicate_for"]

#: The side of a column, and its name.
Column: TypeAlias = tuple[int, str]

#: Width of a key field, as that of the presets.
_BITS = 32


@dataclass(frozen=True)
class GeneratedPredicate:
    """A predicate over key fields.

    Parameters
    ----------
    where : str
        The predicate, over ``l.field`` and ``r.field``.
    fields : tuple of str
        Its key fields.
    """

    where: str
    fields: tuple[str, ...]

    @property
    def options(self) -> tuple[str, ...]:
        """Options of ``python -m sim build`` for an accelerator that has it."""
        keys = [option for name in self.fields for option in ("--key", f"{name}:{_BITS}")]
        return ("--where", self.where, *keys)


def predicate_for(condition: Condition) -> GeneratedPredicate | None:
    """Return the predicate of an accelerator that decides a condition; None if there is none.

    It has the parts of the condition that compute with columns and whole numbers only. The host
    finds out about the others, as about a text or a fraction.
    """
    parts = [part for part in condition.parts if _is_whole(part)]
    fields = _fields(parts)
    if not fields:
        return None

    def field_of(row: str, name: str) -> ast.expr:
        side = ROWS[row]
        return ast.Attribute(ast.Name("lr"[side]), fields[side, name])

    named = ast.fix_missing_locations(Columns(field_of).visit(deepcopy(all_of(parts))))
    return GeneratedPredicate(ast.unparse(named), tuple(dict.fromkeys(fields.values())))


def _is_whole(part: ast.expr) -> bool:
    """Return whether a part has no constants but whole numbers, and reads a column."""
    nodes = list(_values(part))
    constants = [node.value for node in nodes if isinstance(node, ast.Constant)]
    return any(map(column_of, nodes)) and all(isinstance(value, int) for value in constants)


def _values(node: ast.expr) -> Iterator[ast.expr]:
    """Yield the parts of a part, columns whole."""
    yield node
    if column_of(node) is None:
        for part in ast.iter_child_nodes(node):
            if isinstance(part, ast.expr):
                yield from _values(part)


def comparisons_of(parts: Iterable[ast.expr]) -> dict[Column, set[Column | None]]:
    """Return the columns of the other side that each column is tested to be equal, or not, to.

    None among them says that something else is asked of the column, too.
    """
    tested: dict[Column, set[Column | None]] = {}

    def visit(node: ast.expr) -> None:
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.Eq, ast.NotEq)):
            left, right = column_of(node.left), column_of(node.comparators[0])
            if left is not None and right is not None and left[0] != right[0]:
                tested.setdefault(left, set()).add(right)
                tested.setdefault(right, set()).add(left)
                return
        column = column_of(node)
        if column is not None:
            tested.setdefault(column, set()).add(None)
            return
        for part in ast.iter_child_nodes(node):
            if isinstance(part, ast.expr):
                visit(part)

    for part in parts:
        visit(part)
    return tested


def _fields(parts: list[ast.expr]) -> dict[Column, str]:
    """Return the key field of each column of either side.

    Two columns of which nothing is asked but whether they are equal have one field, since both have
    codes in it if they are no numbers. All others are numbers; they share fields by their order.
    """
    tested = comparisons_of(parts)
    shared = []
    for left in sorted(column for column in tested if column[0] == 0):
        (right, *others) = tested[left]
        if right is not None and not others and tested[right] == {left}:
            shared.append((left, right))
    coded = {column for pair in shared for column in pair}
    fields = {column: f"f{number}" for number, pair in enumerate(shared) for column in pair}
    for side in (0, 1):
        numbers = sorted(column for column in tested if column[0] == side and column not in coded)
        fields |= {column: f"f{at}" for at, column in enumerate(numbers, len(shared))}
    return fields

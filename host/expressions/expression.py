# SPDX-License-Identifier: Apache-2.0
"""One expression: its canonical text, and the names that it reads."""

import ast
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from host.errors import ExpressionError
from host.expressions.grammar import canonical, dotted
from host.expressions.trace import text_of

__all__ = ["Expression", "Source"]


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
            Arguments for a function (:mod:`host.expressions.trace`).

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
    if name is not None:
        return {name}
    if isinstance(node, ast.Call):
        return set().union(*(_names(argument) for argument in node.args))
    children = (child for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr))
    return set().union(*(_names(child) for child in children))

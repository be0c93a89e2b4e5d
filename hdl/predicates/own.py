# SPDX-License-Identifier: Apache-2.0
"""Custom predicates: from a text, from a function, or with hardware of their own."""

from abc import ABC, abstractmethod
import ast
from contextlib import suppress
from dataclasses import dataclass
import importlib

from amaranth import *

from hdl.expressions import dotted, lower, names_of, parse
from hdl.parts import option, require

from .rule import Rule

__all__ = [
    "MOST_LATENCY",
    "PREDICATE",
    "FunctionPredicate",
    "Own",
    "Predicate",
    "TextPredicate",
    "named_predicate",
]

#: Most cycles that a predicate may take: a scan has room for as many rows that are under way.
MOST_LATENCY = 16
#: Title of options.
PREDICATE = "predicate"


class Predicate(ABC):
    """A custom predicate: what it means, and the hardware that decides it.

    A subclass in a file of its own is all that a new predicate takes. ``hdl generate --predicate
    MODULE:NAME`` names the class, or an object of it. The manifest of the bundle says what the
    predicate means, so that host and Spark know which queries the bundle serves, and join in
    software by the same text.
    """

    #: What the predicate means: a condition on the key fields of a tuple ``l`` of R and a tuple
    #: ``r`` of S, such as ``"l.card == r.card and l.city != r.city"``. None if no text says it;
    #: only programs that send words themselves can use such an accelerator.
    where = None
    #: Cycles from two keys to their match, at least one.
    latency = 1

    def check(self, parameters):
        """Raise :exc:`ValueError` unless an accelerator can have the predicate.

        Parameters
        ----------
        parameters : JoinParameters
        """
        what = type(self).__name__ if self.where is None else repr(self.where)
        most = parameters.arrangement.predicate_cycles
        if not 1 <= self.latency <= most:
            raise ValueError(
                f"Predicate {what} takes {self.latency} cycles, of 1 to {most} with architecture "
                f"{parameters.architecture!r}: multiply fewer values one after another"
            )
        if self.where is None:
            return
        fields = {
            f"{row}.{key.name}": Signal(signed(key.bits) if key.signed else key.bits)
            for row in "lr"
            for key in parameters.keys
        }
        value = lower(self.where, fields)
        if len(value) != 1 or value.shape().signed:
            raise ValueError(
                f"Predicate {what} is a number, no condition; compare it with another one"
            )

    @abstractmethod
    def match(self, m, r, s):
        """Add the hardware to a module; return whether the keys of two tuples match.

        Parameters
        ----------
        m : Module
        r, s : objects with a Value for each key field
            Keys of a tuple of R and of a tuple of S; others come in every cycle.

        Returns
        -------
        Value
            The match of the keys that were there :attr:`latency` cycles ago.
        """


class FunctionPredicate(Predicate):
    """A predicate that is a Python function of two keys, decided in one cycle.

    Parameters
    ----------
    function : callable
        Takes two keys, and returns a value of one bit. It joins comparisons with ``&``, ``|`` and
        ``~``.
    """

    def __init__(self, function):
        self._function = function

    def match(self, m, r, s):
        match = Signal(reset_less=True)
        m.d.sync += match.eq(self._function(r, s))
        return match


class TextPredicate(Predicate):
    """A predicate that is a text, with a pipeline that its multiplications ask for.

    The factors and the product of a multiplication are registered, as the multipliers of an FPGA
    have registers there. All else is computed in the cycle in which its parts are known. So the
    latency is one, and two more for each multiplication on the longest way.

    Parameters
    ----------
    where : str
        A condition in the language of :mod:`hdl.expressions`, over ``l.field`` and ``r.field``.

    Raises
    ------
    ValueError
        If it is none.
    """

    def __init__(self, where):
        self.where = where
        self.latency = 1 + depth(parse(where))

    def match(self, m, r, s):
        values = {}
        for name in names_of(self.where):
            row, _, field = name.partition(".")
            values[name] = getattr({"l": r, "r": s}[row], field)
        return Pipeline(m, self.where, values).match()


def depth(node):
    """Return the cycles from the fields to the value of a part, of which multiplications take two.

    Multiplying by a constant takes none.
    """
    if dotted(node) is not None:
        return 0
    parts = node.args if isinstance(node, ast.Call) else ast.iter_child_nodes(node)
    below = max((depth(part) for part in parts if isinstance(part, ast.expr)), default=0)
    return below + (2 if is_product(node) else 0)


def is_product(node):
    """Return whether a part multiplies two values that are not known before."""
    return (
        isinstance(node, ast.BinOp)
        and isinstance(node.op, ast.Mult)
        and all(any(dotted(part) for part in ast.walk(side)) for side in (node.left, node.right))
    )


class Pipeline:
    """The hardware of a text: each value with the cycle in which it is known.

    Parameters
    ----------
    m : Module
        Gets the statements.
    text : str
    fields : mapping of str to Value
        Values of the names, in the first cycle.
    """

    def __init__(self, m, text, fields):
        self._m = m
        self._text = text
        self._fields = fields
        self._later = {}  # values by their names and the cycle
        self._count = 0

    def match(self):
        """Return whether the text holds of the fields that were there, registered."""
        value, _ = self._visit(parse(self._text))
        return self._registered(value != 0)

    def _visit(self, node):
        """Return the value of a part, and in which cycle it is known."""
        cycle = depth(node)
        if not cycle:
            names = names_of(ast.unparse(node))
            values = {name: Value.cast(self._fields[name]) for name in names}
            return lower(ast.unparse(node), values), 0
        parts = node.args if isinstance(node, ast.Call) else self._operands(node)
        known = [self._visit(part) for part in parts]
        at = cycle - 2 if is_product(node) else cycle
        values = [self._delayed(value, since, at) for value, since in known]
        if is_product(node):
            factors = [self._registered(value) for value in values]
            return self._registered(factors[0] * factors[1]), cycle
        # The parts stand for themselves in a text of one operation.
        named = {f"l.part{n}": value for n, value in enumerate(values)}
        return lower(ast.unparse(self._of_parts(node, list(named))), named), cycle

    @staticmethod
    def _operands(node):
        if isinstance(node, ast.Compare):
            return [node.left, *node.comparators]
        if isinstance(node, ast.BoolOp):
            return node.values
        return [node.operand] if isinstance(node, ast.UnaryOp) else [node.left, node.right]

    @staticmethod
    def _of_parts(node, names):
        """Return an operation on parts that have these names."""
        parts = [ast.parse(name, mode="eval").body for name in names]
        if isinstance(node, ast.Call):
            return ast.Call(node.func, parts, [])
        if isinstance(node, ast.Compare):
            return ast.Compare(parts[0], node.ops, parts[1:])
        if isinstance(node, ast.BoolOp):
            return ast.BoolOp(node.op, parts)
        if isinstance(node, ast.UnaryOp):
            return ast.UnaryOp(node.op, parts[0])
        return ast.BinOp(parts[0], node.op, parts[1])

    def _delayed(self, value, since, until):
        """Return a value as it was in another cycle of the pipeline, constants as they are."""
        if isinstance(value, Const):
            return value
        for cycle in range(since, until):
            key = (id(value), cycle)
            if key not in self._later:
                self._later[key] = (self._registered(value), value)  # which keeps the id taken
            value = self._later[key][0]
        return value

    def _registered(self, value):
        value = Value.cast(value)
        register = Signal(value.shape(), name=f"step_{self._count}", reset_less=True)
        self._count += 1
        self._m.d.sync += register.eq(value)
        return register


def named_predicate(reference):
    """Return the predicate that ``"module:name"`` names.

    Raises
    ------
    ValueError
        If its module or its name does not exist.
    """
    module, _, name = reference.partition(":")
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueError(
            f"Predicate {reference!r} is not an importable 'module:function'"
        ) from error
    if isinstance(found, type) and issubclass(found, Predicate):
        return found()
    return found if isinstance(found, Predicate) else FunctionPredicate(found)


@dataclass(frozen=True, kw_only=True)
class Own(Rule):
    """A predicate of one's own, found by its name or made from its text when it is needed.

    Parameters
    ----------
    predicate : str or None
        ``"module:name"`` of a custom ``predicate(r, s)``, or of a :class:`Predicate`.
    where : str or None
        Text of a condition over ``l.field`` of R's tuple and ``r.field`` of S's, such as
        ``"abs(l.x - r.x) <= 3 and l.city != r.city"``. A named predicate says itself what it means.
    """

    kind = "custom"
    fixed = {"comparator": "custom"}

    predicate: option(
        "a predicate of your own: a function predicate(r, s), or a Predicate with its own hardware",
        metavar="MODULE:NAME",
        group=PREDICATE,
    ) = None
    where: option(
        "a predicate of your own as a text over key fields of R's tuple l and S's tuple r: "
        "'abs(l.x - r.x) <= 3 and l.city != r.city'",
        metavar="CONDITION",
        group=PREDICATE,
    ) = None

    def __post_init__(self):
        super().__post_init__()
        for name, text in (("predicate", self.predicate), ("where", self.where)):
            wrong = f"Parameter {name!r} of comparator 'custom' must be a text, not {text!r}"
            require(text is None or isinstance(text, str), wrong)
        require(
            self.predicate or self.where,
            "Comparator 'custom' needs parameter 'predicate' or 'where'",
        )
        if self.predicate is not None and self.where is not None:
            # A manifest repeats what the predicate says of itself.
            require(
                self.where == self.found.where,
                f"Predicate {self.predicate!r} says itself what it means; leave 'where' out",
            )
            object.__setattr__(self, "where", None)

    @property
    def found(self):
        """The :class:`Predicate`.

        Raises
        ------
        ValueError
            If its module or its name does not exist, or its text is no condition.
        """
        if self.predicate is None:
            return TextPredicate(self.where)
        return named_predicate(self.predicate)

    def check(self, parameters):
        if self.where is not None:
            self.found.check(parameters)

    def to_dict(self):
        """Return the part as JSON-compatible values, with ``where`` if the predicate says it."""
        values = super().to_dict()
        if self.predicate is not None:
            with suppress(ValueError):  # its module is not here
                values["where"] = self.found.where
        return values

    def latency(self, parameters):
        predicate = self.found
        predicate.check(parameters)
        return predicate.latency

    def compare(self, m, platform, comparator):
        r, s = comparator.criterion, comparator.key
        if comparator.probe_side:
            r, s = s, r
        return self.found.match(m, r, s)

# SPDX-License-Identifier: Apache-2.0
"""The description of a windowed operator, as the generator reads it and a manifest holds it.

It is data: ``WindowedOperator.to_dict()`` of ``host/operators/windowed.py`` writes it, and what is
derived there (widths, panes, how a state slides) comes along. So the rules of the language have one
home, and a circuit is made for exactly what the host computes.
"""

from dataclasses import dataclass
import importlib
import importlib.util
from pathlib import Path
import sys

from hdl.expressions import names_of
from hdl.parameters import KeyField
from hdl.parts import require

__all__ = [
    "KeyRule",
    "OperatorDescription",
    "OutputRule",
    "ReductionRule",
    "load_circuit",
    "load_operator",
]

KINDS = ("aggregate", "join", "join_aggregate", "forward")


@dataclass(frozen=True, kw_only=True)
class KeyRule:
    """One key that a tuple may have.

    Parameters
    ----------
    parts : tuple of str
        Expressions over the fields of a tuple and ``timestamp``.
    when : str or None
        The tuple has the key where this is not 0; None if it always has.
    """

    parts: tuple
    when: str | None = None


@dataclass(frozen=True, kw_only=True)
class ReductionRule:
    """One number in the state of a window instance.

    Parameters
    ----------
    name, function : str
        ``function`` is ``"count"``, ``"sum"``, ``"min"``, ``"max"`` or ``"reduce"``.
    value : str
        Expression over the fields of a tuple: what it contributes; over ``l.field`` and
        ``r.field`` where matches are aggregated.
    combine : str
        Expression over two states ``a`` and ``b``: their combination, in either order.
    inverse : str or None
        Expression over ``a`` and ``b``: ``a`` without ``b``; None if there is none.
    bits : int
    signed : bool
        The field of the state. A state that leaves it is an overflow.
    """

    name: str
    function: str
    value: str
    combine: str
    bits: int
    signed: bool
    inverse: str | None = None


@dataclass(frozen=True, kw_only=True)
class OutputRule:
    """One value of a result: ``value``, or ``value / per``, which the host divides."""

    name: str
    value: str
    per: str | None = None


@dataclass(frozen=True, kw_only=True)
class OperatorDescription:
    """A windowed operator; make one with :meth:`from_dict` or :func:`load_operator`.

    Parameters
    ----------
    name : str
    kind : str
        ``"aggregate"`` (with ``reductions``), ``"join"`` (with ``match``), ``"join_aggregate"``
        (with both) or ``"forward"``.
    size, advance : int
        A window covers ``[n * advance, n * advance + size)`` for each integer n.
    pane : int
        Greatest common divisor of both.
    instances : str
        ``"multi"`` or ``"single"``, the seed's WT.
    slides_by : str or None
        ``"delta"`` if every reduction has an inverse, otherwise ``"panes"``; for an aggregate.
    fields, right_fields : tuple of KeyField
        Fields of the tuples; those of a second input, which is empty if there is none.
    keys : tuple of KeyRule
        A tuple has the *set* of these keys. Without any, all tuples share one empty key.
    key_fields : tuple of KeyField
        The fields that every part of every key fits.
    reductions : tuple of ReductionRule
    outputs : tuple of OutputRule
        Expressions over the reductions, the ``key_fields``, and ``start`` and ``end`` of a window.
    having : str or None
        A window gives its result only where this is not 0; reads what outputs read.
    slide : str or None
        A single window instance keeps its state, as it moves on, where this is not 0; reads what
        outputs read. No circuit evaluates it.
    match : str or None
        Condition of a join over ``l.field`` and ``r.field``.
    in_turns : bool
        Whether a tuple of a join is stored under one of its keys only, in turns.
    """

    name: str
    kind: str
    size: int
    advance: int
    pane: int
    instances: str
    fields: tuple
    key_fields: tuple
    keys: tuple = ()
    right_fields: tuple = ()
    reductions: tuple = ()
    outputs: tuple = ()
    slides_by: str | None = None
    having: str | None = None
    slide: str | None = None
    match: str | None = None
    in_turns: bool = False

    def __post_init__(self):
        require(self.kind in KINDS, f"Operator must be one of {', '.join(KINDS)}, not {self.kind}")
        require(
            1 <= self.advance <= self.size,
            f"Advance of a window must be from 1 to its size {self.size}, not {self.advance}",
        )
        tuples = {"timestamp", *(field.name for field in self.fields)}
        for key in self.keys:
            for text in (*key.parts, *([key.when] if key.when else [])):
                self._require_names(text, tuples)
        sides = {"l": self.fields, "r": self.right_fields}
        pairs = {f"{side}.{field.name}" for side, fields in sides.items() for field in fields}
        pairs |= {"l.timestamp", "r.timestamp"}
        results = {"start", "end", *(field.name for field in self.key_fields)}
        for reduction in self.reductions:
            self._require_names(reduction.value, tuples if self.match is None else pairs)
            self._require_names(reduction.combine, {"a", "b"})
            self._require_names(reduction.inverse or "0", {"a", "b"})
            results.add(reduction.name)
        for output in self.outputs:
            self._require_names(output.value, results)
            self._require_names(output.per or "0", results)
        self._require_names(self.having or "0", results)
        self._require_names(self.slide or "0", results)
        self._require_names(self.match or "0", pairs)

    def _require_names(self, text, names):
        wrong = [name for name in names_of(text) if name not in names]
        require(
            not wrong,
            f"Expression {text!r} of operator {self.name!r} reads {wrong}; it may read "
            f"{', '.join(sorted(names))}",
        )

    @property
    def panes(self):
        """Panes of a window."""
        return self.size // self.pane

    @property
    def key_bits(self):
        """Bits of all parts of a key together."""
        return sum(field.bits for field in self.key_fields)

    @property
    def state_bits(self):
        """Bits of all reductions together."""
        return sum(reduction.bits for reduction in self.reductions)

    @property
    def unsent(self):
        """What a window gives beside its reductions, which no circuit computes, in words."""
        plain = {rule.name: (rule.name, None) for rule in self.reductions}
        own = {rule.name: (rule.value, rule.per) for rule in self.outputs} != plain
        return " and ".join(["its outputs"] * own + ["having"] * (self.having is not None))

    @classmethod
    def from_dict(cls, values):
        """Return the description that a document holds.

        Raises
        ------
        ValueError
            If the document is none of an operator.
        """
        parts = {"fields": KeyField, "right_fields": KeyField, "key_fields": KeyField}
        parts |= {"keys": key_rule, "reductions": ReductionRule, "outputs": OutputRule}
        try:
            return cls(
                **{
                    name: tuple(parts[name](**one) for one in value) if name in parts else value
                    for name, value in values.items()
                }
            )
        except (TypeError, AttributeError) as error:
            raise ValueError(f"The document is no description of an operator ({error})") from error


def key_rule(parts, when=None):
    """Return a :class:`KeyRule` from its document."""
    return KeyRule(parts=tuple(parts), when=when)


def load_operator(reference):
    """Return the description of an operator.

    Parameters
    ----------
    reference : str
        ``"module:NAME"``, an object with ``to_dict()``; or ``"FILE.py"`` with one such object, or
        ``"FILE.py:NAME"``. A file is run.

    Raises
    ------
    ValueError
        If there is no such object, or if it describes no operator.
    """
    return OperatorDescription.from_dict(find_operator(reference).to_dict())


def load_circuit(reference):
    """Return the document of what an accelerator computes of an operator.

    That of an aggregate or a forward is an aggregate, for :meth:`OperatorDescription.from_dict`.
    The ``kind`` of any other is ``"join"``, with its compared ``keys`` and a number of ``cores``.

    Parameters
    ----------
    reference : str
        As for :func:`load_operator`; what ``circuit()`` of the object returns, if it has that.
    """
    found = find_operator(reference)
    return found.circuit() if hasattr(found, "circuit") else found.to_dict()


def find_operator(reference):
    """Return the object of a module or of a file that describes an operator."""
    place, separator, name = reference.rpartition(":")
    if reference.endswith(".py"):
        return operator_in_file(reference, "")
    if place.endswith(".py"):
        return operator_in_file(place, name)
    require(
        separator and place and name,
        f"An operator is named 'module:NAME' or 'FILE.py:NAME', not {reference!r}",
    )
    try:
        found = getattr(importlib.import_module(place), name)
    except (ImportError, AttributeError) as error:
        raise ValueError(
            f"Operator {reference!r} cannot be imported ({error}); put its module on PYTHONPATH"
        ) from error
    require(hasattr(found, "to_dict"), f"Operator {reference!r} has no to_dict()")
    return found


def operator_in_file(place, name):
    """Return the operator of a Python file, or the one of that name if there are several."""
    file = Path(place)
    require(file.is_file(), f"There is no file {place!r} that describes an operator")
    spec = importlib.util.spec_from_file_location(file.stem, file)
    module = importlib.util.module_from_spec(spec)
    folder = str(file.resolve().parent)
    sys.path.insert(0, folder)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise ValueError(
            f"File {place!r} cannot be run: {type(error).__name__}: {error}"
        ) from error
    finally:
        sys.path.remove(folder)
    found = {key: one for key, one in vars(module).items() if hasattr(type(one), "circuit")}
    names = ", ".join(found) or "none"
    if name:
        require(name in found, f"File {place!r} has no operator {name!r}; it has: {names}")
        return found[name]
    require(
        len(found) == 1,
        f"File {place!r} must have one operator, or the name of one behind it, as in {place}:NAME; "
        f"it has: {names}",
    )
    return next(iter(found.values()))

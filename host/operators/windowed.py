# SPDX-License-Identifier: Apache-2.0
"""Windowed operators, the seed's O+: aggregates and joins described as data, and their rules."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import reduce
import inspect
from itertools import product
import keyword
from math import gcd
import re
from typing import Any

from host.errors import UsageError
from host.expressions import (
    FUNCTIONS as EXPRESSION_FUNCTIONS,
)
from host.expressions import (
    Expression,
    Interval,
    Record,
    Symbol,
    differences,
    evaluate,
    interval,
)

__all__ = [
    "FUNCTIONS",
    "Field",
    "INSTANCES",
    "Key",
    "Output",
    "RESERVED",
    "Reduction",
    "TIME",
    "WindowedOperator",
    "identifier",
    "state_overflow",
    "unused",
]

# Parts of an operator's description: fields of a tuple, its keys, and what a window gives.

#: Names that expressions use for the time of a tuple, and for the boundaries of a window.
RESERVED = frozenset({"timestamp", "start", "end", *EXPRESSION_FUNCTIONS})
#: Range of times. Boundaries of windows lie outside of it by less than the size of a window.
TIME = Interval(0, (1 << 62) - 1)


def identifier(name: object, what: str) -> str:
    """Return ``name`` if a field, key or result can be called so.

    Raises
    ------
    UsageError
        If it is no lower-case identifier, or means something else.
    """
    fits = isinstance(name, str) and re.fullmatch(r"[a-z][a-z0-9_]*", name)
    if not fits or keyword.iskeyword(str(name)) or name in RESERVED:
        taken = ", ".join(sorted(RESERVED))
        raise UsageError(
            f"{what} must be called by a lower-case identifier other than {taken}, not {name!r}."
        )
    return str(name)


@dataclass(frozen=True)
class Field:
    """A field of the tuples that an operator reads.

    Parameters
    ----------
    name : str
        Identifier, by which expressions read the field.
    bits : int
        Width: 1 to 64 if it is signed, otherwise 1 to 63.
    signed : bool
        Whether the field is in two's complement.
    """

    name: str
    bits: int = 32
    signed: bool = True

    def __post_init__(self) -> None:
        identifier(self.name, "A field")
        require_width(self.bits, self.signed, f"Field {self.name!r}")

    @property
    def range(self) -> Interval:
        """The values that the field can hold."""
        return Interval.of_field(self.bits, self.signed)


def require_width(bits: object, signed: bool, what: str) -> None:
    """Raise :class:`UsageError` unless a number of this width fits a signed 64-bit integer."""
    most = 64 if signed else 63
    if isinstance(bits, bool) or not isinstance(bits, int) or not 1 <= bits <= most:
        kind = "signed" if signed else "unsigned"
        raise UsageError(f"{what} must have 1 to {most} bits, as it is {kind}, not {bits!r}.")


@dataclass(frozen=True)
class Key:
    """One key of a tuple: a part of the seed's f_MK, which gives a set of keys.

    Parameters
    ----------
    parts : Expression or sequence of Expression
        What the key consists of: texts, numbers, or functions of a tuple.
    when : Expression, optional
        The tuple has this key where the condition is not 0; by default, always.
    """

    parts: tuple[Expression, ...]
    when: Expression | None = None

    def __post_init__(self) -> None:
        given: Any = self.parts
        several = isinstance(given, Iterable) and not isinstance(given, str)
        parts = tuple(Expression.of(part, Record()) for part in (given if several else [given]))
        if not parts:
            raise UsageError("A key must have at least one part; leave `keys` out for no key.")
        object.__setattr__(self, "parts", parts)
        if self.when is not None:
            object.__setattr__(self, "when", Expression.of(self.when, Record()))


@dataclass(frozen=True)
class Output:
    """One value of the result of a window: a part of the seed's f_O.

    Parameters
    ----------
    name : str
        Name of the value in the result.
    value : Expression
        Text, or function of a record with the reductions, the parts of the key, and the boundaries
        ``start`` and ``end`` of the window.
    per : Expression, optional
        Divisor. The host gives ``value / per`` as a float, or null where the divisor is 0.
    """

    name: str
    value: Expression
    per: Expression | None = None

    def __post_init__(self) -> None:
        identifier(self.name, "An output")
        object.__setattr__(self, "value", Expression.of(self.value, Record()))
        if self.per is not None:
            object.__setattr__(self, "per", Expression.of(self.per, Record()))


# What a window instance keeps of its tuples: one number, combined from one value per tuple.

#: How the functions that have a name combine two states, and take one out of the other.
FUNCTIONS: dict[str, tuple[str | None, str | None]] = {
    "count": ("a + b", "a - b"),
    "sum": ("a + b", "a - b"),
    "min": ("min(a, b)", None),
    "max": ("max(a, b)", None),
    "reduce": (None, None),
}
#: Bits that a sum has beside those of its value, unless its width is given.
_SUM_BITS = 32
#: Numbers that a user's function is tried on, within the range of its state.
_TRIED = (-7, -2, -1, 0, 1, 2, 3, 5, 8, 100)


@dataclass(frozen=True)
class Reduction:
    """Reduction of a window instance: a part of its state, and its update (the seed's f_U).

    The first tuple's value is the state, and each further value is combined with it. A window
    instance has at least one tuple, so no neutral element is needed.

    Parameters
    ----------
    name : str
        Identifier, by which outputs read the state.
    function : str
        ``"count"``, ``"sum"``, ``"min"``, ``"max"``, or ``"reduce"`` with ``combine``.
    value : Expression, optional
        What a tuple contributes: a text or a function of the tuple. A count needs none. In a join,
        what a match contributes: a text over ``l.field`` and ``r.field``, or a function of a left
        and a right tuple.
    combine : Expression, optional
        For ``"reduce"``: text over two states ``a`` and ``b``, or a function of them. It must be
        associative and commutative, for the tuples of a window may be combined in any order, and
        must give a state again.
    inverse : Expression, optional
        For ``"reduce"``, if there is one: ``a`` without ``b``, in the same form. With an inverse,
        a window slides by what leaves it.
    bits, signed : int and bool, optional
        The state's field. By default that of the value, with 32 more bits for a sum. A sum that is
        too large for it when its window ends is an error.
    """

    name: str
    function: str
    value: Expression | None = None
    combine: Expression | None = None
    inverse: Expression | None = None
    bits: int | None = None
    signed: bool | None = None

    def __post_init__(self) -> None:
        identifier(self.name, "A reduction")
        if self.function not in FUNCTIONS:
            raise UsageError(
                f"Reduction {self.name!r} must be one of {', '.join(FUNCTIONS)}, not "
                f"{self.function!r}."
            )
        given: Any = self.value
        if given is None:
            if self.function != "count":
                raise UsageError(
                    f"Reduction {self.name!r}, a {self.function}, needs the value that a tuple "
                    f"contributes."
                )
            given = 1
        elif self.function == "count" and Expression.of(given, *_arguments(given)).text != "1":
            raise UsageError(
                f"Reduction {self.name!r}, a count, has no value; sum a condition to count the "
                f"tuples for which it holds."
            )
        object.__setattr__(self, "value", Expression.of(given, *_arguments(given)))
        self._set_functions()

    def _set_functions(self) -> None:
        states = Symbol("a"), Symbol("b")
        for part, known in zip(("combine", "inverse"), FUNCTIONS[self.function], strict=True):
            given = getattr(self, part)
            source = known if given is None else Expression.of(given, *states)
            if self.function != "reduce" and given is not None and str(source) != known:
                raise UsageError(
                    f"Reduction {self.name!r}, a {self.function}, has no `{part}` of its own; use "
                    f"function 'reduce'."
                )
            if source is None and (self.function, part) == ("reduce", "combine"):
                raise UsageError(
                    f"Reduction {self.name!r} needs `combine`, an expression of two states a and b."
                )
            resolved = None if source is None else Expression.of(source)
            object.__setattr__(self, part, resolved)

    @property
    def range(self) -> Interval:
        """Range of the state; the reduction must be resolved."""
        assert self.bits is not None
        assert self.signed is not None
        return Interval.of_field(self.bits, self.signed)

    def resolved(self, names: dict[str, Interval]) -> "Reduction":
        """Return the reduction with its width, checked for fields of these ranges.

        Raises
        ------
        ExpressionError, UsageError
            If an expression reads another name, if a value does not fit the state, or if the
            user's functions do not behave as reductions must.
        """
        assert self.value is not None
        found = interval(self.value, names)
        signed = found.signed if self.signed is None else self.signed
        extra = _SUM_BITS if FUNCTIONS[self.function][0] == "a + b" else 0
        most = 64 if signed else 63
        at = replace(
            self,
            signed=signed,
            bits=min(found.bits + extra + (signed and not found.signed), most)
            if self.bits is None
            else self.bits,
        )
        require_width(at.bits, signed, f"The state of reduction {self.name!r}")
        if not at.range.holds(found):
            raise UsageError(
                f"Reduction {self.name!r} has a state from {at.range.low} to {at.range.high}, but "
                f"a tuple's value {self.value.text!r} can be from {found.low} to {found.high}; "
                f"give the state more bits."
            )
        at._check_functions()
        return at

    def _check_functions(self) -> None:
        """Raise for functions that leave the state, or that tried numbers show to be wrong."""
        if self.function != "reduce":
            return
        states = {"a": self.range, "b": self.range}
        for part in (self.combine, self.inverse):
            found = self.range if part is None else interval(part, states)
            if not self.range.holds(found):
                raise UsageError(
                    f"Reduction {self.name!r} has states from {self.range.low} to "
                    f"{self.range.high}, but {str(part)!r} of two states can be from {found.low} "
                    f"to {found.high}; use function 'sum', or limit it with & or %."
                )
        tried = [value for value in _TRIED if self.range.low <= value <= self.range.high]
        for a, b, c in product(tried, repeat=3):
            ab = self._joined(a, b)
            rules = {
                "commutative": (ab, self._joined(b, a)),
                "associative": (self._joined(ab, c), self._joined(a, self._joined(b, c))),
            }
            if self.inverse is not None:
                back = evaluate(self.inverse, {"a": ab, "b": b})
                rules["undone by its inverse"] = (back, a)
            for rule, (one, other) in rules.items():
                if one != other:
                    raise UsageError(
                        f"Reduction {self.name!r} must be {rule}, but its function "
                        f"{str(self.combine)!r} is not: for {a}, {b} and {c} it gives {one} and "
                        f"{other}."
                    )

    def _joined(self, a: int, b: int) -> int:
        assert self.combine is not None
        return int(evaluate(self.combine, {"a": a, "b": b}))


def _arguments(source: Any) -> tuple[Record, ...]:
    """Return what a function is called with: a tuple, or a left and a right one."""
    if callable(source) and len(inspect.signature(source).parameters) == 2:
        return Record("l"), Record("r")
    return (Record(),)


# The description of a windowed operator: O+(WA, WS, I, f_MK, WT, S, f_mu, f_U, f_O, f_S).
#
# That is the generalized operator of STRETCH, and its parameters are called so there. The mapping
# f_mu of keys to cores is left out: it is the accelerator's, and the answer does not depend on
# it.


@dataclass(frozen=True, kw_only=True)
class WindowedOperator:
    """A windowed operator, frozen and checked; its expressions are texts or Python functions.

    A window covers the times ``[n * advance, n * advance + size)`` for each integer n. What an
    operator does with the tuples of a window is one of four:

    - With ``reductions``, it is an aggregate (A+). A window instance keeps one number for each
      reduction, and gives one result when the watermark has reached its right boundary.
    - With ``match``, it is a join (J+) of two inputs. A window instance keeps tuples, and an
      arriving tuple gives a result for each tuple of the other input that it matches.
    - With both, it is an aggregate of matches. Right tuples are kept, and a left tuple gives one
      result for each of its keys when it arrives: the reductions of all right tuples that it
      matches. Of no match, a count and a sum are 0, and other reductions are null.
    - With neither, it forwards each tuple, once for each of its keys.

    Parameters
    ----------
    name : str
        Identifier.
    size, advance : int
        The seed's WS and WA, in units of the timestamp: ``1 <= advance <= size``.
    fields : sequence of Field
        Fields of a tuple; those of the left input if there are two.
    right_fields : sequence of Field, optional
        Fields of the right input's tuples. With them, there are two inputs (I = 2).
    keys : sequence of Key
        f_MK: the keys that a tuple may have. A tuple has each key once, even if two of these agree.
        Without any, all tuples share one empty key.
    key_names : sequence of str, optional
        Names of the parts of a key in results. By default the text, if it is a field's name for
        each part, otherwise ``key``, or ``key0``, ``key1``.
    instances : str
        WT: ``"multi"`` keeps an instance per window, ``"single"`` keeps one that slides. The answer
        is the same. A single one needs tuples in the order of their timestamps.
    reductions : sequence of Reduction
        The state of a window instance, and how tuples change it (f_U).
    outputs : sequence of Output, optional
        f_O and S: the values of a result. By default, each reduction is one.
    having : Expression, optional
        A window gives its result only where this is not 0. It reads what outputs read.
    slide : Expression, optional
        f_S of an aggregate with a single instance per key. Without it, tuples that have left the
        window leave its state. With it, the state keeps all of its tuples when the instance moves
        on by ``advance``, as long as this is not 0, and is dropped as a whole where it is. It reads
        what outputs read, of the window that has just ended and has given its result.
    match : Expression, optional
        Condition of a join on two tuples: a text over ``l.field`` and ``r.field``, or a function of
        a left and a right tuple.
    in_turns : bool
        Whether a joined tuple is stored under one of its keys, in turns, as in ScaleJoin, rather
        than under each of them. The keys must then be numbers, so that all tuples have them.

    Raises
    ------
    UsageError, ExpressionError
        If the description contradicts itself.
    """

    name: str
    size: int
    advance: int
    fields: tuple[Field, ...]
    right_fields: tuple[Field, ...] | None = None
    keys: tuple[Key, ...] = ()
    key_names: tuple[str, ...] | None = None
    instances: str = "multi"
    reductions: tuple[Reduction, ...] = ()
    outputs: tuple[Output, ...] | None = None
    having: Expression | None = None
    slide: Expression | None = None
    match: Expression | None = None
    in_turns: bool = False

    def __post_init__(self) -> None:
        for name in ("fields", "right_fields", "keys", "key_names", "reductions", "outputs"):
            given = getattr(self, name)
            self._set(name, None if given is None else tuple(given))
        for name in ("having", "slide"):
            if getattr(self, name) is not None:
                self._set(name, Expression.of(getattr(self, name), Record()))
        if self.match is not None:
            self._set("match", Expression.of(self.match, Record("l"), Record("r")))
        if self.key_names is None:
            self._set("key_names", _key_names(self.keys))
        if self.outputs is None:
            names = [reduction.name for reduction in self.reductions]
            self._set("outputs", tuple(Output(name, Expression(name)) for name in names))
        _check_operator(self)
        ranges = self.tuple_ranges[0] if self.match is None else self.pair_ranges
        self._set("reductions", tuple(one.resolved(ranges) for one in self.reductions))
        _check_results(self)

    def _set(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)

    def to_dict(self) -> dict[str, Any]:
        """Return the description as JSON-compatible values, as a manifest holds it.

        What is derived from the rest (widths of keys, panes) is there too, so that a reader need
        not derive it. Parts that an operator does not have are left out.
        """
        values: dict[str, Any] = _document(self)
        del values["key_names"]
        values |= {"kind": self.kind, "pane": self.pane, "key_fields": _document(self.key_fields)}
        if self.reductions:
            values["slides_by"] = self.slides_by
        else:
            del values["reductions"], values["outputs"]
        if self.match is None:
            del values["in_turns"]
        return values

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "WindowedOperator":
        """Return the operator that :meth:`to_dict` has converted.

        Raises
        ------
        UsageError
            If the document is none of an operator, or what it derives disagrees.
        """
        known = {field.name for field in fields(cls)}
        try:
            parts: dict[str, Any] = {
                name: [_NESTED[name](**one) for one in given] if name in _NESTED else given
                for name, given in values.items()
                if name in known
            }
            operator = cls(**parts, key_names=tuple(one["name"] for one in values["key_fields"]))
        except (KeyError, TypeError, AttributeError) as error:
            raise UsageError(
                f"The document is no description of an operator ({error!r})."
            ) from error
        back = operator.to_dict()
        wrong = sorted(
            name for name in back.keys() | values.keys() if back.get(name) != values.get(name)
        )
        if wrong:
            raise UsageError(
                f"The description of operator {operator.name!r} disagrees with itself in "
                f"{', '.join(wrong)}; write it again with this version of the kit."
            )
        return operator

    def with_(self, **changes: Any) -> "WindowedOperator":
        """Return a copy with ``changes``, checked again."""
        return replace(self, **changes)

    @property
    def kind(self) -> str:
        """What it does: ``"aggregate"``, ``"join"``, ``"join_aggregate"`` or ``"forward"``."""
        if self.match is not None:
            return "join_aggregate" if self.reductions else "join"
        return "aggregate" if self.reductions else "forward"

    @property
    def inputs(self) -> int:
        """Number of input streams, the seed's I."""
        return 1 if self.right_fields is None else 2

    @property
    def schemas(self) -> tuple[tuple[Field, ...], ...]:
        """Fields of the tuples of each input."""
        return (self.fields,) if self.right_fields is None else (self.fields, self.right_fields)

    @property
    def tuple_ranges(self) -> tuple[dict[str, Interval], ...]:
        """Ranges of what expressions may read of a tuple, for each input."""
        return tuple(
            {"timestamp": TIME, **{field.name: field.range for field in schema}}
            for schema in self.schemas
        )

    @property
    def pair_ranges(self) -> dict[str, Interval]:
        """Ranges of what expressions may read of a left and a right tuple."""
        sides = zip("lr", self.tuple_ranges, strict=True)
        return {f"{side}.{name}": at for side, ranges in sides for name, at in ranges.items()}

    @property
    def key_ranges(self) -> tuple[Interval, ...]:
        """Range of each part of a key, over all keys and inputs.

        Raises
        ------
        ExpressionError
            If an expression reads a name that the tuples of an input do not have.
        """
        parts = zip(*(key.parts for key in self.keys), strict=True)
        return tuple(
            _widest(interval(one, ranges) for one in each for ranges in self.tuple_ranges)
            for each in parts
        )

    @property
    def key_fields(self) -> tuple[Field, ...]:
        """The parts of a key, each as narrow as the expressions of the keys allow."""
        assert self.key_names is not None
        return tuple(
            Field(name, at.bits, at.signed)
            for name, at in zip(self.key_names, self.key_ranges, strict=True)
        )

    @property
    def pane(self) -> int:
        """Length of a pane: each window consists of whole panes, and no smaller parts."""
        return gcd(self.size, self.advance)

    @property
    def slides_by(self) -> str:
        """How an aggregate's state slides at the least cost.

        ``"delta"`` if every reduction has an inverse: what leaves a window is taken out of its
        state. Otherwise ``"panes"``: the state is combined from those of the panes.
        """
        invertible = all(reduction.inverse is not None for reduction in self.reductions)
        return "delta" if invertible else "panes"

    @property
    def terms(self) -> tuple[tuple[str, str, int | None, int | None], ...]:
        """The differences ``low <= l.FIELD - r.FIELD <= high`` that ``match`` demands.

        An accelerator compares these, so it finds all pairs that match, and the host evaluates
        ``match`` on what it finds.
        """
        if self.match is None:
            return ()
        found: dict[tuple[str, str], tuple[int | None, int | None]] = {}
        for left, right, low, high in differences(self.match):
            least, most = found.get((left, right), (None, None))
            found[left, right] = (
                low if least is None else least if low is None else max(least, low),
                high if most is None else most if high is None else min(most, high),
            )
        return tuple((*names, *bounds) for names, bounds in found.items())

    def circuit(self) -> dict[str, Any]:
        """Return the document of what an accelerator computes of the operator.

        Cores of aggregates reduce the tuples of each key. What a window gives (``outputs``,
        ``having``) is evaluated on the host, and so is ``slide``, for which cores give the states
        of single panes. A forward is an aggregate in which each tuple has a pane of its own. Cores
        of a join compare the fields of :attr:`terms`, and the keys, as a field by that name.
        """
        if self.match is not None:
            names = dict.fromkeys(left for left, *_ in self.terms) or {self.fields[0].name: None}
            ranges = {field.name: field for field in self.fields}
            keys = [_document(ranges[name]) for name in names]
            if self.keys and not self.in_turns:
                keys.append({"name": unused("key", names), "bits": 32, "signed": False})
            cores = len(self.keys) if self.in_turns else 1
            return {"kind": "join", "name": self.name, "keys": keys, "cores": cores}
        plain: dict[str, Any] = {"outputs": None, "having": None, "slide": None}
        if self.kind == "aggregate":
            size = {} if self.slide is None else {"size": self.pane, "advance": self.pane}
            return self.with_(**plain, **size).to_dict()
        if any("timestamp" in part.names for part in self._of_keys):
            raise UsageError(
                f"Operator {self.name!r} forwards tuples by keys that read `timestamp`, which an "
                f"accelerator of forwards does not have: its time is the place of a tuple in the "
                f"stream. Read a field with the time instead."
            )
        return WindowedOperator(
            name=self.name,
            size=1,
            advance=1,
            fields=self._common_fields,
            keys=self.keys,
            key_names=self.key_names,
            reductions=(
                Reduction(unused("tuples", self.key_names or ()), "count", bits=1, signed=False),
            ),
        ).to_dict()

    @property
    def _of_keys(self) -> list[Expression]:
        """All expressions of the keys."""
        parts = [part for key in self.keys for part in (*key.parts, key.when)]
        return [part for part in parts if part is not None]

    @property
    def reads_time(self) -> bool:
        """Whether a key or a reduction reads the timestamp of a tuple."""
        values = [one.value for one in self.reductions if one.value is not None]
        return any("timestamp" in part.names for part in (*self._of_keys, *values))

    @property
    def _common_fields(self) -> tuple[Field, ...]:
        """The fields of the left input, each as wide as both inputs need it."""
        fields = []
        for field in self.fields:
            at = _widest(ranges[field.name] for ranges in self.tuple_ranges if field.name in ranges)
            fields.append(Field(field.name, at.bits, at.signed))
        return tuple(fields)


def _widest(ranges: Iterable[Interval]) -> Interval:
    """Return the range of values that are in any of several ranges."""
    return reduce(Interval.__or__, ranges)


def unused(name: str, taken: Iterable[str]) -> str:
    """Return a name that is not among those that are taken."""
    while name in taken:
        name = f"{name}_"
    return name


#: Parts that are documents of their own.
_NESTED: dict[str, Callable[..., Any]] = {
    "fields": Field, "right_fields": Field, "keys": Key, "reductions": Reduction, "outputs": Output,
}  # fmt: skip


def _document(value: Any) -> Any:
    """Return a part of a description as JSON-compatible values, without what it does not have."""
    if isinstance(value, Expression):
        return value.text
    if isinstance(value, tuple):
        return [_document(one) for one in value]
    if not is_dataclass(value):
        return value
    parts = {field.name: getattr(value, field.name) for field in fields(value)}
    return {name: _document(part) for name, part in parts.items() if part is not None}


def _key_names(keys: tuple[Key, ...]) -> tuple[str, ...]:
    if not keys:
        return ()
    parts = [part.text for part in keys[0].parts]
    if len(keys) == 1 and all(part.isidentifier() and part != "timestamp" for part in parts):
        return tuple(parts)
    return ("key",) if len(parts) == 1 else tuple(f"key{at}" for at in range(len(parts)))


# Rules for the description of a windowed operator; an error names the rule and the value.

#: The window types, the seed's WT.
INSTANCES = ("multi", "single")


def _check_operator(operator: WindowedOperator) -> None:
    """Raise unless windows, fields, keys and kind of an operator agree.

    Raises
    ------
    UsageError, ExpressionError
    """
    identifier(operator.name, "An operator")
    _check_windows(operator)
    for schema in operator.schemas:
        if not schema:
            raise _wrong(operator, "must have at least one field in each input")
        _check_distinct(operator, (field.name for field in schema), "field")
    _check_keys(operator)
    _check_kind(operator)


def _check_results(operator: WindowedOperator) -> None:
    """Raise unless an operator, whose reductions are resolved, can give its results.

    Raises
    ------
    UsageError, ExpressionError
    """
    assert operator.key_names is not None
    assert operator.outputs is not None
    reductions = [reduction.name for reduction in operator.reductions]
    outputs = [output.name for output in operator.outputs]
    _check_distinct(operator, [*operator.key_names, *reductions], "part of a key or reduction")
    _check_distinct(operator, [*operator.key_names, *outputs], "part of a key or output")
    edge = Interval(TIME.low - operator.size, TIME.high + operator.size)
    names = {
        "start": edge,
        "end": edge,
        **dict(zip(operator.key_names, operator.key_ranges, strict=True)),
        **{reduction.name: reduction.range for reduction in operator.reductions},
    }
    for output in operator.outputs:
        interval(output.value, names)
        if output.per is not None:
            interval(output.per, names)
    for condition in (operator.having, operator.slide):
        if condition is not None:
            interval(condition, names)
    if operator.match is not None:
        interval(operator.match, operator.pair_ranges)


def state_overflow(
    reduction: str,
    value: int,
    low: int,
    high: int,
    *,
    window: tuple[int, int],
    key: tuple[object, ...],
) -> UsageError:
    """Return the error of a state that does not fit the bits that the description gives it.

    Parameters
    ----------
    reduction : str
        Name of the reduction.
    value : int
        The value.
    low, high : int
        Smallest and largest value that fit.
    window : tuple of int
        Boundaries of the window.
    key : tuple
        Key of the window instance.
    """
    of_key = f" of key {key}" if key else ""
    return UsageError(
        f"Reduction {reduction!r} is {value} in window [{window[0]}, {window[1]}){of_key}, outside "
        f"the range {low} .. {high} of its state; give it more bits, or smaller windows."
    )


def _wrong(operator: WindowedOperator, rule: str) -> UsageError:
    return UsageError(f"Operator {operator.name!r} {rule}.")


def _check_windows(operator: WindowedOperator) -> None:
    for what, value in (("size", operator.size), ("advance", operator.advance)):
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= TIME.high:
            raise _wrong(operator, f"must have a window {what} of at least 1, not {value!r}")
    if operator.advance > operator.size:
        raise _wrong(
            operator,
            f"must advance its windows by at most their size, {operator.size}, so that no tuple "
            f"falls between two of them; not by {operator.advance}",
        )
    if operator.instances not in INSTANCES:
        raise _wrong(
            operator, f"must have instances {' or '.join(INSTANCES)}, not {operator.instances!r}"
        )


def _check_distinct(operator: WindowedOperator, names: Iterable[str], what: str) -> None:
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise _wrong(operator, f"must call each {what} by a name of its own, not {repeated[0]!r}")


def _check_keys(operator: WindowedOperator) -> None:
    assert operator.key_names is not None
    lengths = {len(key.parts) for key in operator.keys}
    if len(lengths) > 1:
        raise _wrong(operator, f"must have keys of one length, not of {sorted(lengths)} parts")
    parts = lengths.pop() if lengths else 0
    if len(operator.key_names) != parts:
        raise _wrong(
            operator, f"must name the {parts} parts of its keys, not {list(operator.key_names)}"
        )
    for name, at in zip(operator.key_names, operator.key_ranges, strict=True):
        Field(name, at.bits, at.signed)
    for key in operator.keys:
        for ranges in operator.tuple_ranges:
            if key.when is not None:
                interval(key.when, ranges)


def _check_kind(operator: WindowedOperator) -> None:
    if operator.match is not None and operator.inputs == 1:
        raise _wrong(operator, "has `match`, so it must have two inputs: give it `right_fields`")
    if operator.kind == "aggregate" and operator.inputs == 2:
        raise _wrong(
            operator, "aggregates without `match`, so it has one input: leave out `right_fields`"
        )
    if not operator.reductions and (operator.outputs or operator.having is not None):
        raise _wrong(operator, "has no reductions, so it can have neither `outputs` nor `having`")
    slides = operator.kind == "aggregate" and operator.instances == "single"
    if operator.slide is not None and not slides:
        raise _wrong(
            operator,
            "has `slide`, which says when the state of a window instance that moves on is dropped, "
            "so it must be an aggregate with instances 'single'",
        )
    if operator.kind != "aggregate" and operator.instances != "single":
        raise _wrong(
            operator,
            "gives results when tuples arrive, so it must have instances 'single': from several "
            "windows of a tuple, results would not leave in the order of their times",
        )
    if operator.in_turns and (operator.kind != "join" or not operator.keys):
        raise _wrong(operator, "can store in turns only as a join, and with keys to take turns")
    parts = [part for key in operator.keys for part in key.parts]
    varies = any(part.names for part in parts) or any(key.when for key in operator.keys)
    if operator.in_turns and varies:
        raise _wrong(operator, "must have numbers as keys, which all tuples have, to take turns")

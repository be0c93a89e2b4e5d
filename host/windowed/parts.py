# SPDX-License-Identifier: Apache-2.0
"""Parts of an operator's description: fields of a tuple, its keys, and what a window gives."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
import keyword
import re
from typing import Any

from host.errors import OperatorError
from host.expressions import FUNCTIONS, Expression, Interval, Record

__all__ = ["RESERVED", "TIME", "Field", "Key", "Output", "identifier"]

#: Names that expressions use for the time of a tuple, and for the boundaries of a window.
RESERVED = frozenset({"timestamp", "start", "end", *FUNCTIONS})
#: Range of times. Boundaries of windows lie outside of it by less than the size of a window.
TIME = Interval(0, (1 << 62) - 1)


def identifier(name: object, what: str) -> str:
    """Return ``name`` if a field, key or result can be called so.

    Raises
    ------
    OperatorError
        If it is no lower-case identifier, or means something else.
    """
    fits = isinstance(name, str) and re.fullmatch(r"[a-z][a-z0-9_]*", name)
    if not fits or keyword.iskeyword(str(name)) or name in RESERVED:
        taken = ", ".join(sorted(RESERVED))
        raise OperatorError(
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
    """Raise :class:`OperatorError` unless a number of this width fits a signed 64-bit integer."""
    most = 64 if signed else 63
    if isinstance(bits, bool) or not isinstance(bits, int) or not 1 <= bits <= most:
        kind = "signed" if signed else "unsigned"
        raise OperatorError(f"{what} must have 1 to {most} bits, as it is {kind}, not {bits!r}.")


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
            raise OperatorError("A key must have at least one part; leave `keys` out for no key.")
        object.__setattr__(self, "parts", parts)
        if self.when is not None:
            object.__setattr__(self, "when", Expression.of(self.when, Record()))

    def to_dict(self) -> dict[str, Any]:
        """Return the key as JSON-compatible values."""
        values: dict[str, Any] = {"parts": [part.text for part in self.parts]}
        return values if self.when is None else {**values, "when": self.when.text}


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

    def to_dict(self) -> dict[str, Any]:
        """Return the output as JSON-compatible values."""
        values: dict[str, Any] = {"name": self.name, "value": self.value.text}
        return values if self.per is None else {**values, "per": self.per.text}


def fields_of(values: Iterable[Mapping[str, Any]]) -> tuple[Field, ...]:
    """Return fields from their JSON documents."""
    return tuple(Field(**value) for value in values)

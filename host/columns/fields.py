# SPDX-License-Identifier: Apache-2.0
"""Terms of a query as key fields: who gets which, and the base classes of their plans."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import pyarrow as pa

from host.columns.codes import FieldValues
from host.columns.kinds import ColumnType, Kind, bound_in_ticks, coded_difference, require_same_kind
from host.errors import AcceleratorLimitError, UsageError
from host.installation import command
from host.protocol.manifest import KeyField, Manifest
from host.protocol.spread import Spread
from host.query.queries import Term
from host.reference.predicate import Bounds

__all__ = [
    "FieldPlan",
    "TermTypes",
    "assigned",
    "bounds_of",
    "place_of",
    "require_coded_equality",
    "rough_terms",
    "wider",
]

# Assign the terms of a query to key fields; base classes of the plans of fields.

_MOST_DIGITS = 76
"""Digits of the widest decimals of Arrow."""


@dataclass(frozen=True)
class TermTypes:
    """A term with the types of its two columns."""

    term: Term
    left: ColumnType
    right: ColumnType

    def __post_init__(self) -> None:
        require_same_kind(self.left, self.right)

    @classmethod
    def of(cls, term: Term, left: ColumnType, right: ColumnType) -> "TermTypes":
        """Return a term with the types in which its columns are compared.

        Decimals of more digits than 64 bits hold have no differences here, but codes.
        """
        types = cls(term, left, right)
        if not (term.is_equality and (left.is_wide or right.is_wide)):
            return types
        common = _common_decimal(left, right)
        return cls(term, left.whole(common), right.whole(common))

    @property
    def columns(self) -> tuple[ColumnType, ColumnType]:
        """Types of the left and of the right column."""
        return self.left, self.right

    @property
    def is_float_difference(self) -> bool:
        """Whether the term bounds a difference of floating-point numbers."""
        return self.left.kind is Kind.FLOAT and not self.term.is_equality


def _common_decimal(left: ColumnType, right: ColumnType) -> pa.DataType:
    """Return the type that has all values of two columns of decimals."""
    kinds = left.dtype, right.dtype
    scale = max(kind.scale for kind in kinds)
    digits = max(kind.precision - kind.scale for kind in kinds) + scale
    if digits > _MOST_DIGITS:
        raise UsageError(
            f"Columns {left.name!r} ({left.dtype}) and {right.name!r} ({right.dtype}) would need "
            f"decimals of {digits} digits to be compared, and {_MOST_DIGITS} are the most; cast "
            f"one of them."
        )
    return pa.decimal128(digits, scale) if digits <= 38 else pa.decimal256(digits, scale)


@dataclass(frozen=True)
class FieldPlan(ABC):
    """Plan of one key field; what :meth:`start` returns encodes it in one execution.

    Parameters
    ----------
    name : str
        Name of the key field.
    terms : tuple of TermTypes
        Terms that the field stands for.
    bounds : Bounds
        Bounds of the field's difference ``left - right``.
    note : str
        How values become the field, for explanations.
    """

    name: str
    terms: tuple[TermTypes, ...]
    bounds: Bounds
    note: str

    @property
    def meaning(self) -> str:
        """Description of the field for explanations: the terms and the note."""
        return f"{', '.join(str(term.term) for term in self.terms)}: {self.note}"

    @property
    def is_exact(self) -> bool:
        """Whether the pairs with the field within its bounds are exactly the pairs of the terms.

        Otherwise there are more pairs, and :meth:`BoundCondition.of_term
        <host.columns.conditions.BoundCondition.of_term>` finds the others.
        """
        return True

    @property
    def spread(self) -> Spread | None:
        """Facts about the field's values that are known in advance; None if there are none."""
        return None

    def start(self) -> Self:
        """Return the field for one execution, to which belongs what it learns."""
        return replace(self)

    def settle(self, batches: Sequence[tuple[int, pa.RecordBatch]]) -> None:
        """Learn from the first batches, given with their sides, before any of them is encoded."""
        del batches  # by default, there is nothing to learn

    @abstractmethod
    def encode(self, side: int, batch: pa.RecordBatch, first: int) -> FieldValues:
        """Return the field for all rows of ``batch``, which begins at row ``first`` of its side.

        Raises
        ------
        AcceleratorLimitError
            If a value does not fit the field.
        """


def rough_terms(fields: Sequence[FieldPlan]) -> tuple[TermTypes, ...]:
    """Return the terms of the fields that are not exact."""
    return tuple(term for field in fields if not field.is_exact for term in field.terms)


def assigned(
    terms: Sequence[TermTypes], manifest: Manifest, spare: int = 0
) -> list[tuple[KeyField, tuple[TermTypes, ...]]]:
    """Assign terms to the key fields in order; equalities share a field if fields are few.

    Parameters
    ----------
    terms : sequence of TermTypes
        The terms.
    manifest : Manifest
        Of the accelerator.
    spare : int
        So many of the last terms get a field only if the accelerator has one that compares them.

    Raises
    ------
    UsageError
        If the accelerator's comparator does not suit, or the accelerator has too few fields.
    """
    fields = manifest.keys
    placed = list(terms[: len(terms) - spare])
    _require_comparator(placed, manifest)
    others = terms[len(terms) - spare :]
    for term in sorted(others, key=lambda term: not term.term.is_equality):
        equal = [one for one in (*placed, term) if one.term.is_equality]
        count = len(placed) + 1 - len(equal) + min(len(equal), 1)
        if (term.term.is_equality or manifest.bounded) and count <= len(fields):
            placed.append(term)
    groups: list[tuple[TermTypes, ...]] = [(term,) for term in placed]
    if len(placed) > len(fields):
        equalities = tuple(term for term in placed if term.term.is_equality)
        needed = len(placed) - len(equalities) + min(len(equalities), 1)
        if needed > len(fields):
            raise AcceleratorLimitError(
                f"The query needs {needed} key fields, but the accelerator has {len(fields)}",
                f"build a bundle with more of them: `{command('sim build')}` takes --key once a "
                "field; for device 'sim:', build=True (--build) makes one; or write some of them "
                "in where",
            )
        groups = []
        for term in placed:
            if not term.term.is_equality:
                groups.append((term,))
            elif equalities not in groups:
                groups.append(equalities)
    return list(zip(fields, groups, strict=False))


def _require_comparator(terms: Sequence[TermTypes], manifest: Manifest) -> None:
    if not manifest.bounded:
        bad = [term.term for term in terms if not term.term.is_equality]
        if bad:
            raise AcceleratorLimitError(
                f"The accelerator compares for equality only, but the query has '{bad[0]}'",
                "use a bundle with comparator 'band'",
            )


def require_coded_equality(term: TermTypes) -> bool:
    """Return whether the term compares values as codes; if so, raise unless it is an equality."""
    if not term.left.kind.is_coded:
        return False
    for bound in (term.term.low, term.term.high):
        bound_in_ticks(bound, term.left, 1, f"In '{term.term}', bound")
    if not term.term.is_equality:
        raise coded_difference(term.left, f"In '{term.term}'")
    return True


def bounds_of(term: TermTypes, tick: int, divisor: int) -> Bounds:
    """Return the bounds of a term in units of ``divisor`` ticks."""
    what = f"In '{term.term}', bound"
    low = bound_in_ticks(term.term.low, term.left, tick, what)
    high = bound_in_ticks(term.term.high, term.left, tick, what)
    return Bounds(
        None if low is None else -((-low) // divisor), None if high is None else high // divisor
    )


def place_of(field: KeyField) -> int:
    """Return how far the smallest value of the field is below zero."""
    return 1 << (field.bits - 1) if field.signed else 0


def wider(field: KeyField, top: int) -> str:
    """Return advice how to get a field that holds values up to ``top``."""
    if top.bit_length() > 64:
        return "the values lie too far apart for any field, 64 bits are the most"
    bits = top.bit_length()
    return (
        f"build a bundle whose field {field.name!r} has {bits} bits: "
        f"`{command(f'sim build --preset demo --key {field.name}:{bits} --output DIR')}`"
    )

# SPDX-License-Identifier: Apache-2.0
"""The terms of a query in the key fields of an accelerator."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from host.encode.codes import Codes, codes_of_columns, codes_of_scaled, combined, dense
from host.encode.kinds import Column, Kind
from host.encode.scale import Scaled, bound_in_ticks, require_same_kind, scale
from host.errors import KeyRangeError, UsageError
from host.manifest import KeyField, Manifest
from host.predicate import Bounds
from host.query import Term

__all__ = ["EncodedField", "TermColumns", "encode_terms"]

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class TermColumns:
    """A term with its two columns."""

    term: Term
    left: Column
    right: Column

    def __post_init__(self) -> None:
        require_same_kind(self.left, self.right)


@dataclass(frozen=True)
class EncodedField:
    """What one key field is sent, in the order of the tables' rows.

    Parameters
    ----------
    name : str
        The key field.
    left, right : array of int64 or uint64
        Values of the tuples; arbitrary for a row with a null.
    bounds : Bounds
        Of ``left - right``.
    meaning : str
        For explanations.
    """

    name: str
    left: Array
    right: Array
    bounds: Bounds
    meaning: str


def encode_terms(terms: Sequence[TermColumns], manifest: Manifest) -> list[EncodedField]:
    """Assign terms to the key fields in order; equalities share a field if fields are few.

    Raises
    ------
    UsageError
        If the accelerator cannot compare like that, or a value does not fit.
    """
    fields = manifest.keys
    _require_comparator(terms, manifest)
    if len(terms) <= len(fields):
        return [_encode(term, field) for term, field in zip(terms, fields, strict=False)]
    equalities = [term for term in terms if term.term.is_equality]
    needed = len(terms) - len(equalities) + min(len(equalities), 1)
    if needed > len(fields):
        raise UsageError(
            f"The query needs {needed} key fields, but the accelerator has {len(fields)}; "
            f"build a bundle with more of them: `python -m hdl generate` takes --key once a field."
        )
    groups: list[TermColumns | list[TermColumns]] = []
    for term in terms:
        if not term.term.is_equality:
            groups.append(term)
        elif equalities not in groups:
            groups.append(equalities)
    return [
        _encode_equalities(group, field) if isinstance(group, list) else _encode(group, field)
        for group, field in zip(groups, fields, strict=False)
    ]


def _require_comparator(terms: Sequence[TermColumns], manifest: Manifest) -> None:
    if manifest.comparator == "custom":
        raise UsageError(
            "The accelerator has a predicate of its own (comparator 'custom'); a join of tables "
            "needs comparator 'band'."
        )
    if manifest.comparator == "equality":
        bad = [term.term for term in terms if not term.term.is_equality]
        if bad:
            raise UsageError(
                f"The accelerator compares for equality only, but the query has '{bad[0]}'; "
                f"use a bundle with comparator 'band'."
            )


def _encode(term: TermColumns, field: KeyField) -> EncodedField:
    """One term in a field of its own."""
    if term.left.kind is Kind.TEXT:
        for bound in (term.term.low, term.term.high):
            bound_in_ticks(bound, term.left, 1, f"In '{term.term}', bound")
        if not term.term.is_equality:
            raise UsageError(f"In '{term.term}': strings can be compared for equality only.")
        return _encode_equalities([term], field)
    scaled = scale(term.left, term.right)
    top = (1 << field.bits) - 1
    if scaled is not None and scaled.top > top:
        scaled = scaled.reduced()
    if scaled is None or scaled.top > top:
        if term.term.is_equality:
            return _encode_equalities([term], field)
        raise _too_wide(term, scaled, field)
    what = f"In '{term.term}', bound"
    bounds = Bounds(
        scaled.low(bound_in_ticks(term.term.low, term.left, scaled.tick, what)),
        scaled.high(bound_in_ticks(term.term.high, term.left, scaled.tick, what)),
    )
    unit = f" / {scaled.divisor}" if scaled.divisor > 1 else ""
    return EncodedField(
        field.name,
        _placed(scaled.left, field),
        _placed(scaled.right, field),
        bounds,
        f"{term.term}: (value - {scaled.minimum}){unit}",
    )


def _encode_equalities(terms: Sequence[TermColumns], field: KeyField) -> EncodedField:
    """Equality terms as one column of codes."""
    codes = combined([_codes(term) for term in terms])
    top = (1 << field.bits) - 1
    if codes.count - 1 > top:
        codes = dense(
            pa.chunked_array([pa.array(codes.left)]), pa.chunked_array([pa.array(codes.right)])
        )
    if codes.count - 1 > top:
        raise KeyRangeError(
            terms[0].left.name,
            f"{codes.count} distinct values (with those of {terms[0].right.name!r})",
            0,
            top,
            remedy=_wider(field, codes.count - 1),
        )
    names = ", ".join(str(term.term) for term in terms)
    return EncodedField(
        field.name,
        _placed(codes.left, field),
        _placed(codes.right, field),
        Bounds(0, 0),
        f"{names}: codes of {codes.count} values",
    )


def _codes(term: TermColumns) -> Codes:
    if term.left.kind is Kind.TEXT:
        return codes_of_columns(term.left, term.right)
    scaled = scale(term.left, term.right)
    if scaled is not None:
        return codes_of_scaled(scaled)
    if term.left.tick != term.right.tick:
        raise UsageError(
            f"Columns {term.left.name!r} and {term.right.name!r} have different units, and values "
            f"too far apart to be brought to one; cast one of them."
        )
    return codes_of_columns(term.left, term.right)


def _placed(distances: npt.NDArray[np.uint64], field: KeyField) -> Array:
    """Move distances, which start at zero, to the least value of the field."""
    if not field.signed:
        return distances
    return (distances - np.uint64(1 << (field.bits - 1))).view(np.int64)


def _too_wide(term: TermColumns, scaled: Scaled | None, field: KeyField) -> KeyRangeError:
    columns = [column for column in (term.left, term.right) if not column.is_empty]
    tick = min(column.tick for column in columns)
    least = min(int(column.integers.min()) * (column.tick // tick) for column in columns)
    widest = max(columns, key=lambda column: int(column.integers.max()) * column.tick)
    greatest = int(widest.integers.max()) * (widest.tick // tick)
    divisor = 1 if scaled is None else scaled.divisor
    return KeyRangeError(
        widest.name,
        f"{greatest} (its kind is {widest.kind.value})" if widest.kind.is_temporal else greatest,
        least,
        least + ((1 << field.bits) - 1) * divisor,
        remedy=_wider(field, (greatest - least) // divisor),
    )


def _wider(field: KeyField, top: int) -> str:
    if top.bit_length() > 64:
        return "the values lie too far apart for any field, 64 bits are the most"
    return (
        f"build a bundle whose field {field.name!r} has {top.bit_length()} bits: "
        f"`python -m hdl generate --preset demo --key {field.name}:{top.bit_length()} --output DIR`"
    )

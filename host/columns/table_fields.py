# SPDX-License-Identifier: Apache-2.0
"""Key fields of whole tables, from exact minima, common divisors and codes of all values."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from host.columns.band_fields import plan_float_field, plan_placed_field
from host.columns.codes import (
    Codes,
    FieldValues,
    GrowingCodes,
    codes_of_columns,
    codes_of_distances,
    combined,
    dense,
)
from host.columns.fields import (
    FieldEncoder,
    FieldPlan,
    TermTypes,
    bounds_of,
    place_of,
    require_coded_equality,
    wider,
)
from host.columns.kinds import Column, ColumnType, integer_view
from host.columns.scale import Scale, common_tick, scale_of
from host.errors import KeyRangeError
from host.protocol.manifest import KeyField
from host.protocol.spread import Spread
from host.reference.predicate import Bounds

__all__ = [
    "CodedTableField",
    "ScaledField",
    "TableColumns",
    "coded_table_field",
    "plan_table_field",
]

UInt64s = npt.NDArray[np.uint64]

#: The columns of both tables that the query names, by their types.
TableColumns = Mapping[ColumnType, Column]


@dataclass(frozen=True)
class ScaledField(FieldPlan):
    """A field of distances from a known origin; all values are known to fit.

    Parameters
    ----------
    scale : Scale
        Scale with the origin and the largest distance.
    place : int
        How far the smallest value of the field is below zero.
    step : int
        A divisor of all distances.
    """

    scale: Scale
    place: int
    step: int = 1

    @property
    def spread(self) -> Spread:
        return Spread(self.scale.top, self.step)

    def start(self) -> FieldEncoder:
        return _ScaledEncoder(self)


class _ScaledEncoder(FieldEncoder):
    def __init__(self, plan: ScaledField) -> None:
        self._columns = plan.terms[0].columns
        self._scale = plan.scale
        self._place = plan.place

    def encode(self, side: int, batch: pa.RecordBatch, first: int) -> FieldValues:
        del first  # every value fits
        scale = self._scale
        values = integer_view(self._columns[side].read(batch))
        return FieldValues(values, scale.factors[side], scale.minimum, scale.divisor, self._place)


@dataclass(frozen=True, eq=False)
class CodedTableField(FieldPlan):
    """A field of codes that were assigned to all rows of both tables."""

    codes: tuple[UInt64s, UInt64s]
    place: int

    def start(self) -> FieldEncoder:
        return _CodedTableEncoder(self)

    def arranged(self, orders: tuple[Any, Any]) -> "CodedTableField":
        """Return the field for other orders of the tables' rows; None leaves an order unchanged."""
        left, right = (
            codes if order is None else codes[order]
            for codes, order in zip(self.codes, orders, strict=True)
        )
        return CodedTableField(
            self.name, self.terms, self.bounds, self.note, (left, right), self.place
        )


class _CodedTableEncoder(FieldEncoder):
    def __init__(self, plan: CodedTableField) -> None:
        self._codes = plan.codes
        self._place = plan.place

    def encode(self, side: int, batch: pa.RecordBatch, first: int) -> FieldValues:
        return FieldValues(self._codes[side][first : first + batch.num_rows], place=self._place)


def plan_table_field(
    field: KeyField, terms: tuple[TermTypes, ...], columns: TableColumns
) -> FieldPlan:
    """Plan one field from all values.

    Raises
    ------
    UsageError
        If a value does not fit, or the values cannot be compared as the terms require.
    """
    if terms[0].is_float_difference:
        return plan_float_field(field, terms[0])
    if len(terms) > 1 or require_coded_equality(terms[0]):
        return coded_table_field(terms, field, columns)
    (term,) = terms
    pair = (columns[term.left], columns[term.right])
    scale = scale_of(pair)
    top = (1 << field.bits) - 1
    if scale is not None and scale.top > top:
        scale = scale.reduced(pair)
    if scale is None or scale.top > top:
        if term.term.is_equality:
            return coded_table_field(terms, field, columns)
        return plan_placed_field(field, term)
    bounds = bounds_of(term, scale.tick, scale.divisor)
    unit = f" / {scale.divisor}" if scale.divisor > 1 else ""
    note = f"(value - {scale.minimum}){unit}"
    # Values that are compared for equality are hashed, so their common divisor does not matter.
    step = 1 if term.term.is_equality else scale.common_step(pair)
    return ScaledField(field.name, terms, bounds, note, scale, place_of(field), step)


def coded_table_field(
    terms: tuple[TermTypes, ...], field: KeyField, columns: TableColumns
) -> CodedTableField:
    """Return the field of codes of one or more equality terms."""
    codes = combined([_codes(columns[term.left], columns[term.right]) for term in terms])
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
            remedy=wider(field, codes.count - 1),
        )
    return CodedTableField(
        field.name,
        terms,
        Bounds(0, 0),
        f"codes of {codes.count} values",
        (codes.left, codes.right),
        place_of(field),
    )


def _codes(left: Column, right: Column) -> Codes:
    if left.kind.is_coded:
        return codes_of_columns(left, right)
    scale = scale_of((left, right))
    if scale is not None:
        return codes_of_distances(scale.distances(left, 0), scale.distances(right, 1))
    if left.type.tick == right.type.tick:
        return codes_of_columns(left, right)
    _, factors = common_tick(left.type, right.type)
    growing = GrowingCodes()
    codes = [
        growing.of_integers(pa.array(column.integers), factor, column.valid)
        for column, factor in zip((left, right), factors, strict=True)
    ]
    return Codes(codes[0], codes[1], max(len(growing), 1))
